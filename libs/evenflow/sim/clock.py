"""Clock and ids of one simulated process."""

from __future__ import annotations

import asyncio

from evenflow.sim.loop import VirtualLoop
from evenflow.sim.process import Process


class SimulatedClock:
    """The world's time as one process sees it: its skew moves the wall clock only, durations are the world's."""

    def __init__(self, loop: VirtualLoop, epoch_ms: int, process: Process | None = None) -> None:
        self._loop = loop
        self._epoch_ms = epoch_ms
        self._process = process

    def now_ms(self) -> int:
        """The wall clock that the process reads, skew included."""
        skew = 0 if self._process is None else self._process.skew_ms
        return self._epoch_ms + self._loop.time_ms() + skew

    def monotonic_ms(self) -> int:
        """Virtual milliseconds since the start of the world."""
        return self._loop.time_ms()

    async def sleep(self, seconds: float) -> None:
        """Give way for virtual seconds."""
        await asyncio.sleep(seconds)


class SimulatedIds:
    """Ids counted per incarnation: `placement.3.17`. A restarted process never repeats one."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._count = 0

    def new_id(self) -> str:
        """The next id."""
        self._count += 1
        return f"{self._process.name}.{self._process.incarnation}.{self._count}"
