"""A simulated process as plain data: where it stands at any moment follows from when it began and what happened to it.

It needs nobody to move it on, so it lives on while its agent is away, and a late agent finds exactly what happened.
Moments are milliseconds of the machine's monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from evenflow.core.demand.task import SimulatedRun
from evenflow.core.lifecycle.causes import Cause

PPM: Final = 1_000_000
KILLED: Final = -9


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How and when it ended."""

    at_ms: int
    ended_as: Literal["succeeded", "failed", "stopped"]
    cause: Cause | None = None
    exit_code: int | None = None
    message: str = ""


@dataclass(slots=True)
class SimulatedProcess:
    """One process of a member.

    `ready_ms` None = never ready; `start_fails_ms`: the start fails then. A pause is a save: run time goes on, work
    does not.
    """

    key: str
    tenant: str
    task: str
    member: int
    devices: tuple[int, ...]
    run: SimulatedRun
    memory_bytes: int
    speed_ppm: int
    from_progress_ms: int
    began_ms: int
    ready_ms: int | None
    start_fails_ms: int | None = None
    paused_before_ms: int = 0
    pause_from_ms: int = 0
    pause_to_ms: int = 0
    save_asked: bool = False
    ticks: int = 0
    end: ProcessEnd | None = None

    def active_ms(self, at_ms: int) -> int:
        """Time worked until a moment."""
        if self.ready_ms is None or at_ms <= self.ready_ms:
            return 0
        paused = max(0, min(at_ms, self.pause_to_ms) - self.pause_from_ms)
        return max(0, at_ms - self.ready_ms - self.paused_before_ms - paused)

    def run_ms(self, at_ms: int) -> int:
        """Time since ready, pauses included, not beyond the end."""
        if self.ready_ms is None:
            return 0
        return max(0, min(at_ms, self.end.at_ms if self.end is not None else at_ms) - self.ready_ms)

    def progress_ms(self, at_ms: int) -> int:
        """Work done at a moment, in milliseconds at relative speed 1."""
        moment = min(at_ms, self.end.at_ms) if self.end is not None else at_ms
        done = self.from_progress_ms + self.active_ms(moment) * self.speed_ppm // PPM
        return min(done, max(self.run.work_ms, self.from_progress_ms))

    def work_ends_ms(self) -> int | None:
        """When the work will be complete, if nothing else happens; None = never ready."""
        if self.ready_ms is None:
            return None
        left = max(0, self.run.work_ms - self.from_progress_ms)
        needed = -(-left * PPM // self.speed_ppm)
        moment = self.ready_ms + self.paused_before_ms + needed
        if self.pause_to_ms and moment > self.pause_from_ms:
            moment += self.pause_to_ms - self.pause_from_ms
        return moment

    def coming_end(self) -> ProcessEnd | None:
        """The end it runs into by itself; of several at one moment a failure counts."""
        if self.start_fails_ms is not None:
            return ProcessEnd(self.start_fails_ms, "failed", Cause.START_FAILED, message="the start failed")
        works_until = self.work_ends_ms()
        if works_until is None or self.ready_ms is None:
            return None
        end = ProcessEnd(works_until, "succeeded", exit_code=0)
        run = self.run
        if run.fail_at_ms is not None and self.ready_ms + run.fail_at_ms <= end.at_ms:
            code = run.exit_code
            end = ProcessEnd(self.ready_ms + run.fail_at_ms, "failed", Cause.USER_ERROR, code, f"exit code {code}")
        peak = run.memory
        if peak is not None and peak.bytes > self.memory_bytes and self.ready_ms + peak.at_ms <= end.at_ms:
            message = f"used {peak.bytes} bytes of {self.memory_bytes}"
            end = ProcessEnd(self.ready_ms + peak.at_ms, "failed", Cause.OUT_OF_MEMORY, KILLED, message)
        return end

    def settle(self, now_ms: int) -> ProcessEnd | None:
        """Its end, if it has come by now."""
        if self.end is None:
            coming = self.coming_end()
            if coming is not None and coming.at_ms <= now_ms:
                self.end = coming
        return self.end

    def finish(self, end: ProcessEnd) -> None:
        """End it from outside, unless it ended before."""
        if self.settle(end.at_ms) is None:
            self.end = end

    def pause(self, now_ms: int, duration_ms: int) -> None:
        """Work stands still for a save."""
        self.paused_before_ms += max(0, min(now_ms, self.pause_to_ms) - self.pause_from_ms)
        self.pause_from_ms, self.pause_to_ms = now_ms, now_ms + duration_ms

    def last_save_ms(self) -> int:
        """From when the next save is counted: the end of the last one, else ready."""
        return self.pause_to_ms or self.ready_ms or 0
