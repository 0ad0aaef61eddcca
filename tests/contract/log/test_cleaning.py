"""Cleaning as readers see it, on every log: what stays, where it stays, and what nobody may lose by it."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

COMPACTED = {
    "cleanup_policy": "compact",
    "segment_ms": "100",
    "min_cleanable_dirty_ratio": "0.01",
    "max_compaction_lag_ms": "1000",
    "delete_retention_ms": "100",
}
SHORT = {"retention_ms": "400", "segment_ms": "200"}


async def told(cluster, topic, *pairs):
    producer = await cluster.producer()
    for key, value in pairs:
        await producer.send_and_wait(topic, value, key=key, partition=0)


def holds(cluster, topic, *rows):
    async def check():
        return await cluster.kept(topic) == list(rows)

    return check


async def test_the_newest_of_each_key_stays_at_its_offset(cluster):
    """Proves that compaction leaves holes and moves nothing, and that a reader standing in a hole goes on behind it."""
    topic = await cluster.topic(**COMPACTED)
    await told(cluster, topic, *[(b"k%d" % (n % 3), b"%d" % n) for n in range(9)])
    newest = [(6, b"k0", b"6"), (7, b"k1", b"7"), (8, b"k2", b"8")]
    await cluster.cleaned(topic, holds(cluster, topic, *newest))
    reader = await cluster.started(topic)
    reader.seek(TopicPartition(topic, 0), 2)
    assert (await asyncio.wait_for(reader.getone(), 10)).offset == 6


async def test_a_tombstone_takes_its_key_away_and_then_goes_itself(cluster):
    """Proves that a deleted key is gone for good, and that the deletion stays long enough to be read."""
    topic = await cluster.topic(**COMPACTED)
    await told(cluster, topic, (b"a", b"0"), (b"a", None), (b"b", b"1"))
    assert (1, b"a", None) in await cluster.kept(topic)
    await cluster.cleaned(topic, _without(cluster, topic, 0))
    await cluster.age(200)
    await cluster.cleaned(topic, holds(cluster, topic, (2, b"b", b"1")))


async def test_a_deletion_stays_for_its_time_from_when_it_is_first_cleaned(cluster):
    """Proves that a tombstone stamped long ago, by a slow clock or late, is still there for readers behind it."""
    topic = await cluster.topic(**{**COMPACTED, "delete_retention_ms": "600000"})
    producer = await cluster.producer()
    await producer.send_and_wait(topic, b"0", key=b"a", partition=0, timestamp_ms=1_000)
    await producer.send_and_wait(topic, None, key=b"a", partition=0, timestamp_ms=2_000)
    await cluster.cleaned(topic, holds(cluster, topic, (1, b"a", None)))
    for _ in range(3):
        await cluster.clean_once(topic, producer)
    assert await cluster.kept(topic) == [(1, b"a", None)]


def _without(cluster, topic, offset):
    async def check():
        return offset not in [row[0] for row in await cluster.kept(topic)]

    return check


async def test_an_aborted_record_never_replaces_a_committed_one(cluster):
    """Proves that compaction asks what readers asked: the newest committed record of a key is the one that stays."""
    topic = await cluster.topic(**COMPACTED)
    await told(cluster, topic, (b"a", b"old"), (b"a", b"stays"))
    producer = await cluster.producer(cluster.name("tx"))
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"gone", key=b"a", partition=0)
    await producer.abort_transaction()
    await cluster.cleaned(topic, holds(cluster, topic, (1, b"a", b"stays")))
    await cluster.age(200)
    await cluster.cleaned(topic, holds(cluster, topic, (1, b"a", b"stays")))


async def test_compaction_stops_before_an_open_transaction(cluster):
    """Proves that what stands behind an open transaction is kept until it ends, and cleaned then."""
    topic = await cluster.topic(**COMPACTED)
    await told(cluster, topic, (b"a", b"0"), (b"a", b"1"))
    await cluster.cleaned(topic, holds(cluster, topic, (1, b"a", b"1")))
    producer = await cluster.producer(cluster.name("tx"))
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"2", key=b"a", partition=0)
    await told(cluster, topic, (b"b", b"3"), (b"b", b"4"))
    await cluster.age(1_000)
    for _ in range(4):
        await cluster.clean_once(topic, await cluster.producer())
    behind = [value for _, key, value in await cluster.kept(topic, "read_uncommitted") if key == b"b"]
    assert behind == [b"3", b"4"]
    await producer.commit_transaction()

    async def cleaned():
        return [row[1:] for row in await cluster.kept(topic)] == [(b"a", b"2"), (b"b", b"4")]

    await cluster.cleaned(topic, cleaned)


async def test_a_position_reaches_the_end_over_what_compaction_left(cluster):
    """Proves that a restore ends although the last records, aborted ones and markers are gone."""
    topic = await cluster.topic(**COMPACTED)
    producer = await cluster.producer(cluster.name("tx"))
    for n in range(6):
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"%d" % n, key=b"a", partition=0)
        await (producer.abort_transaction if n % 2 else producer.commit_transaction)()
    await cluster.cleaned(topic, holds(cluster, topic, (8, b"a", b"4")))


async def test_expiry_moves_the_beginning_and_never_the_end(cluster):
    """Proves that an emptied partition goes on where it was: no offset is ever given twice."""
    topic = await cluster.topic(**SHORT)
    await told(cluster, topic, *[(b"k", b"%d" % n) for n in range(3)])
    await cluster.age(600)
    reader = await cluster.started(topic)
    place = TopicPartition(topic, 0)

    async def begins_later():
        return (await reader.beginning_offsets([place]))[place] >= 3

    await cluster.cleaned(topic, begins_later)
    assert await cluster.kept(topic) == []
    producer = await cluster.producer()
    before = (await reader.end_offsets([place]))[place]
    assert (await producer.send_and_wait(topic, b"next", partition=0)).offset == before >= 3


async def test_a_reader_that_slept_too_long_goes_on_by_its_reset_rule(cluster):
    """Proves that a position before the beginning is the beginning, or an error under the rule none."""
    topic = await cluster.topic(**SHORT)
    group = cluster.name("g")
    place = TopicPartition(topic, 0)
    await told(cluster, topic, *[(b"k", b"%d" % n) for n in range(3)])
    sleeper = await cluster.started(topic, group_id=group)
    await sleeper.commit({place: 1})
    await sleeper.stop()
    await cluster.age(600)
    shown = await cluster.started()

    async def begins_later():
        return (await shown.beginning_offsets([place]))[place] >= 3

    await cluster.cleaned(topic, begins_later)
    await told(cluster, topic, (b"k", b"late"))
    again = await cluster.started(topic, group_id=group)
    read = await cluster.read(again, 1)
    assert read[0].offset >= 3
    strict = await cluster.started(auto_offset_reset="none")
    strict.assign([place])
    strict.seek(place, 0)
    with pytest.raises(OffsetOutOfRangeError):
        await cluster.read(strict, 1)
