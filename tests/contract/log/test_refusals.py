"""What a refused record leaves behind: a gap in its sender's numbers, which its partition never forgives."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka.errors import InvalidTimestampError, KafkaError, MessageSizeTooLargeError, OutOfOrderSequenceNumber

from evenflow.platform.clock import SystemClock

HOUR_MS = 3_600_000


async def put(producer, topic, value, **where):
    return await asyncio.wait_for(producer.send_and_wait(topic, value, **where), 10)


async def refused(producer, topic, error, value=b"v", **where):
    with pytest.raises(error):
        await put(producer, topic, value, **where)


async def test_a_record_above_the_topics_limit_is_refused_alone(cluster):
    """Proves that max.message.bytes refuses one record, and that others' records are taken as before."""
    topic = await cluster.topic(max_message_bytes="1000")
    one, other = [await cluster.producer() for _ in range(2)]
    await put(one, topic, b"a", partition=0)
    await refused(one, topic, MessageSizeTooLargeError, b"v" * 2_000, partition=0)
    await put(other, topic, b"b", partition=0)
    assert await cluster.values(topic, 2) == [b"a", b"b"]


async def test_a_partition_takes_nothing_more_from_a_producer_whose_record_it_refused(cluster):
    """Proves what a client must know: after a refusal it needs another producer, for that partition alone."""
    topic = await cluster.topic(partitions=2, max_message_bytes="1000")
    producer = await cluster.producer()
    await put(producer, topic, b"a", partition=0)
    await refused(producer, topic, MessageSizeTooLargeError, b"v" * 2_000, partition=0)
    for _ in range(2):
        await refused(producer, topic, OutOfOrderSequenceNumber, partition=0)
    assert (await put(producer, topic, b"other", partition=1)).offset == 0
    fresh = await cluster.producer()
    assert (await put(fresh, topic, b"b", partition=0)).offset == 1


async def test_a_refused_first_record_leaves_no_gap(cluster):
    """Proves that a partition which knows nothing of a producer takes whatever number it sends first."""
    topic = await cluster.topic(max_message_bytes="1000")
    producer = await cluster.producer()
    await refused(producer, topic, MessageSizeTooLargeError, b"v" * 2_000, partition=0)
    assert (await put(producer, topic, b"a", partition=0)).offset == 0


async def test_a_keyless_record_leaves_a_gap_on_a_compacted_topic(cluster):
    """Proves that the log's other refusals count as well."""
    topic = await cluster.topic(cleanup_policy="compact")
    producer = await cluster.producer()
    await put(producer, topic, b"v", key=b"k")
    await refused(producer, topic, KafkaError)
    await refused(producer, topic, OutOfOrderSequenceNumber, key=b"k")


async def test_a_record_stamped_hours_ahead_is_refused(cluster):
    """Proves the log's own clock: an hour ahead is taken, more is not, unless the topic says otherwise."""
    now_ms = cluster.clock.now_ms() if cluster.kind == "embedded" else SystemClock().now_ms()
    strict = await cluster.topic(retention_ms="-1")
    producer = await cluster.producer()
    await put(producer, strict, b"near", timestamp_ms=now_ms + HOUR_MS - 60_000)
    await put(producer, strict, b"past", timestamp_ms=1)
    await refused(producer, strict, InvalidTimestampError, timestamp_ms=now_ms + HOUR_MS + 60_000)
    tolerant = await cluster.topic(retention_ms="-1", message_timestamp_after_max_ms=str((1 << 63) - 1))
    far_ms = now_ms + 900 * HOUR_MS
    assert (await put(producer, tolerant, b"far", timestamp_ms=far_ms)).timestamp == far_ms


async def test_a_commit_says_nothing_of_a_refused_record(cluster):
    """Proves why each send of a round is awaited before its commit: the commit covers only what was taken."""
    topic = await cluster.topic(max_message_bytes="500")
    producer = await cluster.producer(cluster.name("tx"))
    await producer.begin_transaction()
    await put(producer, topic, b"fits", partition=0)
    await refused(producer, topic, MessageSizeTooLargeError, b"v" * 1_000, partition=0)
    await producer.commit_transaction()
    assert await cluster.values(topic, 1) == [b"fits"]


async def test_a_transaction_with_a_refused_record_can_be_aborted(cluster):
    """Proves that whoever awaited the refusal can still have nothing of its round."""
    topic, name = await cluster.topic(max_message_bytes="500"), cluster.name("tx")
    producer = await cluster.producer(name)
    await producer.begin_transaction()
    await put(producer, topic, b"fits", partition=0)
    await refused(producer, topic, MessageSizeTooLargeError, b"v" * 1_000, partition=0)
    await producer.abort_transaction()
    again = await cluster.producer(name)
    await again.begin_transaction()
    await put(again, topic, b"whole", partition=0)
    await again.commit_transaction()
    assert await cluster.values(topic, 1) == [b"whole"]


async def test_the_id_of_a_gap_is_sound_after_it_was_taken_again(cluster):
    """Proves that numbers begin anew with each owner of a transactional id, and only then."""
    topic, name = await cluster.topic(max_message_bytes="500"), cluster.name("tx")
    producer = await cluster.producer(name)
    for attempt in range(2):
        await producer.begin_transaction()
        await put(producer, topic, b"%d" % attempt, partition=0)
        await refused(producer, topic, MessageSizeTooLargeError, b"v" * 1_000, partition=0)
        await refused(producer, topic, OutOfOrderSequenceNumber, partition=0)
        producer = await cluster.producer(name)
    await cluster.until(lambda: _nothing(cluster, topic))


async def _nothing(cluster, topic):
    return await cluster.values(topic, 0) == []
