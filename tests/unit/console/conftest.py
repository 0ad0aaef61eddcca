"""A console on an embedded log in memory, called without a socket; and records as a fold sees them."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import structlog

from evenflow.console.main import build
from evenflow.console.projection.board import Board
from evenflow.console.settings import ConsoleSettings
from evenflow.events.contract import Contract
from evenflow.events.contracts.placement import (
    AttemptUse,
    DeviceShare,
    MemberPlace,
    ReasonDetail,
    TaskAssigned,
    TaskEnded,
    TaskQueued,
    TaskRequeued,
)
from evenflow.events.contracts.tasks import TaskSubmitted
from evenflow.events.envelope import AgentStamp
from evenflow.events.streams import Stream, topics
from evenflow.platform.broker.codec import Fact, Received, decode, encode
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.platform.clock import RandomIds, SystemClock
from evenflow.platform.runtime import Runtime
from evenflow.platform.service import EventService
from evenflow.platform.stores.memory import MemoryDocuments, MemoryLiveLoad, MemoryObjects

NOW_MS = 1_767_225_600_000


class Quiet:
    """Where log lines go that nobody reads."""

    def msg(self, message: str) -> None:
        pass

    debug = info = warning = error = critical = msg


def runtime_on(log: EmbeddedLog, clock: SystemClock, name: str = "console") -> Runtime:
    ids = RandomIds(clock)
    return Runtime(
        name=name,
        instance=ids.new_id(),
        clock=clock,
        ids=ids,
        random=random.Random(1),
        transport=EmbeddedTransport(log, clock=clock, ids=ids, graceful_timeout_s=1.0),
        documents=MemoryDocuments(),
        live=MemoryLiveLoad(),
        objects=MemoryObjects(),
        log=structlog.wrap_logger(Quiet()),
    )


class Bench:
    """A started console and ways to speak to it and to its log."""

    def __init__(self, host: EventService, runtime: Runtime, client: httpx.AsyncClient) -> None:
        self.host = host
        self.runtime = runtime
        self.client = client

    async def say(self, stream: Stream, body: Contract | None, key: str = "", **more: Any) -> None:
        """Another service states a fact."""
        await self.host.outlet.publish(Fact(stream, body, key=key, **more))

    async def raw(self, topic: str, value: bytes | None, key: bytes = b"k", headers: Any = ()) -> None:
        """Anything at all, straight onto the log."""
        producer = self.runtime.transport.producer(client_id="stranger")
        await producer.start()
        await producer.send_and_wait(topic, value=value, key=key, headers=list(headers))
        await producer.stop()

    async def get(self, path: str, **params: Any) -> Any:
        answer = await self.client.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def until(self, check: Callable[[], bool]) -> None:
        """The console's tables show something."""
        for _ in range(200):
            if check():
                return
            await self.runtime.clock.sleep(0.005)
        pytest.fail("it never showed")

    @property
    def board(self) -> Board:
        return self.host.followers[0]._apply.__self__  # type: ignore[attr-defined]  # the fold's owner


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    clock = SystemClock()
    log = EmbeddedLog(clock=clock)
    log.provision(topics())
    runtime = runtime_on(log, clock)
    host = build(runtime, ConsoleSettings())
    await host.start()
    transport = httpx.ASGITransport(app=host.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield Bench(host, runtime, client)
    await host.stop()


# --- folds ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Read:
    """A record as a consumer gives it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


class Teller:
    """Makes records as a follower gives them, offsets and times counting up."""

    def __init__(self) -> None:
        self._number = itertools.count(1)

    def __call__(self, stream: Stream, body: Contract | None, key: str = "", **more: Any) -> Received:
        number = next(self._number)
        if stream.stamped:
            more = {"stamp": AgentStamp("n1", "s1", number), **more}
        fact = Fact(stream, body, key=key, **more)
        record = encode(fact, source="test", now_ms=NOW_MS + number, new_id=f"e{number}")
        read = Read(
            topic=record.topic,
            partition=0,
            offset=number,
            timestamp=NOW_MS + number,
            key=record.key,
            value=record.value,
            headers=tuple(record.headers),
        )
        received = decode(read, stream)
        assert isinstance(received, Received), received
        return received


@pytest.fixture
def tell() -> Teller:
    return Teller()


@pytest.fixture
def board() -> Board:
    return Board(ConsoleSettings(), "test")


class Facts:
    """Bodies as their owners write them."""

    @staticmethod
    def place(member: int = 0, node: str = "n1", site: str = "east", devices: int = 1) -> MemberPlace:
        shares = tuple(DeviceShare(index=index, milli=1000) for index in range(devices))
        return MemberPlace(
            member=member, node=node, site=site, devices=shares, cpu_milli=1000, memory_bytes=2**30, disk_bytes=0
        )

    @staticmethod
    def submitted(task: str = "t1", **fields: Any) -> TaskSubmitted:
        return TaskSubmitted(raw=json.dumps({"id": task, **fields}).encode())

    @staticmethod
    def queued(
        task: str = "t1", *reasons: ReasonDetail, submitted_ms: int = NOW_MS, queue: str = "research"
    ) -> TaskQueued:
        return TaskQueued(
            tenant="default",
            task=task,
            queue=queue,
            priority=50,
            reasons=reasons,
            position=3,
            submitted_ms=submitted_ms,
        )

    @staticmethod
    def assigned(task: str = "t1", *places: MemberPlace, attempt: int = 1, queue: str = "research") -> TaskAssigned:
        return TaskAssigned(
            tenant="default", task=task, queue=queue, pool="main", epoch=1, round=7, attempt=attempt,
            generation=attempt, members=places or (Facts.place(),), wait_ms=100, submitted_ms=NOW_MS,
        )  # fmt: skip

    @staticmethod
    def use(end: str = "succeeded", attempt: int = 1, cause: str | None = None) -> AttemptUse:
        return AttemptUse(attempt=attempt, generation=attempt, end=end, cause=cause)

    @staticmethod
    def requeued(task: str = "t1", attempt: int = 1) -> TaskRequeued:
        return TaskRequeued(
            tenant="default",
            task=task,
            queue="research",
            epoch=1,
            use=Facts.use("lost", attempt, "node-lost"),
            failure_count=0,
        )

    @staticmethod
    def ended(task: str = "t1", end: str = "succeeded", attempt: int = 1, submitted_ms: int = NOW_MS) -> TaskEnded:
        return TaskEnded(
            tenant="default", task=task, queue="research", epoch=1, end=end, attempt=attempt,
            use=Facts.use(end, attempt), submitted_ms=submitted_ms,
        )  # fmt: skip


@pytest.fixture
def facts() -> type[Facts]:
    return Facts
