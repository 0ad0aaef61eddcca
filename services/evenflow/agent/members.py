"""The life of one member on this node, from acceptance to proven free.

Each step is written to the journal with its receipt before the next begins, so that a restarted agent takes the life up
where it stood: what was started is found again and never started twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evenflow.agent.executors.gone import Gone
from evenflow.agent.journal import RANK, Held, Phase
from evenflow.agent.ports import Ended, Executor, Launch, Progressed, Ready, Run, Saved, StartFailed, Surroundings
from evenflow.agent.receipts import Speaker, Statement
from evenflow.agent.saving import Saving
from evenflow.agent.settings import AgentSettings
from evenflow.agent.staging import Staging, StagingFailed
from evenflow.core.demand.task import Task
from evenflow.core.errors import Ended as ProcessEnded
from evenflow.core.lifecycle.attempt import Wish
from evenflow.core.lifecycle.causes import Cause
from evenflow.events.contract import Contract
from evenflow.events.contracts import agent as said
from evenflow.events.contracts.placement import AttemptDesired

MESSAGE_CHARACTERS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Means:
    """What every member of a node shares. `changed` is called whenever one ended or was reclaimed."""

    around: Surroundings
    settings: AgentSettings
    speaker: Speaker
    staging: Staging
    saving: Saving
    changed: Callable[[], None]
    beat_now: Callable[[], None]


class Member:
    """One member. `held` is its row; `wish` strengthens it while it lives."""

    def __init__(self, means: Means, held: Held, task: Task) -> None:
        self.held = held
        self._means = means
        self._task = task
        self._run: Run | None = None
        self._stop = asyncio.Event()
        self._reclaim = asyncio.Event()
        self._mark()

    async def wish(self, desired: AttemptDesired) -> None:
        """Take a stronger wish: written first, then acted on."""
        await self._keep(desired=desired)
        self._mark()

    async def save(self) -> None:
        """Keep progress now, if it runs."""
        if self._run is not None and self.held.phase is Phase.RUNNING:
            await self._run.save()

    def _mark(self) -> None:
        if self.held.desired.wish is not Wish.RUN:
            self._stop.set()
        if self.held.desired.wish is Wish.RECLAIM:
            self._reclaim.set()

    @property
    def executor(self) -> Executor | None:
        """By what the task asks for: a command runs as a process, anything else is simulated."""
        around = self._means.around
        return around.process if self._task.command else around.simulated

    # --- life -------------------------------------------------------------------------------------------------------

    async def live(self) -> None:
        """From the journal's phase to the end."""
        if RANK[self.held.phase] < RANK[Phase.ENDED]:
            try:
                ended = await self._until_end()
            except ProcessEnded:
                raise
            except Exception as error:  # noqa: BLE001  whatever broke, the member must come to an end that can be told
                problem = f"{type(error).__name__}: {error}"
                self._means.around.log.error("member failed", run=self.held.key, problem=problem)
                ended = self._failed(Cause.UNKNOWN, problem)
                if self._run is not None:
                    await self._run.kill()
            await self._tell_end(ended)
        if self.held.phase is not Phase.RECLAIMED:
            await self._free()

    async def _until_end(self) -> Ended:
        """Work until it ends or a stop is wished; work that ended first counts."""
        ended = await self._unless(self._work(), self._stop)
        if ended is None:
            ended = await self._unless(self._wind_up(), self._reclaim)
        if ended is None:
            ended = await self._kill()
        return ended

    async def _unless(self, work: Any, signal: asyncio.Event) -> Ended | None:
        """The result of `work`, or None when the signal came first and the work was given up."""
        loop = asyncio.get_running_loop()
        working, called = loop.create_task(work), loop.create_task(signal.wait())
        try:
            await asyncio.wait((working, called), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                working.cancel()
                await asyncio.wait((working,))
        finally:
            called.cancel()
            if not working.done():
                working.cancel()
        return None if working.cancelled() else working.result()

    async def _work(self) -> Ended:
        """Stage, start, and follow the run."""
        try:
            if self._run is None:
                self._run = await self._begin()
            return await self._follow(self._run)
        except StagingFailed as error:
            return self._failed(error.cause, error.message)
        except StartFailed as error:
            return self._failed(Cause.START_FAILED, error.message)

    async def _begin(self) -> Run:
        executor = self.executor
        if executor is None:
            what = "commands" if self._task.command else "simulated runs"
            raise StartFailed(f"this node runs no {what}")
        if self.held.phase is Phase.ACCEPTED:
            return await self._start(executor)
        found = await executor.find(self.launch())
        if found is not None:
            return found
        if self.held.phase is Phase.STARTING and self.held.boot == self._means.around.machine.boot:
            return await self._start(executor)  # written down but never done
        return Gone(self.gone)

    async def _start(self, executor: Executor) -> Run:
        means = self._means
        began_ms = means.around.clock.monotonic_ms()
        staged = await means.staging.bring(self.held, self._task)
        took_ms = max(0, means.around.clock.monotonic_ms() - began_ms)
        receipt = () if self.held.staged else (self._statement(
            said.AttemptStaged, bytes=staged.counted_bytes, took_ms=took_ms
        ),)  # fmt: skip
        await self._keep(
            *receipt,
            phase=Phase.STARTING,
            staged=True,
            starting_ms=means.around.clock.monotonic_ms(),
            boot=means.around.machine.boot,
            resumed=staged.resumed,
            damaged=staged.damaged,
        )
        await means.around.point("agent.before-start")
        run = await executor.start(self.launch(staged.parts))
        await means.around.point("agent.after-start")
        return run

    def launch(self, parts: tuple[bytes, ...] = ()) -> Launch:
        """What the executor is given."""
        desired, simulated = self.held.desired, self._task.run
        asked_ms = simulated.progress_every_ms if simulated is not None else None
        return Launch(
            key=self.held.key,
            tenant=desired.tenant,
            task=self._task,
            attempt=desired.attempt,
            member=desired.place.member,
            members=len(desired.peers) or 1,
            devices=tuple(share.index for share in desired.place.devices),
            cpu_milli=desired.place.cpu_milli,
            memory_bytes=desired.place.memory_bytes,
            progress_ms=self.held.resumed.progress_ms if self.held.resumed is not None else 0,
            resume_parts=parts,
            progress_every_ms=asked_ms or self._means.settings.progress_period_ms,
        )

    async def _follow(self, run: Run) -> Ended:
        """Say what happens, until the end."""
        while True:
            if self.held.phase is Phase.RUNNING:
                event = await run.next()
            else:
                try:
                    async with asyncio.timeout(self._ready_left_ms() / 1000):
                        event = await run.next()
                except TimeoutError:
                    return await self._never_ready(run)
            match event:
                case Ready():
                    await self._tell_started(event.ago_ms)
                case Progressed() if not self._outbox_is_full():
                    await self._keep(
                        self._statement(said.AttemptProgressed, run_ms=event.run_ms, progress_ms=event.progress_ms),
                        seen_run_ms=event.run_ms, seen_progress_ms=event.progress_ms,
                    )  # fmt: skip
                case Saved():
                    await self._write(event)
                case Ended():
                    return await self._with_output(event)

    def _outbox_is_full(self) -> bool:
        """Whether only what must be told may still be added: progress is told again later."""
        return self._means.around.disk.pending_count() >= self._means.settings.outbox_count_max

    def _ready_left_ms(self) -> int:
        limit_ms = min(self._task.ready_timeout_ms, self._start_limit_ms())
        return max(0, self.held.starting_ms + limit_ms - self._means.around.clock.monotonic_ms())

    def _start_limit_ms(self) -> int:
        """A start that hangs is given up even when the task would wait longer, unless it said when it is ready."""
        simulated = self._task.run
        patient = simulated is not None and simulated.ready_after_ms != 0
        return self._task.ready_timeout_ms if patient else self._means.settings.start_timeout_ms

    async def _never_ready(self, run: Run) -> Ended:
        await run.kill()
        late = self._task.ready_timeout_ms <= self._start_limit_ms()
        cause = Cause.READY_TIMEOUT if late else Cause.START_FAILED
        return self._failed(cause, "was not ready in time" if late else "the start hung")

    async def _tell_started(self, ago_ms: int) -> None:
        held = self.held
        if held.phase is Phase.RUNNING:
            return
        start_ms = max(0, self._means.around.clock.monotonic_ms() - ago_ms - held.starting_ms)
        resumed = held.resumed
        statement = self._statement(
            said.AttemptStarted,
            start_ms=start_ms,
            resumed_progress_ms=resumed.progress_ms if resumed is not None else 0,
            resumed_generation=resumed.generation if resumed is not None else 0,
            resumed_checkpoint=resumed.checkpoint if resumed is not None else 0,
            damaged=held.damaged,
        )
        await self._keep(
            statement,
            phase=Phase.RUNNING,
            start_ms=start_ms,
            seen_progress_ms=resumed.progress_ms if resumed is not None else 0,
        )

    async def _write(self, saved: Saved) -> None:
        """Write a checkpoint and say so; only member 0 speaks for the gang's progress."""
        written = await self._means.saving.write(self.held, saved)
        if written is None:
            return
        number, manifest = written
        statement = self._statement(
            said.AttemptCheckpointed,
            checkpoint=number,
            progress_ms=saved.progress_ms,
            run_ms=saved.run_ms,
            manifest=manifest,
            size_bytes=saved.size_bytes,
            site=self.held.desired.place.site,
        )
        await self._keep(statement, checkpoint=number, seen_run_ms=saved.run_ms, seen_progress_ms=saved.progress_ms)

    async def _with_output(self, ended: Ended) -> Ended:
        if ended.ended_as != "succeeded":
            return ended
        try:
            size = await self._means.staging.send_output(self.held, self._task)
        except StagingFailed as error:
            return Ended(
                "failed", ended.at_ms, ended.run_ms, ended.progress_ms, ended.ready, error.cause, message=error.message
            )
        self.held = self.held.model_copy(update={"output_bytes": size})
        return ended

    # --- stopping ---------------------------------------------------------------------------------------------------

    async def _wind_up(self) -> Ended:
        """A wished stop: save or finish within the grace where that can be, then end."""
        run = await self._found()
        if run is None:
            return self._stopped()
        desired = self.held.desired
        save = self._task.checkpoint is not None and desired.cause is not Cause.CANCELLED
        while True:
            event = await run.stop(desired.stop_grace_ms, save=save)
            if isinstance(event, Saved):
                await self._write(event)
            elif isinstance(event, Ended):
                return await self._with_output(event)

    async def _kill(self) -> Ended:
        run = await self._found()
        return self._stopped() if run is None else await run.kill()

    async def _found(self) -> Run | None:
        if self._run is None and self.held.phase is not Phase.ACCEPTED and self.executor is not None:
            self._run = await self.executor.find(self.launch())
        return self._run

    def _stopped(self) -> Ended:
        return Ended("stopped", self._means.around.clock.monotonic_ms(), 0, self.progress_ms, ready=False)

    def _failed(self, cause: Cause, message: str) -> Ended:
        ready = self.held.phase is Phase.RUNNING
        now_ms = self._means.around.clock.monotonic_ms()
        return Ended("failed", now_ms, self.held.seen_run_ms, self.progress_ms, ready, cause, message=message)

    def gone(self) -> Ended:
        """The end of a run without a trace: lost with the node's boot, or for a reason that nobody can tell."""
        if self.held.boot != self._means.around.machine.boot:
            return self._failed(Cause.NODE_LOST, "the node booted anew")
        return self._failed(Cause.UNKNOWN, "its process is gone without a trace")

    @property
    def progress_ms(self) -> int:
        """Progress last seen."""
        resumed = self.held.resumed
        return max(self.held.seen_progress_ms, resumed.progress_ms if resumed is not None else 0)

    # --- the end ----------------------------------------------------------------------------------------------------

    async def _tell_end(self, ended: Ended) -> None:
        held = self.held
        stopped = ended.ended_as == "stopped"
        outcome = said.Outcome(
            ended_as=ended.ended_as,
            run_ms=max(0, ended.run_ms),
            start_ms=self._start_ms(ended),
            progress_ms=max(0, ended.progress_ms),
            cause=held.desired.cause if stopped else ended.cause,
            exit_code=ended.exit_code,
            message=ended.message[:MESSAGE_CHARACTERS_MAX],
        )
        statements = []
        if ended.ended_as == "succeeded":
            statements = [self._statement(said.AttemptSucceeded, outcome=outcome, output_bytes=held.output_bytes)]
        elif ended.ended_as == "failed":
            statements = [self._statement(said.AttemptFailed, outcome=outcome)]
        elif held.desired.wish is not Wish.RECLAIM:
            statements = [self._statement(said.AttemptStopped, outcome=outcome)]
        await self._keep(*statements, phase=Phase.ENDED, ended_ms=ended.at_ms, outcome=outcome)
        if ended.cause is Cause.DEVICE_BROKEN:
            self._means.beat_now()
        self._means.changed()

    def _start_ms(self, ended: Ended) -> int:
        """How long the start took; of one that never came to be, how long it was tried on this boot."""
        held = self.held
        if held.phase is not Phase.STARTING or held.boot != self._means.around.machine.boot:
            return held.start_ms
        return max(0, ended.at_ms - held.starting_ms - max(0, ended.run_ms))

    async def _free(self) -> None:
        """Prove the place free and say so; while something is left on it, hold it and look again."""
        means = self._means
        while True:
            executor = self.executor
            clean = executor is None or await executor.reclaim(self.launch())
            stop_ms = max(0, means.around.clock.monotonic_ms() - self.held.ended_ms)
            outcome = (self.held.outcome or said.Outcome(ended_as="stopped")).model_copy(update={"stop_ms": stop_ms})
            if clean:
                receipt = self._reclaimed(outcome, leftover=False)
                await self._keep(receipt, phase=Phase.RECLAIMED, outcome=outcome, leftover=False)
                break
            if not self.held.leftover:
                receipt = self._reclaimed(outcome, leftover=True)
                await self._keep(receipt, leftover=True)
                means.beat_now()
            await means.around.clock.sleep(means.settings.reclaim_recheck_ms / 1000)
        means.changed()

    # --- writing ----------------------------------------------------------------------------------------------------

    def _statement(self, kind: type[Any], **values: Any) -> Statement:
        body: Contract = self._means.speaker.receipt(kind, self.held.desired, **values)
        return Statement(body, self.held.causation, self.held.correlation)

    def _reclaimed(self, outcome: said.Outcome, *, leftover: bool) -> Statement:
        body = self._means.speaker.reclaimed(self.held.desired, outcome, leftover=leftover)
        return Statement(body, self.held.causation, self.held.correlation)

    async def _keep(self, *statements: Statement, **changes: Any) -> None:
        """Change the row and write it with its receipts, in one step that a cancellation can't cut."""

        def changed() -> tuple[Held, ...]:
            self.held = self.held.model_copy(update=changes)
            return (self.held,)

        await self._means.speaker.commit(*statements, rows=changed)
