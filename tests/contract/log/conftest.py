"""One log of every kind, so that one suite runs on all of them.

The embedded log in memory and in a file are always there. A Kafka cluster joins when EVENFLOW_TEST_KAFKA_URL names
one (kafka://host:port), and is the only one with --servers. What only the embedded log can do (hooks, restarts) asks
for `embedded` and says so.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import itertools
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition

from evenflow.platform.broker.embedded.clients.producer import EmbeddedProducer
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.platform.broker.factory import make_log, make_transport
from evenflow.testkit.servers.plugin import backends

_numbers = itertools.count(1)
_run = f"{os.getpid():x}"


class StoppableClock:
    """A wall clock that a test may move; sleeping takes real time."""

    def __init__(self) -> None:
        self.ms = 1_800_000_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class CountedIds:
    def new_id(self) -> str:
        return f"id-{next(_numbers)}"


@dataclass(frozen=True)
class Settings:
    """What the registry says of a topic."""

    name: str
    partitions: int = 1
    configs: dict[str, str] = field(default_factory=dict)


class Cluster:
    """A log under test, its processes, and how to speak to it briefly.

    `session_ms` is the shortest session that can be used; `settle_s` how long an effect of the log's own may take.
    """

    kind = "kafka"
    session_ms = 6_000
    settle_s = 15.0

    def __init__(self, url: str) -> None:
        self.url = url
        self.clock: Any = StoppableClock()
        self._clients: list[Any] = []
        self.transport = self.process()

    def process(self, **settings: Any) -> Any:
        """The transport of one more process."""
        return make_transport(self.url, clock=self.clock, ids=CountedIds(), **settings)

    def name(self, stem: str) -> str:
        """A name no other test has."""
        return f"{stem}-{_run}-{next(_numbers)}"

    async def topic(self, partitions: int = 1, **configs: str) -> str:
        """A new topic; settings with underscores for dots."""
        name = self.name("topic")
        dotted = {key.replace("_", "."): value for key, value in configs.items()}
        await self.transport.provision([Settings(name, partitions, dotted)])
        return name

    async def producer(self, transactional_id: str | None = None, process: Any = None) -> Any:
        """A started producer."""
        made = (process or self.transport).producer(client_id="writer", transactional_id=transactional_id)
        await made.start()
        self._clients.append(made)
        return made

    async def writer(self, **settings: Any) -> Any:
        """A started producer with settings of aiokafka's that the product leaves alone."""
        made = self._writer(**settings)
        await made.start()
        self._clients.append(made)
        return made

    def _writer(self, **settings: Any) -> Any:
        common = self.transport._common("writer")
        return AIOKafkaProducer(**common, acks="all", enable_idempotence=True, retry_backoff_ms=5, **settings)

    def consumer(self, *topics: str, process: Any = None, **settings: Any) -> Any:
        """A consumer that is not started."""
        made = (process or self.transport).consumer(*topics, client_id="reader", **settings)
        self._clients.append(made)
        return made

    async def started(self, *topics: str, process: Any = None, **settings: Any) -> Any:
        """A started consumer."""
        made = self.consumer(*topics, process=process, **settings)
        await asyncio.wait_for(made.start(), 30)
        return made

    async def read(self, consumer: Any, count: int, within_s: float = 10.0) -> list[Any]:
        """At least `count` records, in the order read."""
        records: list[Any] = []
        async with asyncio.timeout(within_s):
            while len(records) < count:
                for batch in (await consumer.getmany(timeout_ms=200)).values():
                    records += batch
        return records

    async def values(self, topic: str, count: int, isolation: str = "read_committed") -> list[bytes]:
        """The values of a topic of one partition."""
        reader = await self.started(topic, isolation_level=isolation)
        records = await self.read(reader, count) if count else await self.quiet(reader)
        await reader.stop()
        return [record.value for record in records]

    async def quiet(self, consumer: Any, timeout_ms: int = 100) -> list[Any]:
        """What a short poll gives."""
        answer = await consumer.getmany(timeout_ms=timeout_ms)
        return [record for batch in answer.values() for record in batch]

    async def until(self, check: Callable[[], Any], within_s: float = 10.0) -> None:
        """Wait for something that happens by itself."""
        async with asyncio.timeout(within_s):
            while True:
                answer = check()
                if await answer if inspect.isawaitable(answer) else answer:
                    return
                await asyncio.sleep(0.005)

    async def age(self, ms: int) -> None:
        """Let what was written become older."""
        await asyncio.sleep(ms / 1000)

    async def cleaned(self, topic: str, check: Callable[[], Any]) -> None:
        """Wait until the log's own cleaning has made something true.

        Kafka never cleans the segment that is being written, and begins another only with a record: so one is written
        again and again, under the key `tick`.
        """
        writer = await self.producer()
        async with asyncio.timeout(self.settle_s):
            while not await check():
                await self.clean_once(topic, writer)

    async def clean_once(self, topic: str, writer: Any) -> None:
        """One chance to clean, after one tick."""
        await asyncio.sleep(0.15)
        await writer.send_and_wait(topic, b"tick", key=b"tick", partition=0)

    async def kept(self, topic: str, isolation: str = "read_committed") -> list[tuple[int, bytes, bytes | None]]:
        """Offset, key and value of what a topic of one partition holds up to now, without ticks."""
        reader = await self.started(topic, isolation_level=isolation)
        place = TopicPartition(topic, 0)
        end, records = (await reader.end_offsets([place]))[place], []
        async with asyncio.timeout(self.settle_s):
            while await reader.position(place) < end:
                records += await self.quiet(reader, 50)
        await reader.stop()
        return [(r.offset, r.key, r.value) for r in records if r.key != b"tick"]

    async def close(self) -> None:
        for client in reversed(self._clients):
            await client.stop()
        await self.transport.close()
        self._clients.clear()
        if self.kind == "kafka":
            gc.collect()  # aiokafka leaves futures of a fenced producer unread: let them complain here, not later


class EmbeddedCluster(Cluster):
    """The embedded log; processes share it."""

    kind = "embedded"
    session_ms = 200
    settle_s = 2.0

    def __init__(self, url: str) -> None:
        self.clock = StoppableClock()
        self.log: EmbeddedLog = make_log(url, clock=self.clock)
        super().__init__(url)
        self.clock = self.log.clock

    def process(self, transaction_timeout_ms: int = 30_000, **settings: Any) -> EmbeddedTransport:
        settings = {"transaction_timeout_ms": transaction_timeout_ms, **settings}
        return EmbeddedTransport(self.log, clock=self.log.clock, ids=CountedIds(), **settings)

    def _writer(self, **settings: Any) -> Any:
        return EmbeddedProducer(self.log, clock=self.log.clock, **settings)

    async def age(self, ms: int) -> None:
        self.clock.ms += ms

    async def clean_once(self, topic: str, writer: Any) -> None:
        await writer.send_and_wait(topic, b"tick", key=b"tick", partition=0)
        await self.transport.retention.step()


def _cluster(url: str) -> Cluster:
    return EmbeddedCluster(url) if url.startswith("embedded:") else Cluster(url)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    here = {"embedded-memory": "embedded:", "embedded-file": "embedded:FOLDER"}
    backends(metafunc, "cluster", here, {"kafka": "kafka"})


@pytest.fixture
async def cluster(backend_url: str, tmp_path: Path) -> AsyncIterator[Cluster]:
    """A log of each kind."""
    made = _cluster(backend_url.replace("FOLDER", str(tmp_path)))
    yield made
    await made.close()


@pytest.fixture(params=["embedded:", "embedded:FOLDER"], ids=["embedded-memory", "embedded-file"])
async def embedded(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    """The embedded log, for what only it can do."""
    made = EmbeddedCluster(str(request.param).replace("FOLDER", str(tmp_path)))
    yield made
    await made.close()
