"""Transactions under crash: deciders killed or stopped between any two steps, with readers who look all the time.

A reader of committed records never sees half a round, nor a round that is not committed in the end; rounds are numbered
without a gap or a repetition; what was read is answered once.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from aiokafka import TopicPartition
from tests.simulation.log.stage import Stage, topic

from evenflow.sim.process import PROCESS

ROUNDS = 8
INPUTS = 12
#: A little more than the callbacks of an undisturbed life.
STEPS = 84
STATE = TopicPartition("state", 0)
TOPICS = [topic("in", 2), topic("a", 3), topic("b"), topic("state", 1, cleanup_policy="compact")]


async def restored(transport):
    """The last round that is committed, read as a new leader reads: ids first, then to the end."""
    reader = transport.consumer(client_id="restore", auto_offset_reset="none")
    await reader.start()
    reader.assign([STATE])
    end = (await reader.end_offsets([STATE]))[STATE]
    await reader.seek_to_beginning(STATE)
    number = 0
    while await reader.position(STATE) < end:
        for records in (await reader.getmany(STATE, timeout_ms=50)).values():
            number = int(records[-1].value)
    await reader.stop()
    return number


async def decider(stage, transport):
    """Rounds of four records over three topics; the process ends at any error, as a leader does."""
    ids = [transport.producer(client_id="decider", transactional_id=f"pool-{n}") for n in range(2)]
    for producer in ids:
        await producer.start()
    number = await restored(transport)
    while number < ROUNDS:
        number += 1
        producer = ids[number % 2]
        await producer.begin_transaction()
        sends = [await producer.send("a", b"%d" % number, key=b"%d-%d" % (number, copy)) for copy in range(2)]
        sends.append(await producer.send("b", b"%d" % number))
        for sent in sends:
            await sent
        await asyncio.sleep(PROCESS.get().random.random() * 0.01)
        await producer.send_and_wait("state", b"%d" % number, key=b"pool")
        await producer.commit_transaction()
        await asyncio.sleep(PROCESS.get().random.random() * 0.02)


async def reader(stage, transport):
    """Looks at all topics at once, and compares what it has of them after each look."""
    consumer = transport.consumer("a", "b", "state", client_id="reader")
    await consumer.start()
    stage.seen = {name: Counter() for name in ("a", "b", "state")}
    while True:
        for key, records in (await consumer.getmany(timeout_ms=1_000)).items():
            stage.seen[key.topic].update(int(record.value) for record in records)
        if stage.seen["a"] != stage.seen["b"] + stage.seen["b"] or stage.seen["b"] != stage.seen["state"]:
            stage.failures.append(f"half a round at {stage.loop.time():.4f}: {stage.seen}")


def rounds_are_exact(stage):
    assert stage.failures == []
    every = Counter(range(1, ROUNDS + 1))
    assert {name: Counter(int(r.value) for r in stage.committed(name)) for name in ("a", "b", "state")} == {
        "a": every + every,
        "b": every,
        "state": every,
    }
    assert stage.seen == {"a": every + every, "b": every, "state": every}


def run_rounds(seed, at, happens, after_s=1.0):
    """A decider to which something happens before its callback number `at`, and a standby that comes later."""
    stage = Stage(seed, *TOPICS)
    stage.start("reader", reader)
    stage.start("decider", decider, 0.5)
    stage.loop.kill_at("decider", at, lambda _process: happens(stage))
    stage.run(lambda: len(stage.committed("b")) >= ROUNDS, after_s=after_s)
    return stage


@pytest.mark.parametrize("seed", range(4))
def test_a_decider_may_be_killed_between_any_two_steps(seed):
    """Proves atomicity under crash: whatever the step, no reader sees half a round, none is lost or doubled."""
    for at in range(1, STEPS):
        rounds_are_exact(run_rounds(seed, at, lambda stage: stage.kill("decider", decider)))


@pytest.mark.parametrize("seed", range(3))
def test_a_decider_may_stand_still_between_any_two_steps(seed):
    """Proves the fence: a stopped decider that wakes beside its successor writes nothing any more."""

    def stop(stage):
        stage.pause("decider", 3.0)
        stage.later(1.0, stage.start, "standby", decider, 0.5)

    fenced = 0
    for at in range(1, STEPS):
        stage = run_rounds(seed, at, stop, after_s=5.0)
        rounds_are_exact(stage)
        fenced += any("Fenced" in end for end in stage.ends)
    assert fenced > STEPS // 3


async def sender(stage, transport):
    """Every input once."""
    producer = transport.producer(client_id="sender")
    await producer.start()
    for number in range(INPUTS):
        await producer.send_and_wait("in", b"%d" % number, partition=number % 2)
        await asyncio.sleep(0.01)


async def copier(stage, transport):
    """Reads with a group, answers and commits in one transaction; takes its id before it asks where to begin."""
    producer = transport.producer(client_id="copier", transactional_id="copier")
    await producer.start()
    consumer = transport.consumer(client_id="copier", group_id="copier")
    await consumer.start()
    keys = [TopicPartition("in", number) for number in range(2)]
    consumer.assign(keys)
    await consumer.seek_to_committed(*keys)
    while True:
        batches = await consumer.getmany(timeout_ms=1_000, max_records=3)
        if not batches:
            continue
        await producer.begin_transaction()
        for records in batches.values():
            for record in records:
                await producer.send_and_wait("b", record.value, key=record.value)
        offsets = {key: records[-1].offset + 1 for key, records in batches.items()}
        await producer.send_offsets_to_transaction(offsets, "copier")
        await producer.commit_transaction()


async def watcher(stage, transport):
    """Each answer that it sees must be the only one."""
    consumer = transport.consumer("b", client_id="watcher")
    await consumer.start()
    stage.seen = Counter()
    async for record in consumer:
        stage.seen[int(record.value)] += 1


@pytest.mark.parametrize("seed", range(3))
def test_offsets_and_answers_move_together_whatever_step_a_copier_dies_at(seed):
    """Proves exactly once from input to answer: offsets in the transaction are never ahead of what it wrote."""
    for at in range(1, STEPS):
        stage = Stage(seed, *TOPICS)
        stage.start("sender", sender)
        stage.start("watcher", watcher)
        stage.start("copier", copier, 0.5)
        stage.loop.kill_at("copier", at, lambda _process, stage=stage: stage.kill("copier", copier))
        stage.run(lambda stage=stage: len(stage.committed("b")) >= INPUTS)
        assert stage.seen == Counter(range(INPUTS))


async def careless(stage, transport):
    """Rounds of a decider without a fence: it takes a new id at each start."""
    producer = transport.producer(client_id="careless", transactional_id=f"own-{PROCESS.get().incarnation}")
    await producer.start()
    number = await restored(transport)
    while number < ROUNDS:
        number += 1
        await producer.begin_transaction()
        for name in ("a", "a", "b", "state"):
            await producer.send_and_wait(name, b"%d" % number, key=b"%d" % number)
            await asyncio.sleep(0.005)
        await producer.commit_transaction()


def test_a_decider_without_a_fence_is_found_out():
    """Proves that the sweep can fail: where nobody is fenced, a woken decider doubles rounds."""
    doubled = 0
    for at in range(10, 60, 5):
        stage = Stage(at, *TOPICS)
        stage.start("decider", careless)

        def stop(_process, stage=stage):
            stage.pause("decider", 0.5)
            stage.later(0.1, stage.start, "standby", careless)

        stage.loop.kill_at("decider", at, stop)
        stage.run(lambda stage=stage: len(stage.committed("b")) >= ROUNDS, after_s=20)
        doubled += Counter(int(r.value) for r in stage.committed("b")) != Counter(range(1, ROUNDS + 1))
    assert doubled > 0
