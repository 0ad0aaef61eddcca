"""A log on virtual time with processes that can be killed or stopped between any two of their steps."""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from evenflow.platform.broker.embedded.hooks import Hooks
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.sim.clock import SimulatedClock, SimulatedIds
from evenflow.sim.guard import guarded
from evenflow.sim.loop import VirtualLoop
from evenflow.sim.process import PROCESS, Process, process_of
from evenflow.sim.seam import ordered_anyio

EPOCH_MS = 1_800_000_000_000

Life = Callable[["Stage", EmbeddedTransport], Awaitable[None]]


class Stage:
    """One world: a log in memory, processes by name, and whatever the test wants to watch."""

    def __init__(self, seed: int, *topics: SimpleNamespace, patient: bool = True) -> None:
        self.seed = seed
        self.loop = VirtualLoop(random.Random(seed))
        self.clock = SimulatedClock(self.loop, EPOCH_MS)
        self.log = EmbeddedLog(clock=self.clock, hooks=Hooks(patient_polls=patient))
        self.log.provision(topics)
        self.context = contextvars.copy_context()
        self.processes: dict[str, tuple[Process, EmbeddedTransport]] = {}
        self.failures: list[str] = []
        self.ends: list[str] = []
        self._count = 0

    def start(self, name: str, life: Life, again_s: float | None = None) -> None:
        """Begin a process; with `again_s` another incarnation follows each end that it comes to by itself."""
        self._count += 1
        process = process_of(self.seed, name, self._count)
        clock = SimulatedClock(self.loop, EPOCH_MS, process)
        transport = EmbeddedTransport(self.log, clock=clock, ids=SimulatedIds(process))
        self.processes[name] = (process, transport)
        context = self.context.copy()
        context.run(PROCESS.set, process)
        task = self.loop.create_task(life(self, transport), context=context)
        task.add_done_callback(lambda done: self._ended(name, process, life, again_s, done), context=self.context)

    def _ended(self, name: str, process: Process, life: Life, again_s: float | None, task: Any) -> None:
        if process.dead or task.cancelled():
            return
        if task.exception() is not None:
            self.ends.append(f"{name}: {type(task.exception()).__name__}")
        self.loop.kill(process)
        self.processes[name][1].lost_contact()
        if again_s is not None:
            self.later(again_s, self.start, name, life, again_s)

    def kill(self, name: str, life: Life, back_s: float | None = 0.5) -> None:
        """Gone at once; the next incarnation comes after a while."""
        process, transport = self.processes[name]
        if not process.dead:
            self.loop.kill(process)
            transport.lost_contact()
            if back_s is not None:
                self.later(back_s, self.start, name, life, back_s)

    def pause(self, name: str, seconds: float) -> None:
        """Stands still, and goes on as if nothing had been."""
        process, transport = self.processes[name]
        self.loop.pause(process)
        transport.lost_contact()
        self.later(seconds, self._back, process, transport)

    def _back(self, process: Process, transport: EmbeddedTransport) -> None:
        if not process.dead:
            self.loop.resume(process)
            transport.regained()

    def later(self, seconds: float, call: Callable[..., Any], *given: Any) -> None:
        self.loop.call_later(seconds, call, *given, context=self.context)

    def run(self, until: Callable[[], bool], within_s: float = 120.0, after_s: float = 1.0) -> None:
        """Let time pass until something is true, and a little longer; everything ends then."""

        async def wait() -> None:
            async with asyncio.timeout(within_s):
                while not until():
                    await asyncio.sleep(0.05)
            await asyncio.sleep(after_s)

        try:
            with guarded(), ordered_anyio():
                self.loop.run_until_complete(wait())
        finally:
            for process, _ in self.processes.values():
                self.loop.kill(process)
            self.loop.bury()
            self.loop.close()

    def committed(self, topic: str) -> list[Any]:
        """The records that readers of committed ones see of a topic."""
        return [
            record
            for partition in self.log.topics[topic].partitions
            for record in partition.read(partition.start, partition.stable, 100_000)
            if record.kind == 0
        ]


def topic(name: str, partitions: int = 1, **configs: str) -> SimpleNamespace:
    """Settings of a topic; underscores for dots."""
    return SimpleNamespace(
        name=name, partitions=partitions, configs={key.replace("_", "."): value for key, value in configs.items()}
    )
