"""Expiry, compaction, and the archive that comes before either."""

from __future__ import annotations

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

HOUR_MS = 3_600_000


class Kept:
    """An archive that writes down what it was given, and can fail."""

    def __init__(self, *topics):
        self.topics = topics
        self.ranges = []
        self.fails = False

    def keeps(self, topic):
        return topic in self.topics

    async def archive(self, topic, partition, records):
        if self.fails:
            raise OSError("disk full")
        self.ranges.append((topic, partition, [r.offset for r in records], [r.value for r in records]))


async def written(embedded, topic, *rows):
    producer = await embedded.producer()
    for key, value, age_ms in rows:
        await producer.send(topic, value, key=key, partition=0, timestamp_ms=embedded.clock.ms - age_ms)
    await producer.flush()
    return producer


async def kept(embedded, topic):
    reader = await embedded.started(topic)
    records = await embedded.quiet(reader, 20)
    await reader.stop()
    return [(r.offset, r.key, r.value) for r in records]


async def step(embedded):
    return await embedded.transport.retention.step()


async def test_records_older_than_the_retention_time_are_gone(embedded):
    """Proves expiry from the front, that offsets stay, and that the log goes on where it was."""
    topic = await embedded.topic(retention_ms=str(HOUR_MS))
    producer = await written(embedded, topic, (b"a", b"0", 3 * HOUR_MS), (b"b", b"1", 2 * HOUR_MS), (b"c", b"2", 0))
    assert await step(embedded) == 2
    assert await kept(embedded, topic) == [(2, b"c", b"2")]
    embedded.clock.ms += 2 * HOUR_MS
    assert await step(embedded) == 1
    assert (await producer.send_and_wait(topic, b"3", key=b"d", partition=0)).offset == 3
    key = TopicPartition(topic, 0)
    reader = await embedded.started(topic)
    assert await reader.beginning_offsets([key]) == {key: 3}


async def test_an_old_record_behind_a_young_one_waits(embedded):
    """Proves that expiry cuts the front only: a late producer's old time never makes a hole."""
    topic = await embedded.topic(retention_ms=str(HOUR_MS))
    await written(embedded, topic, (b"a", b"0", 0), (b"b", b"1", 9 * HOUR_MS))
    assert await step(embedded) == 0
    assert len(await kept(embedded, topic)) == 2


async def test_the_oldest_go_when_a_topic_grows_past_its_size(embedded):
    """Proves retention.bytes."""
    topic = await embedded.topic(retention_bytes="5000", retention_ms="-1")
    await written(embedded, topic, *[(b"k", bytes(900), 0) for _ in range(10)])
    assert await step(embedded) == 5
    assert [offset for offset, _, _ in await kept(embedded, topic)] == [5, 6, 7, 8, 9]


async def test_a_group_whose_offset_expired_goes_on_by_its_reset_rule(embedded):
    """Proves that a reader which slept too long goes on from the beginning, or is told."""
    topic = await embedded.topic(retention_ms=str(HOUR_MS))
    await written(embedded, topic, (b"a", b"0", 2 * HOUR_MS), (b"b", b"1", 2 * HOUR_MS), (b"c", b"2", 0))
    group = embedded.name("g")
    reader = await embedded.started(topic, group_id=group)
    await reader.commit({TopicPartition(topic, 0): 1})
    await reader.stop()
    await step(embedded)
    again = await embedded.started(topic, group_id=group)
    assert [r.value for r in await embedded.read(again, 1)] == [b"2"]
    strict = embedded.consumer(auto_offset_reset="none")
    await strict.start()
    strict.assign([TopicPartition(topic, 0)])
    strict.seek(TopicPartition(topic, 0), 0)
    with pytest.raises(OffsetOutOfRangeError):
        await strict.getone()


async def test_compaction_keeps_the_newest_of_each_key_at_its_offset(embedded):
    """Proves that a compacted topic holds each key's last record, in order, with holes in the offsets."""
    topic = await embedded.topic(cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    rows = [(b"k%d" % (n % 3), b"%d" % n, 0) for n in range(9)]
    producer = await written(embedded, topic, *rows)
    assert await step(embedded) == 6
    assert await kept(embedded, topic) == [(6, b"k0", b"6"), (7, b"k1", b"7"), (8, b"k2", b"8")]
    await producer.send_and_wait(topic, b"9", key=b"k1", partition=0)
    assert await step(embedded) == 1
    assert [offset for offset, _, _ in await kept(embedded, topic)] == [6, 8, 9]
    reader = await embedded.started(topic)
    reader.seek(TopicPartition(topic, 0), 7)
    assert (await reader.getone()).offset == 8


async def test_a_tombstone_removes_its_key_and_goes_after_its_own_time(embedded):
    """Proves that readers have delete.retention.ms to see a deletion."""
    topic = await embedded.topic(
        cleanup_policy="compact", delete_retention_ms=str(HOUR_MS), min_cleanable_dirty_ratio="0.01"
    )
    await written(embedded, topic, (b"a", b"0", 0), (b"a", None, 0), (b"b", b"1", 0))
    await step(embedded)
    assert await kept(embedded, topic) == [(1, b"a", None), (2, b"b", b"1")]
    embedded.clock.ms += HOUR_MS
    await step(embedded)
    assert await kept(embedded, topic) == [(2, b"b", b"1")]


async def test_compaction_waits_until_enough_changed(embedded):
    """Proves the dirty ratio: a large clean log is not read again for each new record."""
    topic = await embedded.topic(cleanup_policy="compact", min_cleanable_dirty_ratio="0.5")
    producer = await written(embedded, topic, *[(b"k%d" % n, b"v", 0) for n in range(100)])
    await step(embedded)
    await producer.send_and_wait(topic, b"w", key=b"k0", partition=0)
    assert await step(embedded) == 0
    for n in range(100):
        await producer.send(topic, b"x", key=b"k%d" % n, partition=0)
    await producer.flush()
    assert await step(embedded) == 101


async def test_young_records_are_not_compacted(embedded):
    """Proves min.compaction.lag.ms."""
    topic = await embedded.topic(
        cleanup_policy="compact", min_compaction_lag_ms=str(HOUR_MS), min_cleanable_dirty_ratio="0.01"
    )
    await written(embedded, topic, (b"a", b"0", 2 * HOUR_MS), (b"a", b"1", 2 * HOUR_MS), (b"a", b"2", 0))
    await step(embedded)
    assert [value for _, _, value in await kept(embedded, topic)] == [b"1", b"2"]


async def test_nothing_behind_an_open_transaction_is_cleaned(embedded):
    """Proves that cleaning stops at the last stable offset and goes on after it."""
    topic = await embedded.topic(cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    producer = await embedded.producer(embedded.name("tx"))
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"0", key=b"a", partition=0)
    await written(embedded, topic, (b"b", b"1", 0), (b"b", b"2", 0))
    assert await step(embedded) == 0
    await producer.abort_transaction()
    assert await step(embedded) == 3  # the aborted record, the replaced one, the marker
    assert [value for _, _, value in await kept(embedded, topic)] == [b"2"]


async def test_records_are_archived_before_they_expire(embedded):
    """Proves that expired records are in the archive with all their offsets, once."""
    topic = await embedded.topic(retention_ms=str(HOUR_MS))
    archive = embedded.log.hooks.archive = Kept(topic)
    await written(embedded, topic, *[(b"k", b"%d" % n, 2 * HOUR_MS) for n in range(4)], (b"k", b"young", 0))
    await step(embedded)
    await step(embedded)
    assert archive.ranges == [(topic, 0, [0, 1, 2, 3], [b"0", b"1", b"2", b"3"])]
    assert [value for _, _, value in await kept(embedded, topic)] == [b"young"]


async def test_nothing_is_dropped_while_the_archive_fails(embedded):
    """Proves that a failing archive keeps its records and stops nobody else's cleaning."""
    topic, other = await embedded.topic(retention_ms=str(HOUR_MS)), await embedded.topic(retention_ms=str(HOUR_MS))
    archive = embedded.log.hooks.archive = Kept(topic)
    archive.fails = True
    for name in (topic, other):
        await written(embedded, name, (b"k", b"v", 2 * HOUR_MS))
    with pytest.raises(OSError, match="disk full"):
        await step(embedded)
    assert len(await kept(embedded, topic)) == 1
    assert await kept(embedded, other) == []
    archive.fails = False
    await step(embedded)
    assert await kept(embedded, topic) == []
    assert archive.ranges == [(topic, 0, [0], [b"v"])]


async def test_compaction_archives_what_it_replaces(embedded):
    """Proves that the history of a compacted topic is in the archive."""
    topic = await embedded.topic(cleanup_policy="compact", min_cleanable_dirty_ratio="0.01")
    archive = embedded.log.hooks.archive = Kept(topic)
    producer = await written(embedded, topic, (b"a", b"0", 0), (b"a", b"1", 0))
    await step(embedded)
    await producer.send_and_wait(topic, b"2", key=b"a", partition=0)
    await step(embedded)
    assert [values for _, _, _, values in archive.ranges] == [[b"0", b"1"], [b"2"]]
