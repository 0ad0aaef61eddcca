"""Many records written at once, as rounds, the ledger and outlets write them."""

from __future__ import annotations

import pytest
from aiokafka.errors import MessageSizeTooLargeError, ProducerFenced

from evenflow.platform.broker.codec import Encoded
from evenflow.platform.broker.sending import send_all


def records(topic: str, *values: bytes) -> list[Encoded]:
    return [Encoded(topic, b"key", value, [("n", b"%d" % n)]) for n, value in enumerate(values)]


async def test_records_sent_together_keep_their_order_and_their_offsets_are_told(cluster):
    """Proves that all are written when the call returns, one after the other within their key."""
    topic = await cluster.topic()
    producer = await cluster.producer()
    first = await send_all(producer, records(topic, b"a", b"b"), [0, 0])
    second = await send_all(producer, records(topic, b"c"), [0])
    assert first + second == [0, 1, 2]
    assert await cluster.values(topic, 3) == [b"a", b"b", b"c"]
    assert await send_all(producer, []) == []


async def test_records_sent_together_in_a_transaction_are_seen_with_its_commit(cluster):
    """Proves that a round's records are all or nothing, whichever way they were handed over."""
    topic = await cluster.topic()
    producer = await cluster.producer(cluster.name("tx"))
    await producer.begin_transaction()
    await send_all(producer, records(topic, b"gone", b"gone"), [0, 0])
    await producer.abort_transaction()
    await producer.begin_transaction()
    await send_all(producer, records(topic, b"a", b"b"), [0, 0])
    await producer.commit_transaction()
    assert await cluster.values(topic, 2) == [b"a", b"b"]


async def test_a_fenced_producer_learns_it_when_it_sends_together(cluster):
    """Proves that the fence is what is raised, and that nothing of the fenced round is ever seen."""
    topic, name = await cluster.topic(), cluster.name("tx")
    old = await cluster.producer(name)
    new = await cluster.producer(name)
    await old.begin_transaction()
    with pytest.raises(ProducerFenced):
        await send_all(old, records(topic, b"old", b"old"), [0, 0])
    await new.begin_transaction()
    await send_all(new, records(topic, b"new"), [0])
    await new.commit_transaction()
    assert await cluster.values(topic, 1) == [b"new"]


async def test_a_record_that_is_too_large_is_told_to_whoever_sends_it_with_others(cluster):
    """Proves that the error of one comes out, and that the producer goes on."""
    topic = await cluster.topic()
    producer = await cluster.producer()
    with pytest.raises(MessageSizeTooLargeError):
        await send_all(producer, records(topic, b"x" * 5_000_000, b"b"), [0, 0])
    await send_all(producer, records(topic, b"c"), [0])
    assert b"c" in await cluster.values(topic, 1) or b"c" in await cluster.values(topic, 2)
