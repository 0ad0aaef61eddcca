"""A few services on one in-memory log in virtual time: the shortest way to test one as others see it.

    async def story(pool):
        await pool.start("inventory")
        await pool.publish(Fact(...))
        await pool.pass_s(5)
        assert pool.bodies(streams.NODES)[-1].reach == "ok"

    run(story)

No thread, no socket, no waiting: seconds pass as fast as the code runs.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import structlog
from aiokafka import TopicPartition

from evenflow.events.contract import Contract
from evenflow.events.envelope import AgentStamp
from evenflow.events.streams import BY_NAME, Stream, dead_letters_of, topics
from evenflow.hosting.registry import SERVICES
from evenflow.platform.broker.codec import JSON, Encoded, Fact, Received, Wire, decode
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.storage.memory import MemoryStorage
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.broker.ports import Record
from evenflow.platform.fail_points import FailPoint, no_fail_point
from evenflow.platform.runtime import Runtime
from evenflow.platform.service import Service
from evenflow.platform.stores.memory import MemoryDocuments, MemoryLiveLoad, MemoryObjects
from evenflow.sim.clock import SimulatedClock, SimulatedIds
from evenflow.sim.loop import VirtualLoop
from evenflow.sim.process import process_of

START_MS = 1_767_225_600_000


class Pool:
    """The log, the stores and the services of one story."""

    def __init__(self, loop: VirtualLoop, seed: int, wire: Wire = JSON) -> None:
        self.loop = loop
        self.wire = wire
        self.seed = seed
        self.clock = SimulatedClock(loop, START_MS)
        self.log = EmbeddedLog(clock=self.clock, storage=MemoryStorage())
        self.log.provision(topics())
        self.documents = MemoryDocuments()
        self.live = MemoryLiveLoad()
        self.objects = MemoryObjects()
        self.services: dict[str, Service] = {}
        self._started = 0
        self._sequence = 0
        self._outlet: Outlet | None = None

    def runtime(self, name: str, point: FailPoint = no_fail_point) -> Runtime:
        """The surroundings of one more process."""
        self._started += 1
        process = process_of(self.seed, name, self._started)
        ids = SimulatedIds(process)
        return Runtime(
            name=name,
            instance=str(self._started),
            clock=self.clock,
            ids=ids,
            random=random.Random(self.seed),
            transport=EmbeddedTransport(self.log, clock=self.clock, ids=ids),
            documents=self.documents,
            live=self.live,
            objects=self.objects,
            log=structlog.get_logger().bind(service=name),
            point=point,
            wire=self.wire,
        )

    async def start(self, name: str, *, point: FailPoint = no_fail_point, **settings: Any) -> Service:
        """Start a service by name with some settings other than the defaults."""
        kind = SERVICES[name]
        service = kind.build(self.runtime(name, point), kind.settings(**settings))
        await service.start()
        self.services[name] = service
        return service

    async def stop(self, name: str) -> None:
        """Stop a service."""
        await self.services.pop(name).stop()

    async def publish(self, *facts: Fact) -> None:
        """Write facts as an outsider and give the services a moment."""
        if self._outlet is None:
            self._outlet = Outlet(self.runtime("outsider"))
            await self._outlet.start()
        await self._outlet.publish(*(self._stamped(fact) for fact in facts))
        await self.pass_s(0.05)

    def _stamped(self, fact: Fact) -> Fact:
        """The fact as its node would say it, where only nodes speak and nothing else is said."""
        if not fact.stream.stamped or fact.stamp is not None or fact.body is None:
            return fact
        self._sequence += 1
        node = str(getattr(fact.body, "node", ""))
        return replace(fact, stamp=AgentStamp(node or "n1", "outsider", self._sequence))

    async def publish_raw(
        self, stream: Stream, key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes]] | None = None
    ) -> None:
        """Write any bytes."""
        if self._outlet is None:
            self._outlet = Outlet(self.runtime("outsider"))
            await self._outlet.start()
        await self._outlet.send([Encoded(stream.name, key if key is not None else b"", value, headers or [])])
        await self.pass_s(0.05)

    async def pass_s(self, seconds: float) -> None:
        """Let virtual time pass."""
        await self.clock.sleep(seconds)

    async def records(self, topic: str) -> list[Record]:
        """Every committed record of a topic, partition by partition."""
        consumer = self.runtime("reader").transport.consumer(client_id="reader")
        await consumer.start()
        partitions = [TopicPartition(topic, index) for index in range(_partitions(topic))]
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        await consumer.seek_to_beginning(*partitions)
        found: list[Record] = []
        for partition in partitions:
            while await consumer.position(partition) < ends[partition]:
                for batch in (await consumer.getmany(partition, timeout_ms=10)).values():
                    found += batch
        await consumer.stop()
        return found

    async def facts(self, stream: Stream) -> list[Received]:
        """Every readable record of a stream, in order of time."""
        read = [decode(record, stream) for record in await self.records(stream.name)]
        return sorted((one for one in read if isinstance(one, Received)), key=lambda one: one.timestamp_ms)

    async def bodies(self, stream: Stream, kind: type[Contract] = Contract) -> list[Any]:
        """The bodies of one kind on a stream, in order of time."""
        return [one.body for one in await self.facts(stream) if isinstance(one.body, kind)]

    async def dead_letters(self, stream: Stream) -> list[Record]:
        """What was parked of a stream."""
        return await self.records(dead_letters_of(stream.name))


def _partitions(topic: str) -> int:
    stream = BY_NAME.get(topic)
    return stream.partitions if stream is not None else 1


def caused(fact: Fact, cause: Received) -> Fact:
    """The same fact with a cause."""
    return replace(fact, cause=cause)


def run(story: Callable[[Pool], Awaitable[None]], *, seed: int = 1, wire: Wire = JSON) -> None:
    """Run one story in virtual time, everybody writing on one wire; services left running are stopped."""
    loop = VirtualLoop()

    async def main() -> None:
        pool = Pool(loop, seed, wire)
        await story(pool)
        for name in reversed(list(pool.services)):
            await pool.stop(name)

    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(main())
    finally:
        loop.bury()
        loop.close()
        asyncio.set_event_loop(None)
