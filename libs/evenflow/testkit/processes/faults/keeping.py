"""What an orchestrator does: each service runs, and is started again when it ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from evenflow.core.errors import Unavailable
from evenflow.platform.clock import Clock
from evenflow.testkit.processes.fleet import Processes, ServiceProcess

LOOK_S: Final = 0.05
END_S: Final = 60.0


class Kept:
    """One service, kept running. `ends` counts how often it ended by itself or was ended."""

    def __init__(self, processes: Processes, service: str, environment: Mapping[str, str], clock: Clock) -> None:
        self.service = service
        self.ends = 0
        self.now: ServiceProcess | None = None
        self._processes = processes
        self._environment = environment
        self._clock = clock
        self._orders: Path = processes.folder / f"{service}.orders"
        self._next_point = ""
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start it and keep it."""
        self.now = await self._begun()
        self._task = asyncio.create_task(self._keep(), name=f"keep {self.service}")

    async def let_go(self) -> None:
        """Start it no more; what runs now runs on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def tell(self, number: signal.Signals) -> None:
        """Signal the process that runs now."""
        if self.now is not None:
            self.now.running.tell(number)

    async def kill_at(self, point: str, nth: int) -> None:
        """Let it kill itself at a fail point and wait until it has. Raises Unavailable when it never gets there."""
        await self.ready()
        before = self.ends
        self._orders.write_text(json.dumps({"point": point, "nth": nth, "signal": "KILL"}), encoding="utf-8")
        self.tell(signal.SIGUSR1)
        until_ms = self._clock.monotonic_ms() + round(END_S * 1_000)
        while self.ends == before:
            if self._clock.monotonic_ms() > until_ms:
                raise Unavailable(f"{self.service} did not reach {point} {nth} times within {END_S:.0f} s")
            await self._clock.sleep(LOOK_S)

    async def ready(self) -> None:
        """Wait until it runs and serves; one that ends meanwhile is followed by another. Raises Unavailable."""
        until_ms = self._clock.monotonic_ms() + round(END_S * 1_000)
        while self._clock.monotonic_ms() < until_ms:
            one = self.now
            if one is not None and one.running.lives:
                try:
                    await self._processes.ready(one, within_s=END_S)
                    return
                except Unavailable:
                    if one.running.lives:
                        raise
            await self._clock.sleep(LOOK_S)
        raise Unavailable(f"{self.service} was not started again within {END_S:.0f} s")

    async def kill_at_next_start(self, point: str) -> None:
        """Let its next process kill itself at a fail point of its start, and wait until it has."""
        before = self.ends
        self._next_point = point
        until_ms = self._clock.monotonic_ms() + round(END_S * 1_000)
        while self.ends < before + 2:  # the one that ends now, and the next one
            if self._clock.monotonic_ms() > until_ms:
                raise Unavailable(f"{self.service} did not reach {point} at its start within {END_S:.0f} s")
            await self._clock.sleep(LOOK_S)

    async def _begun(self) -> ServiceProcess:
        point, self._next_point = self._next_point, ""
        orders = None if point else self._orders
        return await self._processes.start(self.service, self._environment, at=point, orders=orders)

    async def _keep(self) -> None:
        while True:
            if self.now is None or not self.now.running.lives:
                self.ends += 1
                self.now = None
                with contextlib.suppress(Unavailable):  # it ended while starting, as without its servers: again
                    self.now = await self._begun()
            await self._clock.sleep(LOOK_S)
