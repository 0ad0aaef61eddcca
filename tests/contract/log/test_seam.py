"""FastStream on the log: the same decorators, acknowledgement, workers, batches, middlewares and stop.

This suite is what an upgrade of FastStream must pass: it uses the private parts the seam relies on.
"""

from __future__ import annotations

import asyncio
import gc
import inspect

import pytest
from faststream import BaseMiddleware
from faststream._internal.broker.registrator import Registrator
from faststream.kafka import KafkaBroker, TestKafkaBroker
from faststream.kafka.configs import KafkaBrokerConfig

from evenflow.core.errors import Refused
from evenflow.platform.broker import seam


def test_another_version_of_faststream_is_refused_with_what_to_do(monkeypatch):
    """Proves that an unpinned library fails at the start, not in the middle of the night."""
    monkeypatch.setattr(seam, "installed", "0.8.0")
    with pytest.raises(Refused, match=r"install faststream==0\.7\.8, or revise"):
        seam.require_pinned_version()


def test_the_private_parts_the_seam_uses_are_there():
    """Proves, by name, what the seam replaces: the connection step, the configuration's fields, the lists."""
    assert inspect.iscoroutinefunction(KafkaBroker._connect)
    source = inspect.getsource(Registrator)
    assert "self.__persistent_subscribers.append" in source
    assert "self.__persistent_publishers.append" in source
    assert {"producer", "admin", "builder"} <= set(KafkaBrokerConfig.__dataclass_fields__)
    assert inspect.iscoroutinefunction(KafkaBrokerConfig.connect)


async def test_handlers_publish_and_read_through_the_log(cluster):
    """Proves the whole way: decorator, pydantic body, key, headers, correlation id, publisher, ping."""
    source, target = await cluster.topic(partitions=4), await cluster.topic(partitions=4)
    broker = cluster.transport.broker(client_id="svc")
    got = []

    @broker.subscriber(source, group_id=cluster.name("g"))
    @broker.publisher(target)
    async def double(body: dict):
        return {"n": body["n"] * 2}

    @broker.subscriber(target, group_id=cluster.name("g"))
    async def collect(body: dict):
        message = broker.context.get_local("message")
        got.append((body["n"], message.correlation_id))

    async with broker:
        await broker.start()
        assert await broker.ping(2)
        for n in range(10):
            await broker.publish({"n": n}, topic=source, key=b"%d" % n, correlation_id=f"c{n}")
        await cluster.until(lambda: len(got) == 10)
    assert sorted(got) == sorted((n * 2, f"c{n}") for n in range(10))


async def test_a_failing_handler_sees_its_record_again_in_order(cluster):
    """Proves NACK_ON_ERROR, the product's policy: nothing is skipped and nothing overtakes."""
    topic = await cluster.topic()
    group = cluster.name("g")
    broker = cluster.transport.broker(client_id="svc")
    seen = []

    @broker.subscriber(topic, group_id=group)
    async def handler(body: dict):
        seen.append(body["n"])
        if body["n"] == 2 and seen.count(2) < 4:
            raise ValueError

    await broker.start()
    for n in range(5):
        await broker.publish({"n": n}, topic=topic)
    await cluster.until(lambda: seen[-1:] == [4])
    await broker.stop()
    assert seen == [0, 1, 2, 2, 2, 2, 3, 4]
    assert sum((await cluster.transport.lag(group)).values()) == 0


async def test_a_batch_subscriber_gets_batches_and_a_failed_one_again(cluster):
    """Proves batches: bounded, acknowledged whole, repeated whole."""
    topic = await cluster.topic()
    broker = cluster.transport.broker(client_id="svc")
    batches = []

    @broker.subscriber(topic, group_id=cluster.name("g"), batch=True, max_records=4, batch_timeout_ms=50)
    async def handler(bodies: list[dict]):
        batches.append([body["n"] for body in bodies])
        if len(batches) == 1:
            raise ValueError

    producer = await cluster.producer()
    for n in range(8):
        await producer.send(topic, b'{"n": %d}' % n, headers=[("content-type", b"application/json")])
    await producer.flush()
    await broker.start()
    await cluster.until(lambda: batches and batches[-1][-1] == 7)
    await broker.stop()
    assert batches[0] == batches[1]
    assert all(len(batch) <= 4 for batch in batches)
    assert [n for batch in batches[1:] for n in batch] == list(range(8))


async def test_workers_share_the_partitions_and_keep_each_keys_order(cluster):
    """Proves max_workers: several consumers of the group in one process, a failing record stays with its worker."""
    topic = await cluster.topic(partitions=4)
    broker = cluster.transport.broker(client_id="svc")
    seen: dict[int, list[int]] = {}
    failed = []
    running = most = 0

    @broker.subscriber(topic, group_id=cluster.name("g"), max_workers=4)
    async def handler(body: dict):
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.002)
        running -= 1
        if body["n"] == 13 and not failed:
            failed.append(13)
            raise ValueError
        seen.setdefault(body["k"], []).append(body["n"])

    await broker.start()
    for n in range(60):
        await broker.publish({"n": n, "k": n % 8}, topic=topic, key=b"key-%d" % (n % 8))
    await cluster.until(lambda: sum(map(len, seen.values())) >= 60, 20)
    await broker.stop()
    assert most > 1
    assert {k: list(dict.fromkeys(numbers)) for k, numbers in seen.items()} == {
        k: list(range(k, 60, 8)) for k in range(8)
    }
    assert failed == [13]


async def test_two_groups_never_share_a_records_acknowledgement(embedded):
    """Proves that a worker's record is its own copy: a failing group does not move the other one's position."""
    topic = await embedded.topic()
    broker = embedded.transport.broker(client_id="svc")
    slow, quick = [], []

    @broker.subscriber(topic, group_id="slow", max_workers=2)
    async def slowly(body: dict):
        await asyncio.sleep(0.01)
        slow.append(body["n"])
        if len(slow) < 3:
            raise ValueError

    @broker.subscriber(topic, group_id="quick", max_workers=2)
    async def quickly(body: dict):
        quick.append(body["n"])

    await broker.start()
    await broker.publish({"n": 1}, topic=topic)
    await embedded.until(lambda: len(slow) == 3)
    await asyncio.sleep(0.02)
    await broker.stop()
    assert quick == [1]


async def test_a_graceful_stop_finishes_the_record_in_hand(cluster):
    """Proves that stop waits for the running handler, commits it, and leaves the rest for the next start."""
    topic = await cluster.topic()
    group = cluster.name("g")
    broker = cluster.transport.broker(client_id="svc")
    begun, done = asyncio.Event(), []

    @broker.subscriber(topic, group_id=group)
    async def handler(body: dict):
        begun.set()
        await asyncio.sleep(0.1)
        done.append(body["n"])

    await broker.start()
    for n in range(3):
        await broker.publish({"n": n}, topic=topic)
    await begun.wait()
    await broker.stop()
    assert done[0] == 0
    assert len(done) < 3
    assert sum((await cluster.transport.lag(group)).values()) == 3 - len(done)


async def test_a_handler_that_does_not_end_in_time_is_cut_and_its_record_comes_again(cluster):
    """Proves that a stop is bounded, and that what it cut off is not acknowledged."""
    topic, group = await cluster.topic(), cluster.name("g")
    cut, handled = [], []

    def service(client_id, handler):
        broker = cluster.process(graceful_timeout_s=0.1).broker(client_id=client_id)
        broker.subscriber(topic, group_id=group)(handler)
        return broker

    begun = asyncio.Event()

    async def endless(body: dict):
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cut.append(body["n"])
            raise

    async def quick(body: dict):
        handled.append(body["n"])

    first = service("one", endless)
    await first.start()
    await first.publish({"n": 1}, topic=topic)
    await asyncio.wait_for(begun.wait(), 20)
    await asyncio.wait_for(first.stop(), 10)
    assert cut == [1]
    second = service("two", quick)
    await second.start()
    await cluster.until(lambda: handled == [1], 30)
    await second.stop()


async def test_static_membership_is_refused_on_the_embedded_log(embedded):
    """Proves that a setting which would have no effect is an error."""
    topic = await embedded.topic()
    broker = embedded.transport.broker(client_id="svc")

    @broker.subscriber(topic, group_id="g", group_instance_id="one")
    async def handler(body: dict):
        pass

    with pytest.raises(Refused, match="static membership"):
        await broker.start()


async def test_middlewares_see_consuming_publishing_and_what_was_decided(cluster):
    """Proves consume_scope, publish_scope and after_processed: swallowing an error there commits the record."""
    topic, other = await cluster.topic(), await cluster.topic()
    told = []

    class Watching(BaseMiddleware):
        async def consume_scope(self, call_next, msg):
            told.append("consume")
            return await call_next(msg)

        async def publish_scope(self, call_next, cmd):
            told.append(f"publish {cmd.destination == other}")
            cmd.headers = {**(cmd.headers or {}), "x-tenant": "t1"}
            return await call_next(cmd)

        async def after_processed(self, exc_type=None, exc_val=None, exc_tb=None):
            told.append(f"after {exc_type.__name__ if exc_type else None}")
            return True

    group = cluster.name("g")
    broker = cluster.transport.broker(client_id="svc", middlewares=[Watching])

    @broker.subscriber(topic, group_id=group)
    async def handler(body: dict):
        await broker.publish(body, topic=other)
        if body["n"] == 0:
            raise ValueError

    await broker.start()
    producer = await cluster.producer()
    for n in range(2):
        await producer.send_and_wait(topic, b'{"n": %d}' % n, headers=[("content-type", b"application/json")])
    await producer.send_and_wait(topic, b"not json", headers=[("content-type", b"application/json")])
    await cluster.until(lambda: told.count("after None") == 1 and len([t for t in told if t.startswith("after")]) == 3)
    await cluster.until(lambda: _no_lag(cluster, group))
    await broker.stop()
    assert told[:3] == ["consume", "publish True", "after ValueError"]
    assert told.count("publish True") == 2
    (first, _) = await cluster.read(await cluster.started(other), 2)
    assert ("x-tenant", b"t1") in [tuple(h) for h in first.headers]


async def _no_lag(cluster, group):
    return sum((await cluster.transport.lag(group)).values()) == 0


async def test_subscribers_start_in_the_order_they_were_registered(cluster):
    """Proves determinism: neither addresses in memory nor the collector decide who joins first."""
    broker = cluster.transport.broker(client_id="svc")
    junk = [bytearray(64) for _ in range(1_000)]
    topics = [f"t{n}" for n in range(30)]

    async def handler(body: dict):
        """Nothing."""

    for name in topics:
        broker.subscriber(name, group_id="g")(handler)
        junk = [*junk[::2], bytearray(len(name) * 100)]
    gc.collect()
    publishers = [broker.publisher(name) for name in topics]
    assert [subscriber.topic_names[0] for subscriber in broker.subscribers] == topics
    assert list(broker.publishers) == publishers


async def test_ids_come_from_the_injected_source_and_nothing_is_logged(embedded, caplog):
    """Proves that a record without a correlation id gets an injected one, never a random one."""
    topic = await embedded.topic()
    broker = embedded.transport.broker(client_id="svc")
    seen = []

    @broker.subscriber(topic, group_id="g")
    async def handler(body: dict):
        seen.append(broker.context.get_local("message").correlation_id)

    await broker.start()
    await broker.publish({}, topic=topic)
    await embedded.until(lambda: bool(seen))
    await broker.stop()
    assert seen[0].startswith("id-")
    assert caplog.records == []


async def test_subscribers_read_committed_records_from_the_beginning_unless_they_say_otherwise(embedded):
    """Proves the product's defaults: no half transaction reaches a handler, nothing before the first join is lost."""
    topic = await embedded.topic()
    producer = await embedded.producer(embedded.name("tx"))
    for value, commit in ((b'{"n": 1}', False), (b'{"n": 2}', True)):
        await producer.begin_transaction()
        await producer.send_and_wait(topic, value, partition=0, headers=[("content-type", b"application/json")])
        await (producer.commit_transaction() if commit else producer.abort_transaction())
    broker = embedded.transport.broker(client_id="svc")
    seen = []

    @broker.subscriber(topic, group_id="g")
    async def handler(body: dict):
        seen.append(body["n"])

    await broker.start()
    await embedded.until(lambda: bool(seen))
    await broker.stop()
    assert seen == [2]


async def test_a_subscriber_of_a_topic_that_does_not_exist_fails_at_start(cluster):
    """Proves that FastStream creates no topics."""
    broker = cluster.transport.broker(client_id="svc")

    @broker.subscriber(cluster.name("missing"), group_id="g")
    async def handler(body: dict):
        """Nothing."""

    from aiokafka.errors import UnknownTopicOrPartitionError

    with pytest.raises(UnknownTopicOrPartitionError):
        await asyncio.wait_for(broker.start(), 15)
    await broker.stop()


async def test_the_test_broker_still_works_over_the_embedded_one(embedded):
    """Proves that handlers can be unit-tested with FastStream's own tool."""
    broker = embedded.transport.broker(client_id="svc")
    seen = []

    @broker.subscriber("anything", group_id="g")
    async def handler(body: dict):
        seen.append(body)

    async with TestKafkaBroker(broker) as double:
        await double.publish({"n": 1}, topic="anything")
    assert seen == [{"n": 1}]
