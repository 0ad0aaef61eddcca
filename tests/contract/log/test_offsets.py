"""Positions and offsets: where a reader begins, goes, stands still, and what it commits."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import (
    ConsumerStoppedError,
    IllegalOperation,
    IllegalStateError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from aiokafka.structs import OffsetAndMetadata


async def filled(cluster, count, partitions=1):
    """A topic with numbered records, all in partition 0 unless there are more."""
    topic = await cluster.topic(partitions=partitions, retention_ms="-1")
    producer = await cluster.producer()
    for number in range(count):
        await producer.send(topic, b"%d" % number, partition=number % partitions, timestamp_ms=1_000 + number)
    await producer.flush()
    return topic, producer


async def test_a_group_without_offsets_begins_where_its_reset_rule_says(cluster):
    """Proves earliest, latest and none for a group that never committed."""
    topic, producer = await filled(cluster, 3)
    early = await cluster.started(topic, group_id=cluster.name("g"), auto_offset_reset="earliest")
    assert [r.value for r in await cluster.read(early, 3)] == [b"0", b"1", b"2"]
    late = await cluster.started(topic, group_id=cluster.name("g"), auto_offset_reset="latest")
    assert await cluster.quiet(late) == []
    await producer.send_and_wait(topic, b"new")
    assert [r.value for r in await cluster.read(late, 1)] == [b"new"]
    never = await cluster.started(topic, group_id=cluster.name("g"), auto_offset_reset="none")
    with pytest.raises(NoOffsetForPartitionError):
        await cluster.read(never, 1)


async def test_a_reader_goes_on_from_what_its_group_committed(cluster):
    """Proves that a committed offset is the next record read, by another member too."""
    topic, _ = await filled(cluster, 5)
    group = cluster.name("g")
    first = await cluster.started(topic, group_id=group)
    key = TopicPartition(topic, 0)
    assert await first.committed(key) is None
    await cluster.read(first, 5)
    await first.commit({key: 2})
    assert await first.committed(key) == 2
    await first.stop()
    second = await cluster.started(topic, group_id=group)
    assert [r.value for r in await cluster.read(second, 3)] == [b"2", b"3", b"4"]
    await second.commit()
    assert await second.committed(key) == 5
    await second.commit({key: OffsetAndMetadata(4, "why")})
    assert await second.committed(key) == 4


async def test_records_read_ahead_are_not_committed(cluster):
    """Proves that a commit of the position covers what was handed out and nothing behind it."""
    topic, _ = await filled(cluster, 10)
    reader = await cluster.started(topic, group_id=cluster.name("g"))
    key = TopicPartition(topic, 0)
    assert (await asyncio.wait_for(reader.getone(), 10)).value == b"0"
    assert (await reader.getone()).value == b"1"
    await reader.commit()
    assert await reader.committed(key) == 2
    assert await reader.position(key) == 2


async def test_seeking_reads_from_there(cluster):
    """Proves seek, seek_to_beginning, seek_to_end and seek_to_committed, after records were read ahead."""
    topic, producer = await filled(cluster, 6)
    reader = await cluster.started(topic, group_id=cluster.name("g"))
    key = TopicPartition(topic, 0)
    await reader.getone()
    reader.seek(key, 4)
    assert (await reader.getone()).value == b"4"
    await reader.seek_to_beginning(key)
    assert (await reader.getone()).value == b"0"
    await reader.commit({key: 3})
    assert await reader.seek_to_committed() == {key: 3}
    assert (await reader.getone()).value == b"3"
    await reader.seek_to_end(key)
    await producer.send_and_wait(topic, b"end", partition=0)
    assert (await asyncio.wait_for(reader.getone(), 10)).value == b"end"


async def test_a_seek_beyond_the_end_is_reset_by_the_rule(cluster):
    """Proves that a position outside of the log becomes the beginning, or an error under the rule none."""
    topic, _ = await filled(cluster, 3)
    key = TopicPartition(topic, 0)
    reader = await cluster.started(topic)
    reader.seek(key, 1_000)
    assert [r.value for r in await cluster.read(reader, 3)] == [b"0", b"1", b"2"]
    strict = cluster.consumer(auto_offset_reset="none")
    await strict.start()
    strict.assign([key])
    strict.seek(key, 1_000)
    with pytest.raises(OffsetOutOfRangeError):
        await cluster.read(strict, 1)


async def test_a_position_moves_with_what_was_handed_out_whatever_becomes_of_it(cluster):
    """Proves that a failed batch is not handed out again by itself: its reader must seek back."""
    topic, _ = await filled(cluster, 4)
    reader = await cluster.started(topic, group_id=cluster.name("g"))
    key = TopicPartition(topic, 0)
    await cluster.read(reader, 4)
    assert await reader.position(key) == 4
    assert await cluster.quiet(reader) == []
    reader.seek(key, 0)
    await reader.commit({key: 1})
    await reader.seek_to_committed(key)
    assert [r.value for r in await cluster.read(reader, 3)] == [b"1", b"2", b"3"]


async def test_a_cancelled_poll_loses_no_record(cluster):
    """Proves that waiting with a time-out around a poll is safe: every record comes out once."""
    topic, producer = await filled(cluster, 0)
    reader = await cluster.started(topic)
    seen: list[int] = []

    async def write():
        for n in range(120):
            await producer.send_and_wait(topic, b"%d" % n)
            await asyncio.sleep(0.001)

    writing = asyncio.create_task(write())
    async with asyncio.timeout(20):
        while len(seen) < 120:
            try:
                seen.append(int((await asyncio.wait_for(reader.getone(), 0.0015)).value))
            except TimeoutError:
                continue
    await writing
    assert seen == list(range(120))


async def test_a_record_larger_than_a_fetch_is_read_all_the_same(cluster):
    """Proves that a large record never stops its reader, and that its neighbours keep their order."""
    topic = await cluster.topic(max_message_bytes="6000000", retention_ms="-1")
    large = await cluster.writer(max_request_size=6_000_000)
    for value in (b"before", b"v" * 5_000_000, b"after"):
        await large.send_and_wait(topic, value, partition=0)
    assert [len(v) for v in await cluster.values(topic, 3)] == [6, 5_000_000, 5]


async def test_going_back_costs_at_least_a_millisecond(embedded):
    """Proves that a handler which always fails and seeks back cannot hold the loop for ever."""
    topic, _ = await filled(embedded, 2)
    reader = await embedded.started(topic)
    key = TopicPartition(topic, 0)
    begun = asyncio.get_running_loop().time()
    for _ in range(5):
        record = await reader.getone()
        assert record.offset == 0
        reader.seek(key, 0)
    assert asyncio.get_running_loop().time() - begun >= 0.004


async def test_a_busy_reader_gives_the_loop_away(embedded):
    """Proves that polls with data ready let other tasks run at least every few records."""
    topic, _ = await filled(embedded, 200)
    reader = await embedded.started(topic)
    turns = 0

    async def neighbour():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.create_task(neighbour())
    await asyncio.sleep(0)
    before = turns
    for _ in range(160):
        await reader.getone()
    assert turns - before >= 10
    other.cancel()


async def test_a_paused_partition_stands_still_and_loses_nothing(cluster):
    """Proves pause and resume, by partition."""
    topic, _ = await filled(cluster, 8, partitions=2)
    reader = await cluster.started(topic)
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)
    reader.pause(zero)
    assert reader.paused() == {zero}
    assert {r.partition for r in await cluster.read(reader, 4)} == {1}
    assert await cluster.quiet(reader) == []
    reader.resume(zero)
    assert reader.paused() == set()
    assert [r.value for r in await cluster.read(reader, 4)] == [b"0", b"2", b"4", b"6"]
    assert reader.assignment() == {zero, one}


async def test_a_poll_may_name_its_partitions_and_its_limit(cluster):
    """Proves that max_records bounds a poll over all partitions, and that named partitions are read alone."""
    topic, _ = await filled(cluster, 20, partitions=2)
    reader = await cluster.started(topic)
    one = TopicPartition(topic, 1)
    await cluster.until(lambda: reader.assignment() != set())
    taken = []
    while len(taken) < 10:
        batches = await reader.getmany(one, timeout_ms=200, max_records=3)
        assert set(batches) <= {one}
        assert sum(map(len, batches.values())) <= 3
        taken += [r.value for batch in batches.values() for r in batch]
    assert taken == [b"%d" % n for n in range(1, 20, 2)]
    with pytest.raises(ValueError):
        await reader.getmany(max_records=0)


async def test_no_partition_starves_behind_a_full_one(embedded):
    """Proves that small polls visit all partitions in turn, and single records too."""
    topic, _ = await filled(embedded, 800, partitions=4)
    reader = await embedded.started(topic)
    seen: list[int] = []
    for _ in range(4):
        for batch in (await reader.getmany(timeout_ms=200, max_records=10)).values():
            seen += [r.partition for r in batch]
    assert sorted(set(seen)) == [0, 1, 2, 3]
    alone = await embedded.started(topic)
    assert sorted({(await alone.getone()).partition for _ in range(400)}) == [0, 1, 2, 3]


async def test_a_poll_without_data_ends_after_its_time_out(cluster):
    """Proves that an empty poll waits as long as it was told, and no longer."""
    topic, _ = await filled(cluster, 0)
    reader = await cluster.started(topic)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    assert await reader.getmany(timeout_ms=60) == {}
    assert 0.05 <= loop.time() - begun < 2
    assert await reader.getmany(timeout_ms=0) == {}


async def test_a_waiting_poll_sees_a_new_record_at_once(cluster):
    """Proves that an append wakes its readers."""
    topic, producer = await filled(cluster, 0)
    reader = await cluster.started(topic)
    waiting = asyncio.create_task(reader.getone())
    await asyncio.sleep(0.02)
    await producer.send_and_wait(topic, b"now")
    assert (await asyncio.wait_for(waiting, 5)).value == b"now"


async def test_records_can_be_iterated_over(cluster):
    """Proves `async for`, which ends when the consumer stops."""
    topic, _ = await filled(cluster, 3)
    reader = await cluster.started(topic)
    seen = []
    async for record in reader:
        seen.append(record.value)
        if len(seen) == 3:
            await reader.stop()
    assert seen == [b"0", b"1", b"2"]


async def test_offsets_are_found_by_time(cluster):
    """Proves offsets_for_times: the first record at or after a time, None past the end."""
    topic, _ = await filled(cluster, 5)
    reader = await cluster.started(topic)
    key = TopicPartition(topic, 0)
    at = {t: (await reader.offsets_for_times({key: t}))[key] for t in (0, 1_002, 1_004, 2_000)}
    assert {t: found and (found.offset, found.timestamp) for t, found in at.items()} == {
        0: (0, 1_000),
        1_002: (2, 1_002),
        1_004: (4, 1_004),
        2_000: None,
    }


async def test_beginning_end_and_lag_are_counted(cluster):
    """Proves the figures that dashboards show."""
    topic, _ = await filled(cluster, 6, partitions=2)
    group = cluster.name("g")
    reader = await cluster.started(topic, group_id=group)
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert await reader.beginning_offsets([zero, one]) == {zero: 0, one: 0}
    assert await reader.end_offsets([zero, one]) == {zero: 3, one: 3}
    await cluster.read(reader, 6)
    assert reader.highwater(zero) == 3
    await reader.commit({zero: 1, one: 3})
    assert await cluster.transport.lag(group) == {zero: 2, one: 0}
    assert await cluster.transport.lag(cluster.name("nobody")) == {}


async def test_partitions_assigned_by_hand_need_no_group(cluster):
    """Proves assign: no rebalance, commits only with a group, and a group alone may be committed to."""
    topic, _ = await filled(cluster, 4, partitions=2)
    one = TopicPartition(topic, 1)
    alone = cluster.consumer()
    await alone.start()
    alone.assign([one])
    assert alone.assignment() == {one}
    assert [r.value for r in await cluster.read(alone, 2)] == [b"1", b"3"]
    with pytest.raises(IllegalOperation):
        await alone.commit()
    shown = cluster.consumer(group_id=cluster.name("g"))
    await shown.start()
    shown.assign([one])
    await shown.commit({one: 1})
    assert await shown.committed(one) == 1


async def test_wrong_commits_and_seeks_are_refused(cluster):
    """Proves the client's own errors: nothing to commit, a partition that is not assigned, a negative offset."""
    topic, _ = await filled(cluster, 1)
    reader = await cluster.started(topic, group_id=cluster.name("g"))
    key = TopicPartition(topic, 0)
    with pytest.raises(ValueError):
        await reader.commit({})
    with pytest.raises(IllegalStateError):
        await reader.commit({TopicPartition(topic, 5): 1})
    with pytest.raises(ValueError):
        reader.seek(key, -1)
    with pytest.raises(IllegalStateError):
        reader.seek(TopicPartition(topic, 5), 0)


async def test_a_stopped_consumer_ends_its_polls(cluster):
    """Proves that stop releases a waiting poll and that later polls say why."""
    topic, _ = await filled(cluster, 0)
    reader = await cluster.started(topic, group_id=cluster.name("g"))
    waiting = asyncio.create_task(reader.getone())
    await asyncio.sleep(0.02)
    await reader.stop()
    with pytest.raises(ConsumerStoppedError):
        await asyncio.wait_for(waiting, 5)
    with pytest.raises(ConsumerStoppedError):
        await reader.getmany()
    await reader.stop()
