"""Compaction, expiry and the archive while writers write and readers read: nobody misses a live key or a fact.

Readers come and go, and are killed in the middle; the cleaner works on between any two of their steps.
"""

from __future__ import annotations

import asyncio
import random

import pytest
from aiokafka import TopicPartition
from tests.simulation.log.stage import EPOCH_MS, Stage, topic

from evenflow.platform.broker.embedded.archive import ObjectArchive, read_archive
from evenflow.platform.broker.embedded.retention import Retention
from evenflow.platform.stores.memory import MemoryObjects
from evenflow.sim.process import PROCESS

KEYS = 12
WRITES = 300
STATE = TopicPartition("state", 0)
FACTS = TopicPartition("facts", 0)
TOPICS = [
    topic("state", cleanup_policy="compact", min_cleanable_dirty_ratio="0.05", delete_retention_ms="400"),
    topic("facts", retention_ms="300"),
]


class Gap:
    """Every call of the object store takes drawn milliseconds, before and after its effect."""

    def __init__(self, seed):
        self.chance = random.Random(f"gap/{seed}")

    async def __call__(self):
        await asyncio.sleep(self.chance.random() * 0.01)


def world(seed):
    """A stage with its cleaner, its archive, and a book of everything that was committed."""
    stage = Stage(seed, *TOPICS)
    stage.objects = MemoryObjects(Gap(seed))
    stage.log.hooks.archive = ObjectArchive(stage.objects, lambda name: name in {"state", "facts"})
    stage.history = []
    stage.facts = 0
    stage.reads = []
    stage.dropped = 0
    stage.done = False
    return stage


async def cleaner(stage, transport):
    retention = Retention(stage.log)
    while True:
        await asyncio.sleep(PROCESS.get().random.random() * 0.02)
        stage.dropped += await retention.step()


async def writer(stage, transport):
    """Changes and deletes keys, in transactions of which some are aborted; facts beside them."""
    chance = PROCESS.get().random
    producer = transport.producer(client_id="writer", transactional_id="writer")
    facts = transport.producer(client_id="facts")
    await producer.start()
    await facts.start()
    while len(stage.history) < WRITES:
        await producer.begin_transaction()
        changes = []
        for _ in range(chance.randint(1, 4)):
            key = b"k%d" % chance.randrange(KEYS)
            value = None if chance.random() < 0.15 else b"%d" % (len(stage.history) + len(changes))
            changes.append(((await producer.send_and_wait("state", value, key=key)).offset, key, value))
            await asyncio.sleep(chance.random() * 0.004)
        if chance.random() < 0.2:
            await producer.abort_transaction()
        else:
            await producer.commit_transaction()
            stage.history += changes
        await facts.send_and_wait("facts", b"%d" % stage.facts)
        stage.facts += 1
    stage.done = True


async def reader(stage, transport):
    """Reads the whole state again and again, as a restart does, each time up to the end that it found first."""
    chance = PROCESS.get().random
    while True:
        consumer = transport.consumer(client_id="reader", auto_offset_reset="none")
        await consumer.start()
        consumer.assign([STATE])
        end = (await consumer.end_offsets([STATE]))[STATE]
        await consumer.seek_to_beginning(STATE)
        state = {}
        while await consumer.position(STATE) < end:
            batches = await consumer.getmany(STATE, timeout_ms=20, max_records=chance.randint(1, 9))
            for record in batches.get(STATE, ()):
                state[record.key] = (record.offset, record.value)
            await asyncio.sleep(chance.random() * 0.004)
        stage.reads.append((end, state))
        await consumer.stop()
        await asyncio.sleep(chance.random() * 0.02)


async def follower(stage, transport):
    """Keeps up with the state for as long as it lives."""
    consumer = transport.consumer("state", client_id="follower")
    await consumer.start()
    stage.followed = {}
    async for record in consumer:
        stage.followed[record.key] = record.value


def live(history, below=None):
    """Each key's newest (offset, value) below an offset, without the deleted ones."""
    newest = {key: (offset, value) for offset, key, value in history if below is None or offset < below}
    return {key: held for key, held in newest.items() if held[1] is not None}


def run(seed):
    stage = world(seed)
    for name, life in (
        ("cleaner", cleaner),
        ("writer", writer),
        ("follower", follower),
        ("r1", reader),
        ("r2", reader),
    ):
        stage.start(name, life)
    draws = random.Random(f"kills/{seed}")
    for _ in range(6):
        stage.later(draws.random() * 2, stage.kill, "r2", reader, 0.05)
        stage.later(draws.random() * 2, stage.kill, "cleaner", cleaner, 0.05)
        stage.later(draws.random() * 2, stage.kill, "follower", follower, 0.05)
    stage.run(lambda: stage.done, after_s=2.0)
    return stage


@pytest.mark.parametrize("seed", range(12))
def test_no_reader_misses_a_live_key_while_the_topic_is_compacted(seed):
    """Proves what every restore relies on: what was live at the end it reads to is there, unless replaced since."""
    stage = run(seed)
    assert stage.dropped > WRITES
    assert len(stage.reads) > 20
    for end, state in stage.reads:
        for key, (offset, value) in live(stage.history, end).items():
            newer = [o for o, k, _ in stage.history if k == key and o >= end]
            found = state.get(key)
            assert found == (offset, value) or newer, f"{key!r}: {found} in a read to {end}, live was {offset}"
        committed = {offset for offset, _, _ in stage.history}
        assert {offset for offset, _ in state.values()} <= committed, "an aborted record was read"


@pytest.mark.parametrize("seed", range(12))
def test_a_restart_from_the_compacted_topic_gives_the_same_state(seed):
    """Proves that what is left is the state: by a follower, by a reader at the end, and in the log itself."""
    stage = run(seed)
    expected = {key: value for key, (_, value) in live(stage.history).items()}
    assert {key: value for key, value in stage.followed.items() if value is not None} == expected
    left = {record.key: record.value for record in stage.committed("state")}
    assert {key: value for key, value in left.items() if value is not None} == expected
    assert len(stage.committed("state")) < 2 * KEYS


@pytest.mark.parametrize("seed", range(6))
def test_archive_and_log_together_have_every_fact_once(seed):
    """Proves rebuild = archive + tail, over a cleaner that is killed between any two of its steps."""
    stage = run(seed)
    loop_of_reading = asyncio.new_event_loop()
    try:
        archived = loop_of_reading.run_until_complete(everything(stage.objects))
    finally:
        loop_of_reading.close()
    here = {record.offset: record.value for record in stage.committed("facts")}
    assert stage.log.topics["facts"].partitions[0].start > 0
    assert {**archived["facts"], **here} == {n: b"%d" % n for n in range(stage.facts)}
    state = {**archived["state"], **{r.offset: r.value for r in stage.committed("state")}}
    assert state == {offset: value for offset, _, value in stage.history}


async def everything(objects):
    return {key.topic: {r.offset: r.value async for r in read_archive(objects, key.topic, 0)} for key in (STATE, FACTS)}


@pytest.mark.parametrize("at", range(1, 60, 3))
def test_a_cleaner_killed_between_any_two_steps_leaves_what_the_next_one_takes_up(at):
    """Proves that a half-done cleaning is no harm: nothing is missing, and the next step does the rest."""
    stage = world(at)
    for name, life in (("writer", writer), ("cleaner", cleaner)):
        stage.start(name, life)
    for n in range(1, 12):
        stage.later(n * 0.1, stage.loop.kill_at, "cleaner", at, lambda _p: stage.kill("cleaner", cleaner, 0.01))
    stage.run(lambda: stage.done, after_s=2.0)
    left = {record.key: record.value for record in stage.committed("state")}
    assert {k: v for k, v in left.items() if v is not None} == {k: v for k, (_, v) in live(stage.history).items()}
    assert stage.clock.now_ms() > EPOCH_MS
