"""Transactions: all or nothing, isolation, fencing and time-outs, as placement's rounds rely on them."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import IllegalOperation, ProducerFenced


async def committed_round(producer, topic, *values):
    await producer.begin_transaction()
    for value in values:
        await producer.send_and_wait(topic, value, partition=0)
    await producer.commit_transaction()


async def ends(cluster, topic, isolation="read_committed"):
    reader = await cluster.started(isolation_level=isolation)
    key = TopicPartition(topic, 0)
    found = (await reader.end_offsets([key]))[key]
    await reader.stop()
    return found


async def test_a_transaction_is_seen_whole_and_only_after_its_commit(cluster):
    """Proves isolation: read_uncommitted sees records at once, read_committed none before the commit and then all."""
    topic, other = await cluster.topic(), await cluster.topic()
    producer = await cluster.producer(cluster.name("tx"))
    reader = await cluster.started(topic, other)
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"a", partition=0)
    await producer.send_and_wait(other, b"b", partition=0)
    assert await cluster.values(topic, 1, "read_uncommitted") == [b"a"]
    assert await cluster.quiet(reader) == []
    await producer.commit_transaction()
    assert sorted(r.value for r in await cluster.read(reader, 2)) == [b"a", b"b"]


async def test_an_aborted_transaction_leaves_nothing_to_read(cluster):
    """Proves that aborted records are invisible to read_committed and stay visible to read_uncommitted."""
    topic = await cluster.topic()
    producer = await cluster.producer(cluster.name("tx"))
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"gone", partition=0)
    await producer.abort_transaction()
    await committed_round(producer, topic, b"kept")
    assert await cluster.values(topic, 1) == [b"kept"]
    assert await cluster.values(topic, 2, "read_uncommitted") == [b"gone", b"kept"]


async def test_an_open_transaction_hides_what_stands_behind_it(cluster):
    """Proves the last stable offset: a committed transaction behind an open one is invisible until that one ends."""
    topic = await cluster.topic()
    first, second = [await cluster.producer(cluster.name("tx")) for _ in range(2)]
    await first.begin_transaction()
    await first.send_and_wait(topic, b"open", partition=0)
    await committed_round(second, topic, b"behind")
    plain = await cluster.producer()
    await plain.send_and_wait(topic, b"plain", partition=0)
    reader = await cluster.started(topic)
    assert await cluster.quiet(reader) == []
    assert await ends(cluster, topic) == 0
    assert await ends(cluster, topic, "read_uncommitted") == 4
    await first.commit_transaction()
    assert [r.value for r in await cluster.read(reader, 3)] == [b"open", b"behind", b"plain"]
    await cluster.until(lambda: _is(ends(cluster, topic), 5))


async def _is(coroutine, expected):
    return await coroutine == expected


async def test_markers_take_offsets_and_positions_count_them(cluster):
    """Proves that a restore may compare its position with the end: it passes markers and aborted records."""
    topic = await cluster.topic()
    producer = await cluster.producer(cluster.name("tx"))
    for n in range(3):
        await committed_round(producer, topic, b"%d" % n)
    for _ in range(2):
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"gone", partition=0)
        await producer.abort_transaction()
    await cluster.until(lambda: _is(ends(cluster, topic), 10))
    reader = await cluster.started(topic)
    key = TopicPartition(topic, 0)
    seen = []
    async with asyncio.timeout(10):
        while await reader.position(key) < 10:
            seen += [r.value for batch in (await reader.getmany(timeout_ms=50)).values() for r in batch]
    assert seen == [b"0", b"1", b"2"]
    assert await reader.position(key) == 10


async def test_offsets_travel_with_the_transaction(cluster):
    """Proves that a group's offsets move with the commit and stay with the abort."""
    topic = await cluster.topic()
    group = cluster.name("g")
    key = TopicPartition(topic, 0)
    producer = await cluster.producer(cluster.name("tx"))
    shown = cluster.consumer(group_id=group)
    await shown.start()
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"v", partition=0)
    await producer.send_offsets_to_transaction({key: 7}, group)
    assert await shown.committed(key) is None
    await producer.commit_transaction()
    await cluster.until(lambda: _is(shown.committed(key), 7))
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"w", partition=0)
    await producer.send_offsets_to_transaction({key: 9}, group)
    await producer.abort_transaction()
    await asyncio.sleep(0.05)
    assert await shown.committed(key) == 7


async def test_a_transaction_may_carry_offsets_alone_or_nothing(cluster):
    """Proves that empty rounds commit."""
    topic = await cluster.topic()
    group = cluster.name("g")
    key = TopicPartition(topic, 0)
    producer = await cluster.producer(cluster.name("tx"))
    await producer.begin_transaction()
    await producer.commit_transaction()
    await producer.begin_transaction()
    await producer.send_offsets_to_transaction({key: 3}, group)
    await producer.commit_transaction()
    shown = cluster.consumer(group_id=group)
    await shown.start()
    await cluster.until(lambda: _is(shown.committed(key), 3))


async def test_a_new_producer_of_an_id_fences_the_old_one(cluster):
    """Proves the fence: begin still passes, the first write is ProducerFenced, everything later an AssertionError."""
    topic = await cluster.topic()
    name = cluster.name("tx")
    old = await cluster.producer(name)
    await committed_round(old, topic, b"old")
    new = await cluster.producer(name)
    await old.begin_transaction()
    with pytest.raises(ProducerFenced):
        await old.send_and_wait(topic, b"zombie", partition=0)
    for late in (old.begin_transaction, old.commit_transaction):
        with pytest.raises(AssertionError):
            await late()
    await committed_round(new, topic, b"new")
    assert await cluster.values(topic, 2) == [b"old", b"new"]
    assert await cluster.values(topic, 2, "read_uncommitted") == [b"old", b"new"]


async def test_taking_an_id_over_aborts_what_its_last_owner_left_open(cluster):
    """Proves that a leader's half round is gone before its successor reads."""
    topic = await cluster.topic()
    name = cluster.name("tx")
    old = await cluster.producer(name)
    await old.begin_transaction()
    await old.send_and_wait(topic, b"half", partition=0)
    new = await cluster.producer(name)
    await cluster.until(lambda: _is(ends(cluster, topic), 2))
    for call in (old.commit_transaction, old.abort_transaction):
        with pytest.raises((ProducerFenced, AssertionError)):
            await call()
    await committed_round(new, topic, b"whole")
    assert await cluster.values(topic, 1) == [b"whole"]


async def test_a_fenced_commit_says_so(cluster):
    """Proves that a commit which meets the fence is ProducerFenced and writes nothing."""
    topic = await cluster.topic()
    name = cluster.name("tx")
    old = await cluster.producer(name)
    await old.begin_transaction()
    await old.send_and_wait(topic, b"half", partition=0)
    await cluster.producer(name)
    with pytest.raises(ProducerFenced):
        await old.commit_transaction()
    assert await cluster.values(topic, 0) == []


async def test_fenced_offsets_are_refused(cluster):
    """Proves that a zombie's offsets never reach the group once its id was taken."""
    topic = await cluster.topic()
    name, group = cluster.name("tx"), cluster.name("g")
    key = TopicPartition(topic, 0)
    old = await cluster.producer(name)
    new = await cluster.producer(name)
    await old.begin_transaction()
    with pytest.raises(ProducerFenced):
        await old.send_offsets_to_transaction({key: 5}, group)
    await new.begin_transaction()
    await new.send_offsets_to_transaction({key: 6}, group)
    await new.commit_transaction()
    shown = cluster.consumer(group_id=group)
    await shown.start()
    await cluster.until(lambda: _is(shown.committed(key), 6))


async def test_two_ids_in_turn_do_not_disturb_each_other(cluster):
    """Proves placement's rounds: round r on id r mod 2, everything in order and once."""
    topic = await cluster.topic()
    stem = cluster.name("pool")
    producers = [await cluster.producer(f"{stem}-{n}") for n in range(2)]
    for r in range(20):
        await committed_round(producers[r % 2], topic, b"%d" % r)
    assert await cluster.values(topic, 20) == [b"%d" % r for r in range(20)]


async def test_a_transaction_open_for_too_long_is_aborted_and_its_producer_fenced(embedded):
    """Proves the time-out: readers go on, and the late commit is refused."""
    topic = await embedded.topic()
    producer = await embedded.producer(embedded.name("tx"), process=embedded.process(transaction_timeout_ms=200))
    reader = await embedded.started(topic)
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"late", partition=0)
    plain = await embedded.producer()
    await plain.send_and_wait(topic, b"waits", partition=0)
    assert [r.value for r in await embedded.read(reader, 1)] == [b"waits"]
    with pytest.raises(ProducerFenced):
        await producer.commit_transaction()


async def test_one_long_transaction_does_not_end_another_one(embedded):
    """Proves that each transaction has its own time."""
    topic = await embedded.topic()
    short, long = embedded.process(transaction_timeout_ms=200), embedded.process(transaction_timeout_ms=30_000)
    young = await embedded.producer(embedded.name("tx"), process=long)
    old = await embedded.producer(embedded.name("tx"), process=short)
    await young.begin_transaction()
    await young.send_and_wait(topic, b"young", partition=0)
    await old.begin_transaction()
    await old.send_and_wait(topic, b"old", partition=0)
    await asyncio.sleep(0.25)
    with pytest.raises(ProducerFenced):
        await old.commit_transaction()
    await young.commit_transaction()
    assert await embedded.values(topic, 1) == [b"young"]


async def test_calls_out_of_place_are_refused(cluster):
    """Proves the client's own states: no send outside, no transaction without an id, no commit without a begin."""
    topic = await cluster.topic()
    producer = await cluster.producer(cluster.name("tx"))
    with pytest.raises(IllegalOperation):
        await producer.send(topic, b"v")
    with pytest.raises(AssertionError):
        await producer.commit_transaction()
    await producer.begin_transaction()
    with pytest.raises(AssertionError):
        await producer.begin_transaction()
    with pytest.raises(ValueError):
        await producer.send_offsets_to_transaction({}, "g")
    await producer.abort_transaction()
    plain = await cluster.producer()
    with pytest.raises(IllegalOperation):
        await plain.begin_transaction()


async def test_sends_that_nobody_awaited_are_in_the_commit(cluster):
    """Proves that a commit covers everything sent before it."""
    topic = await cluster.topic()
    producer = await cluster.producer(cluster.name("tx"))
    await producer.begin_transaction()
    waiting = [await producer.send(topic, b"%d" % n, partition=0) for n in range(50)]
    await producer.commit_transaction()
    assert [(await future).offset for future in waiting] == list(range(50))
    assert await cluster.values(topic, 50) == [b"%d" % n for n in range(50)]
