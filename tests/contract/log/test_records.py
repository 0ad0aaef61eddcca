"""Records, keys, partitions and sizes: what goes in comes out, at the place Kafka gives it."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, UnknownTopicOrPartitionError
from aiokafka.partitioner import DefaultPartitioner

from evenflow.events.streams import LETTER_BYTES_MAX

KEYS = [f"tenant/task-{number}".encode() for number in range(60)]


async def test_a_record_comes_back_as_it_was_sent(cluster):
    """Proves that key, value, headers with any bytes, and time survive the log unchanged."""
    topic = await cluster.topic()
    producer = await cluster.producer()
    headers = [("ce_id", b"1"), ("raw", bytes(range(256))), ("empty", b"")]
    place = await producer.send_and_wait(topic, b"\x00\xff", key=b"k\x00", timestamp_ms=1_234, headers=headers)
    assert (place.topic, place.partition, place.offset) == (topic, 0, 0)
    (record,) = await cluster.read(await cluster.started(topic), 1)
    assert (record.topic, record.partition, record.offset, record.timestamp) == (topic, 0, 0, 1_234)
    assert (record.key, record.value) == (b"k\x00", b"\x00\xff")
    assert [(name, bytes(content)) for name, content in record.headers] == headers


async def test_a_value_of_none_is_a_tombstone_and_not_an_empty_value(cluster):
    """Proves that deletion and emptiness are told apart."""
    topic = await cluster.topic(cleanup_policy="compact")
    producer = await cluster.producer()
    await producer.send_and_wait(topic, None, key=b"gone")
    await producer.send_and_wait(topic, b"", key=b"empty")
    assert [(r.key, r.value) for r in await cluster.read(await cluster.started(topic), 2)] == [
        (b"gone", None),
        (b"empty", b""),
    ]


async def test_neither_key_nor_value_is_refused(cluster):
    """Proves that an empty record never reaches the log."""
    topic = await cluster.topic()
    producer = await cluster.producer()
    with pytest.raises(AssertionError):
        await producer.send(topic)


async def test_keys_land_where_kafkas_own_partitioner_puts_them(cluster):
    """Proves that a key has the same partition on every profile."""
    topic = await cluster.topic(partitions=7)
    producer = await cluster.producer()
    places = [await producer.send_and_wait(topic, b"v", key=key) for key in KEYS]
    expected = [DefaultPartitioner()(key, list(range(7)), list(range(7))) for key in KEYS]
    assert [place.partition for place in places] == expected


async def test_records_of_one_key_keep_their_order(cluster):
    """Proves that many sends in flight never overtake each other within a key."""
    topic = await cluster.topic(partitions=4)
    producer = await cluster.producer()
    sent = [await producer.send(topic, str(n).encode(), key=KEYS[n % 9]) for n in range(300)]
    await asyncio.gather(*sent)
    seen: dict[bytes, list[int]] = {}
    for record in await cluster.read(await cluster.started(topic), 300):
        seen.setdefault(record.key, []).append(int(record.value))
    assert sorted(n for numbers in seen.values() for n in numbers) == list(range(300))
    assert all(numbers == sorted(numbers) for numbers in seen.values())


async def test_records_without_a_key_use_every_partition(cluster):
    """Proves that keyless records are spread."""
    topic = await cluster.topic(partitions=3)
    producer = await cluster.producer()
    places = [await producer.send_and_wait(topic, b"v") for _ in range(60)]
    assert {place.partition for place in places} == {0, 1, 2}


async def test_a_partition_the_topic_does_not_have_is_refused(cluster):
    """Proves that a wrong partition number is an error of the caller, at once."""
    topic = await cluster.topic()
    producer = await cluster.producer()
    with pytest.raises(AssertionError, match="Unrecognized partition"):
        await producer.send(topic, b"v", partition=7)


async def test_an_unknown_topic_is_an_error_and_is_not_created(cluster):
    """Proves that only provisioning makes topics: neither a send nor a consumer does."""
    producer = await cluster.producer()
    missing = cluster.name("missing")
    with pytest.raises(UnknownTopicOrPartitionError):
        await asyncio.wait_for(producer.send(missing, b"v"), 12)
    reader = cluster.consumer(missing)
    with pytest.raises(UnknownTopicOrPartitionError):
        await asyncio.wait_for(reader.start(), 12)
    known = cluster.consumer()
    assert known.partitions_for_topic(missing) is None


async def test_the_embedded_log_names_an_unknown_topic_at_once(embedded):
    """Proves that the embedded log never lets a misspelt name wait for a time-out."""
    producer = await embedded.producer()
    with pytest.raises(UnknownTopicOrPartitionError, match="does not exist"):
        await asyncio.wait_for(producer.send("nobody", b"v"), 0.1)
    nowhere = TopicPartition("nobody", 0)
    reader = await embedded.started()
    with pytest.raises(UnknownTopicOrPartitionError, match="does not exist"):
        reader.assign([nowhere])
    with pytest.raises(UnknownTopicOrPartitionError, match="does not exist"):
        await reader.end_offsets([nowhere])


async def test_a_record_above_the_requests_limit_is_refused_when_sent(cluster):
    """Proves the client's own limit, which leaves room for a dead letter's headers: it is counted with headers."""
    topic = await cluster.topic()
    producer = await cluster.producer()
    with pytest.raises(MessageSizeTooLargeError):
        await producer.send(topic, b"v" * LETTER_BYTES_MAX)
    with pytest.raises(MessageSizeTooLargeError):
        await producer.send(topic, b"v", headers=[("big", b"h" * LETTER_BYTES_MAX)])
    await producer.send_and_wait(topic, b"v" * 1_000_000)


async def test_only_bytes_go_into_the_log(embedded):
    """Proves that a wrong type is the sender's error and spoils nobody else's batch."""
    topic = await embedded.topic()
    producer = await embedded.producer()
    good = await producer.send(topic, b"good")
    for wrong in ({"value": "text"}, {"value": b"v", "key": 7}, {"value": b"v", "headers": [("h", "text")]}):
        with pytest.raises(TypeError):
            await producer.send(topic, **wrong)
    assert (await good).offset == 0


async def test_a_batch_goes_to_one_partition_in_order(cluster):
    """Proves that a batch keeps its order and is one place, whatever its keys."""
    topic = await cluster.topic(partitions=3)
    producer = await cluster.producer()
    batch = producer.create_batch()
    for number in range(5):
        assert batch.append(key=b"k%d" % number, value=b"%d" % number, timestamp=None) is not None
    await (await producer.send_batch(batch, topic, partition=2))
    records = await cluster.read(await cluster.started(topic), 5)
    assert [(r.partition, r.value) for r in records] == [(2, b"%d" % n) for n in range(5)]
    full = producer.create_batch()
    assert full.append(key=None, value=b"v" * 600_000, timestamp=None) is not None
    assert full.append(key=None, value=b"v" * 600_000, timestamp=None) is None


async def test_a_compacted_topic_refuses_a_record_without_a_key(cluster):
    """Proves that nothing enters a compacted topic that compaction could never replace."""
    topic = await cluster.topic(cleanup_policy="compact")
    producer = await cluster.producer()
    with pytest.raises(KafkaError):
        await asyncio.wait_for(producer.send_and_wait(topic, b"v"), 12)
    await producer.send_and_wait(topic, b"v", key=b"k")
    assert await cluster.values(topic, 1) == [b"v"]


async def test_a_stopped_producer_sends_nothing(cluster):
    """Proves that a stopped client says so, and that what was sent before is written."""
    from aiokafka.errors import ProducerClosed

    topic = await cluster.topic()
    producer = await cluster.producer()
    waiting = await producer.send(topic, b"last words")
    await producer.stop()
    assert (await waiting).offset == 0
    with pytest.raises(ProducerClosed):
        await producer.send(topic, b"too late")


async def test_a_repeated_append_of_a_producer_is_not_appended_again(embedded):
    """Proves idempotence: the same producer and sequence append once, and the answer names the first offset."""
    topic = await embedded.topic()
    producer = await embedded.producer()
    kept = []
    embedded.log.hooks.interceptor = lambda rows: kept.extend(rows) or rows
    place = await producer.send_and_wait(topic, b"once")
    embedded.log.hooks.interceptor = None
    again = kept[0].copy()
    again.producer_id, again.sequence = kept[0].producer_id, kept[0].sequence
    answer = await embedded.log.submit(again)
    assert answer.offset == place.offset
    await producer.send_and_wait(topic, b"next")
    assert await embedded.values(topic, 2) == [b"once", b"next"]
