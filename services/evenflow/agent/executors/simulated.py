"""The simulated executor: members that do what the task's `run` says, on a simulated machine."""

from __future__ import annotations

import json
from typing import Final

from evenflow.agent.executors.machine import STOP_MS, SimulatedMachine, ready_moment
from evenflow.agent.executors.simulated_process import ProcessEnd, SimulatedProcess
from evenflow.agent.ports import Ended, Launch, Progressed, Ready, Run, RunEvent, Saved
from evenflow.core.demand.task import CheckpointWish, SimulatedRun
from evenflow.core.lifecycle.causes import Cause
from evenflow.core.running.saving import LastMove, last_move, save_period_ms

NOTHING: Final = SimulatedRun()


class SimulatedExecutor:
    """Runs members on one machine."""

    def __init__(self, machine: SimulatedMachine) -> None:
        self._machine = machine

    async def start(self, launch: Launch) -> Run:
        """Start, or find what was started under this key."""
        machine = self._machine
        process = machine.processes().get(launch.key)
        if process is None:
            run = launch.task.run or NOTHING
            terms = machine.start_terms(f"{launch.tenant}/{launch.task.id}", launch.member)
            began_ms = machine.now_ms()
            fails_ms = None if terms.fails_after_ms is None else began_ms + terms.fails_after_ms
            process = SimulatedProcess(
                key=launch.key,
                tenant=launch.tenant,
                task=launch.task.id,
                member=launch.member,
                devices=launch.devices,
                run=run,
                memory_bytes=launch.memory_bytes,
                speed_ppm=max(1, machine.speed_ppm(launch.devices, launch.task.workload)),
                from_progress_ms=launch.progress_ms,
                began_ms=began_ms,
                ready_ms=ready_moment(began_ms, terms, run.ready_after_ms),
                start_fails_ms=fails_ms,
            )
            machine.processes()[launch.key] = process
            machine.keep(launch.key)
        return SimulatedMember(machine, process, launch)

    async def find(self, launch: Launch) -> Run | None:
        """What is on the machine under this key."""
        process = self._machine.processes().get(launch.key)
        return None if process is None else SimulatedMember(self._machine, process, launch)

    async def reclaim(self, launch: Launch) -> bool:
        """Wait until the place has emptied; False while something stays on its devices."""
        machine = self._machine
        process = machine.processes().get(launch.key)
        if process is not None and process.end is not None and process.end.ended_as != "stopped":
            empty_ms = process.end.at_ms + machine.stop_ms(f"{launch.tenant}/{launch.task.id}")
            while machine.now_ms() < empty_ms and machine.processes().get(launch.key) is process:
                await machine.change(launch.key, empty_ms)
        machine.processes().pop(launch.key, None)
        machine.keep(launch.key)
        return not machine.leftover_on(launch.devices)


class SimulatedMember:
    """One member on the machine, as one agent incarnation follows it."""

    def __init__(self, machine: SimulatedMachine, process: SimulatedProcess, launch: Launch) -> None:
        self._machine = machine
        self._process = process
        self._launch = launch
        self._told_ready = False
        self._stopping = False
        self._wish: CheckpointWish | None = launch.task.checkpoint

    async def next(self) -> RunEvent:
        """The next thing that is due, waiting for its moment."""
        process, machine = self._process, self._machine
        while True:
            now_ms = machine.now_ms()
            due = self._due(now_ms)
            if due is not None:
                return due
            if machine.processes().get(process.key) is not process:
                return self._ended(ProcessEnd(now_ms, "failed", Cause.NODE_LOST, message="the machine went down"))
            await machine.change(process.key, self._next_moment())

    def _due(self, now_ms: int) -> RunEvent | None:
        process = self._process
        end = process.settle(now_ms)
        ready = process.ready_ms is not None and process.ready_ms <= now_ms
        if ready and not self._told_ready and (end is None or end.at_ms >= (process.ready_ms or 0)):
            self._told_ready = True
            return Ready(now_ms - (process.ready_ms or 0))
        if end is not None:
            return self._ended(end)
        if not ready:
            return None
        tick = self._tick_due(now_ms)
        if tick is not None:
            return tick
        if self._wish is not None and (process.save_asked or now_ms >= self._save_ms(self._wish)):
            return self._save(self._wish, now_ms)
        return None

    def _tick_due(self, now_ms: int) -> Progressed | None:
        every_ms, process = self._launch.progress_every_ms, self._process
        ticks = process.run_ms(now_ms) // every_ms if every_ms else 0
        if ticks <= process.ticks:
            return None
        process.ticks = ticks
        self._machine.keep(process.key)
        return Progressed(process.run_ms(now_ms), process.progress_ms(now_ms))

    def _save_ms(self, wish: CheckpointWish) -> int:
        return self._process.last_save_ms() + save_period_ms(wish.every_ms, wish.cost_ms)

    def _next_moment(self) -> int | None:
        process, moments = self._process, []
        coming = process.coming_end()
        if coming is not None:
            moments.append(coming.at_ms)
        if process.ready_ms is not None:
            if not self._told_ready:
                moments.append(process.ready_ms)
            if self._launch.progress_every_ms:
                moments.append(process.ready_ms + (process.ticks + 1) * self._launch.progress_every_ms)
            if self._wish is not None:
                moments.append(self._save_ms(self._wish))
        return min(moments) if moments else None

    def _save(self, wish: CheckpointWish, now_ms: int) -> RunEvent | None:
        """Begin a save: work stands still while it costs. Every member of a gang pauses, member 0 writes."""
        process = self._process
        process.save_asked = False
        figures = process.run_ms(now_ms), process.progress_ms(now_ms)
        process.pause(now_ms, wish.cost_ms)
        self._machine.keep(process.key)
        if self._launch.member:
            return None
        parts = max(1, wish.parts)

        def part(index: int) -> bytes:
            content = {
                "task": f"{process.tenant}/{process.task}", "attempt": self._launch.attempt, "part": index + 1,
                "progress_ms": figures[1],
            }  # fmt: skip
            return json.dumps(content, separators=(",", ":")).encode()

        return Saved(*figures, wish.size_bytes, parts, part, pace_ms=wish.cost_ms // parts)

    def _ended(self, end: ProcessEnd) -> Ended:
        process = self._process
        ready = process.ready_ms is not None and process.ready_ms <= end.at_ms
        return Ended(
            end.ended_as, end.at_ms, process.run_ms(end.at_ms), process.progress_ms(end.at_ms), ready, end.cause,
            end.exit_code, end.message,
        )  # fmt: skip

    async def stop(self, grace_ms: int, *, save: bool) -> RunEvent:
        """Finish or save when that fits the grace, else stop working at once and be gone a little later."""
        process, machine, wish = self._process, self._machine, self._wish
        now_ms = machine.now_ms()
        end = process.settle(now_ms)
        if end is not None:
            return self._ended(end)
        ready = process.ready_ms is not None and process.ready_ms <= now_ms
        works_until = process.work_ends_ms() if ready else None
        saving = save and wish is not None and ready and not self._stopping
        move = last_move(
            left_ms=None if works_until is None else works_until - now_ms,
            grace_ms=grace_ms,
            saves=saving,
            cost_ms=wish.cost_ms if wish is not None else 0,
        )
        if move is LastMove.FINISH:
            while (end := process.settle(machine.now_ms())) is None:
                coming = process.coming_end()
                await machine.change(process.key, coming.at_ms if coming is not None else None)
            return self._ended(end)
        if move is LastMove.SAVE and wish is not None:
            self._stopping = True
            saved = self._save(wish, now_ms)
            if saved is not None:
                return saved
        return await self._leave(grace_ms)

    async def _leave(self, grace_ms: int) -> Ended:
        """Work ends now; the process is gone after its stop time, killed when the grace is over."""
        process, machine = self._process, self._machine
        now_ms = machine.now_ms()
        process.finish(ProcessEnd(now_ms, "stopped"))
        machine.keep(process.key)
        end = process.end
        takes_ms = min(machine.stop_ms(f"{process.tenant}/{process.task}"), grace_ms) if grace_ms else 0
        while machine.now_ms() < now_ms + takes_ms and machine.processes().get(process.key) is process:
            await machine.change(process.key, now_ms + takes_ms)
        return self._ended(end if end is not None else ProcessEnd(now_ms, "stopped"))

    async def kill(self) -> Ended:
        """End it at once; its place empties in the ordinary stop time."""
        machine = self._machine
        return await self._leave(min(STOP_MS, machine.stop_ms(f"{self._process.tenant}/{self._process.task}")))

    async def save(self) -> None:
        """Ask for a save."""
        self._process.save_asked = True
        self._machine.touch(self._process.key)
