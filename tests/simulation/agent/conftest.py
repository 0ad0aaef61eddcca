"""One node, one gateway, one log in memory, on virtual time: the world of the agent's tests."""

from __future__ import annotations

import contextvars
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from evenflow.agent.clients.exchange import Direct, HttpRequest, HttpResponse
from evenflow.agent.clients.gateway import HttpGateway
from evenflow.agent.executors.machine import PlainMachine
from evenflow.agent.executors.simulated import SimulatedExecutor
from evenflow.agent.main import build_agent
from evenflow.agent.ports import Surroundings
from evenflow.agent.service import AgentService
from evenflow.agent.settings import AgentSettings
from evenflow.agent.stores import MemoryDisk
from evenflow.core.errors import Unavailable
from evenflow.core.lifecycle.attempt import Wish
from evenflow.events import streams
from evenflow.events.contracts.placement import AttemptDesired, DeviceShare, MemberPlace
from evenflow.events.documents.node import parse_node
from evenflow.gateway.main import build
from evenflow.gateway.settings import GatewaySettings
from evenflow.platform.broker.codec import Fact, Received
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.platform.broker.follower import Follower
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.runtime import Runtime
from evenflow.platform.security.identity import key_from_seed
from evenflow.platform.stores.memory import MemoryDocuments, MemoryLiveLoad, MemoryObjects
from evenflow.sim.clock import SimulatedClock, SimulatedIds
from evenflow.sim.guard import guarded
from evenflow.sim.loop import VirtualLoop
from evenflow.sim.process import PROCESS, Process

EPOCH_MS = 1_767_225_600_000
NODE = {"id": "n1", "site": "east", "devices": {"model": "a100-80g", "count": 2}}
READ = (streams.RUNS, streams.TELEMETRY, streams.PROBES, streams.TRANSFERS, streams.ALERTS)


class Quiet:
    """A log that keeps warnings and errors."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def debug(self, event: str, **fields: object) -> None:
        pass

    info = debug

    def warning(self, event: str, **fields: object) -> None:
        self.lines.append(f"{event} {fields}")

    error = warning


class World:
    """The node's world; `run` starts an agent incarnation, `kill` ends one without a word."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.clock = SimulatedClock(loop, EPOCH_MS)
        self.embedded = EmbeddedLog(clock=self.clock)
        self.embedded.provision(streams.topics())
        self.documents = MemoryDocuments()
        self.objects = MemoryObjects()
        self.log = Quiet()
        self.machine = PlainMachine(parse_node(NODE), self.clock)
        self.disk = MemoryDisk()
        self.seen: list[Received] = []
        self.cut = False
        self.hang = False
        self.requests: list[HttpRequest] = []
        self.lose_answers = 0
        self.incarnations = 0
        self.process: Process | None = None
        self.agent: AgentService | None = None
        self.settings = AgentSettings()
        self.token = "join-me"

    def runtime(self, name: str) -> Runtime:
        process = Process(name, 1, random.Random(1))
        ids = SimulatedIds(process)
        return Runtime(
            name=name,
            instance=process.instance,
            clock=self.clock,
            ids=ids,
            random=random.Random(2),
            transport=EmbeddedTransport(self.embedded, clock=self.clock, ids=ids),
            documents=self.documents,
            live=MemoryLiveLoad(),
            objects=self.objects,
            log=self.log,
        )

    async def begin(self, **settings: Any) -> None:
        gateway = GatewaySettings(token="join-me", secret="ab" * 32, **settings)
        self.gateway = build(self.runtime("gateway"), gateway)
        await self.gateway.start()
        self.outlet = Outlet(self.runtime("placement"))
        await self.outlet.start()
        self.follower = Follower(self.runtime("reader"), READ, self.seen.append, self.gateway.end)
        await self.follower.start()

    async def exchange(self, request: HttpRequest, *, timeout_ms: int) -> HttpResponse:
        if self.cut:
            raise Unavailable("cut off")
        if self.hang:
            await self.clock.sleep(timeout_ms / 1000)
            raise Unavailable("no answer")
        self.requests.append(request)
        answer = await Direct(lambda: self.gateway.app)(request, timeout_ms=timeout_ms)
        if self.hang:  # the answer of a request that was under way is lost too
            await self.clock.sleep(timeout_ms / 1000)
            raise Unavailable("no answer")
        if self.lose_answers and request.method == "POST":
            self.lose_answers -= 1
            raise Unavailable("the answer was lost")
        return answer

    def surroundings(self, point: Any = None) -> Surroundings:
        self.incarnations += 1
        key = key_from_seed("n1")
        more = {} if point is None else {"point": point}
        return Surroundings(
            node="n1",
            document=NODE,
            instance=f"agent-n1.{self.incarnations}",
            clock=self.clock,
            ids=SimulatedIds(Process("agent-n1", self.incarnations, random.Random(3))),
            random=random.Random(self.incarnations),
            objects=self.objects,
            gateway=HttpGateway(self.exchange, node="n1", key=key, token=self.token),
            disk=self.disk,
            machine=self.machine,
            key=key,
            log=self.log,
            simulated=SimulatedExecutor(self.machine),
            **more,
        )

    async def run(self, point: Any = None) -> AgentService:
        around = self.surroundings(point)
        self.process = Process("agent-n1", self.incarnations, random.Random(4))
        context = contextvars.copy_context()
        context.run(PROCESS.set, self.process)
        self.agent = build_agent(around, self.settings)
        await self.loop.create_task(self.agent.start(), context=context)
        return self.agent

    def kill(self) -> None:
        assert self.process is not None
        self.loop.kill(self.process)

    async def at(self, seconds: float) -> None:
        await self.clock.sleep(max(0.0, seconds - self.loop.time()))

    def desired(self, task: str = "t1", *, attempt: int = 1, member: int = 0, wish: Wish = Wish.RUN, epoch: int = 1,
                device: int = 0, milli: int = 1000, **more: Any) -> AttemptDesired:  # fmt: skip
        specification = {"id": task, **more.pop("specification", {"run": {"work_s": 60}})}
        return AttemptDesired(
            tenant="default",
            task=task,
            queue="default",
            pool="main",
            epoch=epoch,
            attempt=attempt,
            generation=attempt,
            wish=wish,
            place=MemberPlace(
                member=member,
                node="n1",
                site="east",
                devices=(DeviceShare(index=device, milli=milli),),
                cpu_milli=1000,
                memory_bytes=2**30,
                disk_bytes=0,
            ),
            specification=specification,
            **more,
        )

    async def desire(self, *bodies: AttemptDesired) -> None:
        await self.outlet.publish(*(Fact(streams.DISPATCH, body) for body in bodies))

    async def undesire(self, task: str = "t1", attempt: int = 1, member: int = 0) -> None:
        await self.outlet.publish(Fact(streams.DISPATCH, None, key=f"n1/default/{task}/{attempt}/{member}", id="gone"))

    def said(self, stream: streams.Stream = streams.RUNS) -> list[tuple[float, str, Any]]:
        """(seconds, type, body) of what is on a stream, by the agent's clock."""
        return [
            ((one.envelope.time_ms - EPOCH_MS) / 1000, one.envelope.type, one.body)
            for one in self.seen
            if one.topic == stream.name
        ]

    def receipts(self, task: str = "t1") -> list[tuple[float, str]]:
        return [(at, kind.removeprefix("attempt.")) for at, kind, body in self.said() if body.task == task]

    def body(self, kind: str, task: str = "t1") -> Any:
        return next(body for _, name, body in self.said() if name == f"attempt.{kind}" and body.task == task)


Main = Callable[[World], Coroutine[Any, Any, None]]


@pytest.fixture
def play() -> Callable[[Main], World]:
    """Run a story in a fresh world on virtual time, with no thread and no socket."""

    def run(main: Main, **begin: Any) -> World:
        loop = VirtualLoop()
        world: list[World] = []

        async def story() -> None:
            world.append(World(loop))
            await world[0].begin(**begin)
            await main(world[0])

        with guarded():
            try:
                loop.run_until_complete(story())
            finally:
                if world and world[0].process is not None:
                    world[0].kill()
                loop.bury()
                loop.close()
        return world[0]

    return run
