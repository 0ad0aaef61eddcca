"""Taking over from somebody who may still be alive: fences, time-outs, and the offsets of a group."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import ProducerFenced


async def shown_offset(cluster, group, place):
    reader = cluster.consumer(group_id=group)
    await reader.start()
    found = await reader.committed(place)
    await reader.stop()
    return found


async def moved(producer, place, offset, group):
    await producer.begin_transaction()
    await producer.send_and_wait(place.topic, b"v", partition=place.partition)
    await producer.send_offsets_to_transaction({place: offset}, group)
    await producer.commit_transaction()


async def test_whoever_takes_an_id_reads_offsets_that_are_never_stale(cluster):
    """Proves the order fence, then read: after a commit by the last owner, its offset is there."""
    topic, name, group = await cluster.topic(), cluster.name("tx"), cluster.name("g")
    place = TopicPartition(topic, 0)
    for offset in range(1, 6):
        owner = await cluster.producer(name)
        await moved(owner, place, offset, group)
        await cluster.producer(name)
        assert await shown_offset(cluster, group, place) == offset


async def test_whoever_takes_an_id_finds_the_offsets_of_an_open_transaction_undone(cluster):
    """Proves that a half round moves no offset, whatever its owner does afterwards."""
    topic, name, group = await cluster.topic(), cluster.name("tx"), cluster.name("g")
    place = TopicPartition(topic, 0)
    for offset in range(1, 4):
        await moved(await cluster.producer(name), place, offset, group)
        half = await cluster.producer(name)
        await half.begin_transaction()
        await half.send_and_wait(topic, b"half", partition=0)
        await half.send_offsets_to_transaction({place: 99}, group)
        await cluster.producer(name)
        assert await shown_offset(cluster, group, place) == offset
        with pytest.raises(ProducerFenced):
            await half.commit_transaction()
        assert await shown_offset(cluster, group, place) == offset


async def test_the_embedded_logs_offsets_are_there_when_the_commit_is_answered(embedded):
    """Proves the one kindness of the embedded log: Kafka shows the old offset for some milliseconds."""
    topic, group = await embedded.topic(), embedded.name("g")
    place = TopicPartition(topic, 0)
    producer = await embedded.producer(embedded.name("tx"))
    for offset in range(1, 20):
        await moved(producer, place, offset, group)
        assert embedded.log.committed(group, place) == offset


async def test_a_group_that_read_everything_of_a_transactional_topic_has_no_lag(cluster):
    """Proves that markers count on both sides: a position behind the last marker is the end."""
    topic, group = await cluster.topic(), cluster.name("g")
    place = TopicPartition(topic, 0)
    producer = await cluster.producer(cluster.name("tx"))
    for offset in range(1, 4):
        await moved(producer, place, offset, cluster.name("other"))
    reader = await cluster.started(topic, group_id=group)
    await cluster.read(reader, 3)

    async def behind_the_marker():
        await cluster.quiet(reader, 50)
        return await reader.position(place) == 6

    await cluster.until(behind_the_marker)
    await reader.commit()
    assert await cluster.transport.lag(group) == {place: 0}


async def test_a_zombies_offsets_are_taken_when_its_id_was_not(cluster):
    """Proves the hole that the product must not rely on: offsets in a transaction carry no generation.

    So input offsets are read from a decider's own records, never from its group.
    """
    topic, group = await cluster.topic(), cluster.name("g")
    place = TopicPartition(topic, 0)
    old, new = [await cluster.producer(cluster.name("tx")) for _ in range(2)]
    await moved(new, place, 7, group)
    await cluster.until(lambda: _is(shown_offset(cluster, group, place), 7))
    await moved(old, place, 3, group)
    await cluster.until(lambda: _is(shown_offset(cluster, group, place), 3))


async def _is(coroutine, expected):
    return await coroutine == expected


async def test_two_readers_by_hand_may_both_commit_for_one_group(cluster):
    """Proves that commits for display need no membership, and that nobody may rely on them."""
    topic, group = await cluster.topic(), cluster.name("g")
    place = TopicPartition(topic, 0)
    readers = []
    for _ in range(2):
        reader = cluster.consumer(group_id=group)
        await reader.start()
        reader.assign([place])
        readers.append(reader)
    for offset, reader in ((5, readers[0]), (2, readers[1]), (4, readers[0])):
        await reader.commit({place: offset})
        assert await reader.committed(place) == offset


async def test_a_fenced_producer_can_only_be_stopped(cluster):
    """Proves that a send which nobody awaits keeps its error in its future, and that stop still ends the client."""
    topic, name = await cluster.topic(), cluster.name("tx")
    old = await cluster.producer(name)
    await cluster.producer(name)
    await old.begin_transaction()
    sent = await old.send(topic, b"zombie", partition=0)
    with pytest.raises(ProducerFenced):
        await sent
    with pytest.raises(AssertionError):
        await old.abort_transaction()
    await asyncio.wait_for(old.stop(), 5)
    assert await cluster.values(topic, 0, "read_uncommitted") == []


async def test_an_exception_inside_a_transaction_aborts_it(cluster):
    """Proves the context manager: the exception comes out again, records and offsets are as if never sent."""
    topic, group = await cluster.topic(), cluster.name("g")
    place = TopicPartition(topic, 0)
    producer = await cluster.producer(cluster.name("tx"))

    async def halfway():
        async with producer.transaction():
            await producer.send_and_wait(topic, b"gone", partition=0)
            await producer.send_offsets_to_transaction({place: 1}, group)
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        await halfway()
    async with producer.transaction():
        await producer.send_and_wait(topic, b"kept", partition=0)
    assert await cluster.values(topic, 1) == [b"kept"]
    assert await shown_offset(cluster, group, place) is None


async def test_an_exception_of_the_fence_comes_out_of_the_transaction(cluster):
    """Proves that a fenced process learns the truth from inside the context manager, not from its abort."""
    topic, name = await cluster.topic(), cluster.name("tx")
    old = await cluster.producer(name)
    await cluster.producer(name)
    with pytest.raises(ProducerFenced):
        async with old.transaction():
            await old.send_and_wait(topic, b"zombie", partition=0)


async def test_a_transaction_beyond_its_time_is_aborted_and_lets_readers_on(cluster):
    """Proves the time-out: readers stand still until then and go on after it, and the late commit is refused."""
    topic = await cluster.topic()
    slow = await cluster.writer(transactional_id=cluster.name("tx"), transaction_timeout_ms=1_000)
    await slow.begin_transaction()
    await slow.send_and_wait(topic, b"late", partition=0)
    await (await cluster.producer()).send_and_wait(topic, b"waits", partition=0)
    reader = await cluster.started(topic)
    assert await cluster.quiet(reader, 200) == []
    assert [r.value for r in await cluster.read(reader, 1, 15)] == [b"waits"]
    with pytest.raises(ProducerFenced):
        await slow.commit_transaction()
    with pytest.raises(AssertionError):
        await slow.begin_transaction()
