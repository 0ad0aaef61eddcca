"""Whole placement processes on one embedded log: several on one loop, each with its own transport and fail points."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog

from evenflow.core.errors import Ended
from evenflow.events.contract import Contract
from evenflow.events.contracts import inventory, tasks
from evenflow.events.envelope import AgentStamp
from evenflow.events.streams import ASSIGNMENTS, DISPATCH, NODES, RUNS, STREAMS, TASKS, Stream, topics
from evenflow.placement.main import build
from evenflow.placement.service import PlacementService
from evenflow.placement.settings import PlacementSettings
from evenflow.platform.broker.codec import Fact, Received, decode, encode
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.platform.clock import RandomIds, SystemClock
from evenflow.platform.runtime import Runtime
from evenflow.platform.stores.memory import MemoryObjects


class Process:
    """One placement process: it can be held at a fail point, which is what a stop signal does to it."""

    def __init__(self, world: World, number: int, **settings: Any) -> None:
        self.world = world
        self.transport = EmbeddedTransport(world.log, clock=world.clock, ids=world.ids)
        self.reached: list[str] = []
        self._hold_at = ""
        self._held = asyncio.Event()
        self._go = asyncio.Event()
        runtime = Runtime(
            name="placement",
            instance=f"placement.{number}",
            clock=world.clock,
            ids=world.ids,
            random=random.Random(number),
            transport=self.transport,
            documents=None,  # type: ignore[arg-type]  # placement keeps no documents
            live=None,  # type: ignore[arg-type]  # nor live load
            objects=world.objects,
            log=structlog.get_logger(),
            point=self._point,
        )
        self.service: PlacementService = build(runtime, PlacementSettings(**{"session_timeout_ms": 300, **settings}))

    async def _point(self, name: str) -> None:
        self.reached.append(name)
        if name == self._hold_at:
            self._hold_at = ""
            self._held.set()
            await self._go.wait()

    def hold_at(self, point: str) -> None:
        """Stop the process when it next reaches a point."""
        self._hold_at = point

    async def held(self) -> None:
        """Wait until it stands, and let its group notice that it is silent."""
        await asyncio.wait_for(self._held.wait(), 5)
        self.transport.lost_contact()

    def go_on(self) -> None:
        """Let it continue."""
        self.transport.regained()
        self._go.set()

    async def leads(self) -> None:
        """Wait until it leads."""
        async with asyncio.timeout(5):
            while not self.service.leading:
                await asyncio.sleep(0.005)

    async def exit_code(self) -> int:
        """Wait for its end."""
        try:
            await asyncio.wait_for(self.service.wait(), 10)
        except Ended as ended:
            return ended.exit_code
        return 0


class World:
    """A log, objects, and whoever writes to them."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.ids = RandomIds(self.clock)
        self.log = EmbeddedLog(clock=self.clock)
        self.log.provision(topics())
        self.objects = MemoryObjects()
        self.outside = EmbeddedTransport(self.log, clock=self.clock, ids=self.ids)
        self.writer = self.outside.producer(client_id="outside")
        self.processes: list[Process] = []
        self._sequence = 0

    async def process(self, **settings: Any) -> Process:
        """Start one more placement process."""
        made = Process(self, len(self.processes) + 1, **settings)
        self.processes.append(made)
        await made.service.start()
        return made

    async def tell(self, stream: Stream, body: Contract, key: str = "", stamp: AgentStamp | None = None) -> None:
        """Write a fact."""
        fact = Fact(stream, body, key=key, id=self.ids.new_id(), stamp=stamp)
        one = encode(fact, source="test", now_ms=self.clock.now_ms())
        await self.writer.send_and_wait(one.topic, value=one.value, key=one.key, headers=one.headers)

    async def node(self, name: str, devices: int = 8) -> None:
        """Register a node."""
        document = {"id": name, "site": "east", "devices": {"model": "a100-80g", "count": devices}}
        status = {"reach": "ok", "administration": "open", "health": "ok"}
        await self.tell(
            NODES, inventory.NodeRegistered(node=name, revision=1, document=document, session="s", **status)
        )

    async def submit(self, name: str, **spec: Any) -> None:
        """Submit a task."""
        raw = json.dumps({"id": name, "resources": {"devices": {"share": 0.1}}, **spec}).encode()
        await self.tell(TASKS, tasks.TaskSubmitted(raw=raw), key=f"default/{name}")

    async def receipt(self, body: Any) -> None:
        """Send a stamped receipt."""
        self._sequence += 1
        await self.tell(RUNS, body, stamp=AgentStamp(body.node, "s", self._sequence, signature="ff"))

    async def read(self, stream: Stream, isolation: str = "read_committed") -> list[Received]:
        """Everything on a stream, in order within partitions."""
        consumer = self.outside.consumer(stream.name, client_id="reader", isolation_level=isolation)  # type: ignore[arg-type]  # a literal
        await consumer.start()
        out: list[Received] = []
        while True:
            batches = await consumer.getmany(timeout_ms=30)
            if not batches:
                break
            for records in batches.values():
                decoded = [decode(record, stream) for record in records]
                out += [one for one in decoded if isinstance(one, Received)]
        await consumer.stop()
        return out

    async def facts(self, type_: str, stream: Stream = ASSIGNMENTS) -> list[Any]:
        """Bodies of one type."""
        return [one.body for one in await self.read(stream) if one.envelope.type == type_ and one.body is not None]

    async def until(self, type_: str, count: int, stream: Stream = ASSIGNMENTS) -> list[Any]:
        """Wait until so many facts of a type are there."""
        async with asyncio.timeout(10):
            while len(found := await self.facts(type_, stream)) < count:
                await asyncio.sleep(0.01)
        return found

    async def close(self) -> None:
        """Stop everything."""
        for process in self.processes:
            process.go_on()
            await process.service.stop()
        await self.writer.stop()
        self.log.close()


__all__ = ["DISPATCH", "STREAMS"]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A world with nothing in it but topics."""
    made = World()
    await made.writer.start()
    yield made
    await made.close()
