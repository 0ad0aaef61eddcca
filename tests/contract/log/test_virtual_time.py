"""The log under the simulation's loop: no wall clock, crashes between any two steps, the same run for the same seed."""

from __future__ import annotations

import asyncio
import contextvars
import random

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError
from tests.contract.log.conftest import Settings

from evenflow.platform.broker.embedded.hooks import Hooks
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.sim.clock import SimulatedClock, SimulatedIds
from evenflow.sim.guard import guarded
from evenflow.sim.loop import VirtualLoop
from evenflow.sim.process import PROCESS, Process, process_of
from evenflow.sim.seam import ordered_anyio

EPOCH_MS = 1_800_000_000_000
COUNT = 40
JSON = [("content-type", b"application/json")]


class Late:
    """Draws when a record reaches a group; never lets one overtake another within a partition."""

    def __init__(self, loop, seed):
        self.loop, self.seed, self.due = loop, seed, {}
        self.world = contextvars.copy_context()

    def reached(self, group_id, partition, position, end, wake):
        due = self.due.setdefault((group_id, partition), [])
        while len(due) < end:
            name = f"{self.seed}/{group_id}/{partition}/{len(due)}"
            due.append(max([*due[-1:], self.loop.time() + random.Random(name).random() * 0.05]))
        for offset in range(position, end):
            if due[offset] > self.loop.time():
                self.loop.call_at(due[offset], wake, context=self.world)
                return offset
        return end


class World:
    """Processes on one log in virtual time."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.loop = VirtualLoop(random.Random(seed))
        self.hooks = Hooks(delivery=Late(self.loop, seed), patient_polls=True)
        self.log = EmbeddedLog(clock=SimulatedClock(self.loop, EPOCH_MS), hooks=self.hooks)
        self.log.provision([Settings("in", 4), Settings("out", 4), Settings("state", 1)])
        self.context = contextvars.copy_context()
        self.processes: dict[str, tuple[Process, EmbeddedTransport]] = {}
        self.count = 0
        self.trace: list[object] = []

    def start(self, name, service):
        self.count += 1
        process = process_of(self.seed, name, self.count)
        transport = EmbeddedTransport(
            self.log, clock=SimulatedClock(self.loop, EPOCH_MS, process), ids=SimulatedIds(process)
        )
        self.processes[name] = (process, transport)
        context = self.context.copy()
        context.run(PROCESS.set, process)
        return self.loop.create_task(service(self, transport), context=context)

    def crash(self, name, service, back_s=1.0):
        process, transport = self.processes[name]
        self.loop.kill(process)
        transport.lost_contact()
        self.later(back_s, self.start, name, service)

    def pause(self, name, for_s):
        process, transport = self.processes[name]
        self.loop.pause(process)
        transport.lost_contact()

        def back():
            if not process.dead:
                self.loop.resume(process)
                transport.regained()

        self.later(for_s, back)

    def later(self, seconds, call, *args):
        self.loop.call_later(seconds, call, *args, context=self.context)

    def run(self, until, within_s=120.0):
        async def wait():
            async with asyncio.timeout(within_s):
                while not until():
                    await asyncio.sleep(0.05)
            await asyncio.sleep(2)

        try:
            with guarded(), ordered_anyio():
                self.loop.run_until_complete(wait())
        finally:
            for process, _ in self.processes.values():
                self.loop.kill(process)
            self.loop.bury()
            self.loop.close()

    def records(self, topic):
        return [r for p in self.log.topics[topic].partitions for r in p.read(p.start, p.next, 10_000)]

    def dump(self):
        rows = [
            (r.topic, r.partition, r.offset, r.timestamp, r.key, r.value, r.headers, r.kind)
            for t in ("in", "out", "state")
            for r in self.records(t)
        ]
        return rows, self.loop.time(), self.trace


async def sender(world, transport):
    """Sends every number once it is alive, and again when it can't know."""
    producer = transport.producer(client_id="sender")
    await producer.start()
    for n in range(COUNT):
        await producer.send_and_wait("in", b'{"n":%d}' % n, key=b"key-%d" % (n % 7), headers=JSON)
        await asyncio.sleep(0.15)


async def worker(world, transport):
    """FastStream's way: copies a record, and fails now and then."""
    broker = transport.broker(client_id="worker")
    chance = PROCESS.get().random

    @broker.subscriber("in", group_id="work", max_workers=2, session_timeout_ms=1_000)
    async def copy(body: dict):
        await asyncio.sleep(chance.random() * 0.02)
        if chance.random() < 0.1:
            raise ValueError
        await broker.publish(body, topic="out", key=b"key-%d" % (body["n"] % 7), correlation_id=f"c{body['n']}")

    await broker.start()


async def decider(world, transport):
    """Placement's way: two ids in turn, state and offsets in the log, the process ends at any error."""
    producers = [transport.producer(client_id="decider", transactional_id=f"pool-{n}") for n in range(2)]
    for producer in producers:
        await producer.start()
    reader = transport.consumer(client_id="restore")
    state = TopicPartition("state", 0)
    await reader.start()
    reader.assign([state])
    end = (await reader.end_offsets([state]))[state]
    round_number, offsets = 0, {}
    while await reader.position(state) < end:
        for batch in (await reader.getmany(timeout_ms=50)).values():
            for record in batch:
                number, *places = (int(part) for part in record.value.split())
                round_number, offsets = number, dict(enumerate(places))
    inputs = transport.consumer(client_id="inputs")
    await inputs.start()
    keys = [TopicPartition("in", n) for n in range(4)]
    inputs.assign(keys)
    for key in keys:
        inputs.seek(key, offsets.get(key.partition, 0))
    while True:
        batches = await inputs.getmany(timeout_ms=200, max_records=5)
        for key, records in batches.items():
            offsets[key.partition] = records[-1].offset + 1
        producer = producers[(round_number + 1) % 2]
        try:
            await producer.begin_transaction()
            for records in batches.values():
                for record in records:
                    await producer.send_and_wait("out", record.value, key=record.key)
                    await asyncio.sleep(PROCESS.get().random.random() * 0.2)
            places = b" ".join(b"%d" % offsets.get(n, 0) for n in range(4))
            await producer.send_and_wait("state", b"%d %s" % (round_number + 1, places), key=b"offsets", partition=0)
            await producer.commit_transaction()
        except (KafkaError, AssertionError) as error:
            world.trace.append(("ended", type(error).__name__))
            return
        round_number += 1


def faults(world, name, service):
    """A few crashes and pauses at drawn times."""
    draws = random.Random(f"faults/{world.seed}")
    at = 0.0
    for _ in range(4):
        at += 0.1 + draws.random() * 2.5
        if draws.random() < 0.5:
            world.later(at, world.crash, name, service, 0.2 + draws.random())
        else:
            world.later(at, world.pause, name, 0.2 + draws.random() * 3)


def run_workers(seed, *, kill_at=None):
    world = World(seed)
    world.start("sender", sender)
    world.start("a", worker)
    world.start("b", worker)
    if kill_at is None:
        faults(world, "a", worker)
    else:
        world.loop.kill_at("a", kill_at, lambda process: world.crash("a", worker))
    world.run(
        lambda: (
            {r.value for r in world.records("out")} >= {r.value for r in world.records("in")}
            and len(world.records("in")) == COUNT
        )
    )
    return world


def run_deciders(seed):
    world = World(seed)
    world.start("sender", sender)
    world.start("leader", decider)
    faults(world, "leader", decider)
    world.later(1.0 + seed % 3, world.start, "standby", decider)

    def restarted():
        if len(decided(world)) < COUNT:
            world.start("standby", decider)
            world.later(4.0, restarted)

    world.later(8.0, restarted)
    world.run(lambda: len(decided(world)) >= COUNT)
    return world


def decided(world):
    return [r.value for p in world.log.topics["out"].partitions for r in p.read(0, p.stable, 10_000) if r.kind == 0]


@pytest.mark.parametrize("seed", range(12))
def test_every_record_is_handled_whatever_crashes_or_stands_still(seed):
    """Proves at least once with order: no record of a group is lost to a crash, a pause or a rebalance."""
    world = run_workers(seed)
    first_seen: dict[bytes, list[bytes]] = {}
    for record in world.records("out"):
        first_seen.setdefault(record.key, []).append(record.value)
    for key, values in first_seen.items():
        sent = [r.value for r in world.records("in") if r.key == key]
        assert list(dict.fromkeys(values)) == [v for v in sent if v in values]


@pytest.mark.parametrize("callback", range(1, 200, 9))
def test_a_worker_may_be_killed_between_any_two_steps(callback):
    """Proves that no step, from start to acknowledgement, loses a record or hangs the group when it is the last."""
    run_workers(7, kill_at=callback)


@pytest.mark.parametrize("seed", range(12))
def test_decisions_are_made_once_whatever_crashes_or_stands_still(seed):
    """Proves exactly once through the log: take-overs, zombies and kills in mid-round neither double nor lose one."""
    world = run_deciders(seed)
    made = decided(world)
    assert sorted(made) == sorted(b'{"n":%d}' % n for n in range(COUNT))


def test_the_same_seed_is_the_same_run():
    """Proves determinism: every byte, time and place is equal, after other worlds and with a stirred heap."""
    runs = []
    for _ in range(2):
        junk = [bytearray(random.SystemRandom().randrange(2_000)) for _ in range(3_000)]
        runs.append((run_workers(3).dump(), run_deciders(3).dump()))
        run_workers(4)
        del junk[::2]
    assert runs[0] == runs[1]
