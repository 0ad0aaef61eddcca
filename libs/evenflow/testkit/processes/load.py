"""Load for placement processes: nodes as inventory states them, tasks as producers submit them, straight on the log."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any, Final

from evenflow.events import streams
from evenflow.events.contracts.tasks import TaskSubmitted
from evenflow.hosting.benches.stand import registrations
from evenflow.platform.broker.codec import Fact
from evenflow.platform.broker.factory import make_transport
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.clock import RandomIds, SystemClock
from evenflow.platform.runtime import Runtime
from evenflow.platform.stores.memory import MemoryDocuments, MemoryLiveLoad, MemoryObjects

TICK_S: Final = 0.02
NODES: Final = 250
DEVICES: Final = 8


class Load:
    """Submits `rate` tasks a second until stopped. `submitted` holds the keys that the log confirmed."""

    def __init__(self, log_url: str, log: Any, *, rate: int) -> None:
        clock = SystemClock()
        ids = RandomIds(clock)
        self._clock = clock
        self._rate = rate
        self._task: asyncio.Task[None] | None = None
        self.runtime = Runtime(
            name="load",
            instance=ids.new_id(),
            clock=clock,
            ids=ids,
            random=random.Random(1),
            transport=make_transport(log_url, clock=clock, ids=ids),
            documents=MemoryDocuments(),
            live=MemoryLiveLoad(),
            objects=MemoryObjects(),
            log=log,
        )
        self._outlet = Outlet(self.runtime)
        self.submitted: list[str] = []

    async def start(self) -> None:
        """State the nodes and begin to submit."""
        await self.runtime.transport.provision(streams.topics())
        await self._outlet.start()
        await self._outlet.publish(*registrations(NODES, DEVICES))
        self._task = asyncio.create_task(self._submit())

    async def stop(self) -> None:
        """Submit no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._outlet.stop()

    async def _submit(self) -> None:
        began_ms = self._clock.monotonic_ms()
        while True:
            due = (self._clock.monotonic_ms() - began_ms) * self._rate // 1_000
            facts = [_submission(number) for number in range(len(self.submitted), due)]
            if facts:
                await self._outlet.publish(*facts)
                self.submitted += [fact.key for fact in facts]
            await self._clock.sleep(TICK_S)


def _submission(number: int) -> Fact:
    document = {
        "id": f"t{number}",
        "run": {"work_s": 600},
        "resources": {"cpu": 0.5, "memory": "1GiB", "devices": {"share": "0.1"}},
    }
    body = TaskSubmitted(raw=json.dumps(document).encode())
    return Fact(streams.TASKS, body, key=f"default/t{number}", id=f"submit-{number}")
