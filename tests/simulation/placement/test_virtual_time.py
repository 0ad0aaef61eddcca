"""Placement on virtual time: killed and stopped between any two steps, with a standby and an honest agent.

Whatever happens to the deciders, each task is assigned once and ends once, rounds are numbered without a gap or a
repetition, and the same seed writes the same bytes.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import random
from collections import Counter
from typing import Any

import pytest
import structlog
from aiokafka import TopicPartition

from evenflow.core.errors import Ended
from evenflow.events.contract import Contract
from evenflow.events.contracts import agent, inventory, tasks
from evenflow.events.envelope import AgentStamp
from evenflow.events.streams import ASSIGNMENTS, DISPATCH, NODES, PLACEMENT_STATE, ROUNDS, RUNS, TASKS, Stream, topics
from evenflow.placement.main import build
from evenflow.placement.settings import PlacementSettings
from evenflow.platform.broker.codec import Fact, Received, decode, encode
from evenflow.platform.broker.embedded.hooks import Hooks
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.platform.runtime import Runtime
from evenflow.platform.stores.memory import MemoryObjects
from evenflow.sim.clock import SimulatedClock, SimulatedIds
from evenflow.sim.guard import guarded
from evenflow.sim.loop import VirtualLoop
from evenflow.sim.process import PROCESS, Process, process_of
from evenflow.sim.seam import ordered_anyio

EPOCH_MS = 1_767_225_600_000
TASK_COUNT = 24
SESSION_MS = 2_000


class World:
    """Two supervised placement processes, one agent for all nodes, one log, one clock."""

    def __init__(self, seed: int, **settings: Any) -> None:
        self.seed = seed
        self.settings = {"session_timeout_ms": SESSION_MS, "snapshot_period_ms": 3_000, **settings}
        self.loop = VirtualLoop(random.Random(seed))
        self.clock = SimulatedClock(self.loop, EPOCH_MS)
        self.log = EmbeddedLog(clock=self.clock, hooks=Hooks(patient_polls=True))
        self.log.provision(topics())
        self.objects = MemoryObjects()
        self.context = contextvars.copy_context()
        self.processes: dict[str, tuple[Process, EmbeddedTransport, Any]] = {}
        self.exits: list[int] = []
        self.points: Counter[str] = Counter()
        self.kill_at: dict[str, int] = {}
        self.count = 0

    # --- processes ----------------------------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        """Start a process, and start it again whenever it ends."""
        self.count += 1
        process = process_of(self.seed, name, self.count)
        clock, ids = SimulatedClock(self.loop, EPOCH_MS, process), SimulatedIds(process)
        transport = EmbeddedTransport(self.log, clock=clock, ids=ids)
        runtime = Runtime(
            "placement", process.instance, clock, ids, process.random, transport, None, None, self.objects,  # type: ignore[arg-type]  # placement uses neither documents nor live load
            structlog.get_logger(), lambda point: self._at(name, point),
        )  # fmt: skip
        context = self.context.copy()
        context.run(PROCESS.set, process)
        service = context.run(build, runtime, PlacementSettings(**self.settings))
        self.processes[name] = (process, transport, service)
        self.loop.create_task(self._life(name, process, service), context=context)

    async def _life(self, name: str, process: Process, service: Any) -> None:
        await service.start()
        try:
            await service.wait()
        except Ended as ended:
            self.exits.append(ended.exit_code)
        self._later(0.5, self._restart, name, process)

    def _restart(self, name: str, process: Process) -> None:
        if self.processes[name][0] is process and not process.dead:
            self.loop.kill(process)
            self.start(name)

    async def _at(self, name: str, point: str) -> None:
        self.points[point] += 1
        if self.kill_at.get(point):
            self.kill_at[point] -= 1
            self._later(0, self.kill, name)
            await asyncio.sleep(0.001)

    def kill(self, name: str) -> None:
        """Kill -9; a supervisor starts it again."""
        process, transport, _ = self.processes[name]
        if process.dead:
            return
        self.loop.kill(process)
        transport.lost_contact()
        self._later(0.5, self.start, name)

    def pause(self, name: str, seconds: float) -> None:
        """A stop signal, and the continue signal later."""
        process, transport, _ = self.processes[name]
        if process.dead or process.paused:
            return
        self.loop.pause(process)
        transport.lost_contact()
        self._later(seconds, self._resume, process, transport)

    def _resume(self, process: Process, transport: EmbeddedTransport) -> None:
        if not process.dead:
            self.loop.resume(process)
            transport.regained()

    def _later(self, seconds: float, call: Any, *args: Any) -> None:
        self.loop.call_later(seconds, call, *args, context=self.context)

    def leader(self) -> str | None:
        """The name of the process that leads."""
        for name, (process, _, service) in self.processes.items():
            if not process.dead and service.leading:
                return name
        return None

    # --- outside ------------------------------------------------------------------------------------------------------

    async def outside(self) -> None:
        """Register nodes, submit tasks now and then, and be the agent of every node."""
        transport = EmbeddedTransport(self.log, clock=self.clock, ids=SimulatedIds(process_of(self.seed, "outside", 1)))
        self.writer = transport.producer(client_id="outside")
        await self.writer.start()
        for number in range(3):
            document = {"id": f"n{number}", "site": "east", "devices": {"model": "a100-80g", "count": 2}}
            status = {"reach": "ok", "administration": "open", "health": "ok"}
            body = inventory.NodeRegistered(node=f"n{number}", revision=1, document=document, session="s", **status)  # type: ignore[arg-type]  # closed lists by name
            await self.tell(NODES, body)
        reader = transport.consumer(DISPATCH.name, client_id="agent")
        await reader.start()
        self.loop.create_task(self._agent(reader))
        for number in range(TASK_COUNT):
            await asyncio.sleep(0.3)
            members = 2 if number % 5 == 0 else 1
            raw = json.dumps({"id": f"t{number}", "members": members, "resources": {"devices": {"count": 1}}})
            await self.tell(TASKS, tasks.TaskSubmitted(raw=raw.encode()), key=f"default/t{number}")

    async def _agent(self, reader: Any) -> None:
        sequence = 0
        done: set[str] = set()
        while True:
            for records in (await reader.getmany(timeout_ms=1_000)).values():
                for record in records:
                    one = decode(record, DISPATCH)
                    if not isinstance(one, Received) or one.body is None or one.key in done:
                        continue
                    done.add(one.key)
                    want: Any = one.body
                    kinds = (agent.AttemptStarted, agent.AttemptSucceeded, agent.AttemptReclaimed)
                    for delay, kind in enumerate(kinds):
                        sequence += 1
                        self._later(0.2 + 0.4 * delay, self._send, kind, want, sequence)

    def _send(self, kind: Any, want: Any, sequence: int) -> None:
        more = {} if kind is agent.AttemptStarted else {"outcome": agent.Outcome(ended_as="succeeded", run_ms=400)}
        body = kind(
            tenant=want.tenant, task=want.task, attempt=want.attempt, generation=want.generation,
            member=want.place.member, epoch=want.epoch, node=want.place.node, at_ms=self.clock.now_ms(), **more,
        )  # fmt: skip
        stamp = AgentStamp(want.place.node, "s", sequence, want.attempt, want.place.member, want.epoch, "ff")
        self.loop.create_task(self.tell(RUNS, body, stamp=stamp), context=self.context)

    async def tell(self, stream: Stream, body: Contract, key: str = "", stamp: AgentStamp | None = None) -> None:
        """Write a fact."""
        self.count += 1
        one = encode(
            Fact(stream, body, key=key, id=f"o{self.count}", stamp=stamp), source="t", now_ms=self.clock.now_ms()
        )
        await self.writer.send_and_wait(one.topic, value=one.value, key=one.key, headers=one.headers)

    def committed(self, stream: Stream) -> list[Any]:
        """Readable records of a stream, in order within partitions, committed ones only."""
        out: list[Any] = []
        for index in range(stream.partitions):
            out += [one for one in self._read(stream, index) if isinstance(one, Received)]
        return out

    def _read(self, stream: Stream, index: int) -> list[Any]:
        async def read() -> list[Any]:
            transport = EmbeddedTransport(self.log, clock=self.clock, ids=SimulatedIds(process_of(1, "r", 1)))
            consumer = transport.consumer(client_id="checker")
            await consumer.start()
            place = TopicPartition(stream.name, index)
            consumer.assign([place])
            end = (await consumer.end_offsets([place]))[place]
            found: list[Any] = []
            while await consumer.position(place) < end:
                for records in (await consumer.getmany(place, timeout_ms=10)).values():
                    found += [decode(record, stream) for record in records]
            await consumer.stop()
            return found

        return self.loop.run_until_complete(read())

    def ended(self) -> int:
        """How many tasks have ended."""
        return sum(one.envelope.type == "task.ended" for one in self.committed(ASSIGNMENTS))

    def run(self, chaos: Any = None, until_s: float = 60.0) -> None:
        """Let the world run, with somebody doing harm for the first fifteen seconds."""
        with guarded(), ordered_anyio():
            self.start("a")
            self.start("b")
            self.loop.create_task(self.outside(), context=self.context.copy())
            if chaos is not None:
                self.loop.create_task(chaos(self), context=self.context.copy())
            self.loop.run_until_complete(asyncio.wait_for(asyncio.sleep(until_s), until_s * 2))

    def close(self) -> None:
        """End of the world."""
        for process, _, _ in self.processes.values():
            self.loop.kill(process)
        self.loop.bury()
        self.loop.close()


def _check(world: World) -> None:
    """Everything that must hold, whatever happened."""
    facts = world.committed(ASSIGNMENTS)
    assigned = Counter(one.key for one in facts if one.envelope.type == "task.assigned")
    ended = Counter(one.key for one in facts if one.envelope.type == "task.ended")
    names = {f"default/t{number}" for number in range(TASK_COUNT)}
    assert set(ended) == names
    assert set(ended.values()) == {1}
    assert assigned == dict.fromkeys(names, 1)
    assert len({one.envelope.id for one in facts}) == len(facts)
    rounds = [one.body for one in world.committed(ROUNDS)]
    numbers = [one.round for one in rounds]
    assert numbers == sorted(set(numbers))
    assert [one.epoch for one in rounds] == sorted(one.epoch for one in rounds)
    newest: dict[str, Any] = {}
    for one in world.committed(DISPATCH):
        newest[one.key] = one.body
    assert all(body is None for body in newest.values())


async def _kills(world: World) -> None:
    chance = random.Random(f"kills {world.seed}")
    for _ in range(12):
        await asyncio.sleep(chance.random() * 2.5)
        world.kill(chance.choice(["a", "b"]))


async def _pauses(world: World) -> None:
    chance = random.Random(f"pauses {world.seed}")
    for _ in range(8):
        await asyncio.sleep(chance.random() * 3)
        leader = world.leader() or "a"
        world.pause(chance.choice([leader, leader, "a", "b"]), chance.choice([0.5, 3.0, 6.0]))


@pytest.mark.parametrize("seed", range(4))
def test_kills_at_any_moment_lose_and_double_nothing(seed: int) -> None:
    """Twelve kills in half a minute, images written every three seconds."""
    world = World(seed)
    world.run(_kills)
    _check(world)
    world.close()


@pytest.mark.parametrize("seed", range(4))
def test_stops_past_the_session_lose_and_double_nothing(seed: int) -> None:
    """A stopped leader is followed by a standby and fenced when it wakes."""
    world = World(seed)
    world.run(_pauses)
    _check(world)
    assert set(world.exits) <= {3, 4}
    world.close()


@pytest.mark.parametrize(
    "point",
    [
        "placement.after-fence-0",
        "placement.after-fence",
        "placement.after-restore",
        "placement.before-round-commit",
        "placement.after-round-commit",
        "placement.before-image",
        "placement.after-image",
    ],
)
def test_a_kill_at_each_fail_point_loses_and_doubles_nothing(point: str) -> None:
    """Three kills at the same point, whoever reaches it."""

    async def at_point(world: World) -> None:
        for _ in range(3):
            await asyncio.sleep(3)
            world.kill_at[point] = 1
            if "fence" in point or "restore" in point:
                world.kill(world.leader() or "a")

    world = World(7)
    world.run(at_point)
    _check(world)
    assert world.points[point] >= 3
    world.close()


def test_the_same_seed_writes_the_same_bytes() -> None:
    """Kills included: every record of the state, twice."""
    dumps = []
    for _ in range(2):
        world = World(3)
        world.run(_kills, until_s=20)
        dumps.append([(one.key, one.value, one.envelope.id) for one in world.committed(PLACEMENT_STATE)])
        world.close()
    assert dumps[0] == dumps[1]
    assert len(dumps[0]) > TASK_COUNT
