"""What the simulation hangs on the log: delivery, interception, patience, and worlds without a clock of their own."""

from __future__ import annotations

import asyncio
import contextvars

import pytest
from aiokafka import TopicPartition


class Held:
    """A delivery that lets records through when it is told."""

    def __init__(self):
        self.through = 0
        self.wakes = []
        self.asked = []

    def reached(self, group_id, partition, position, end, wake):
        self.asked.append((group_id, partition))
        if self.through < end:
            self.wakes.append(wake)
        return self.through

    def let(self, offset):
        self.through = offset
        wakes, self.wakes = self.wakes, []
        for wake in wakes:
            wake()


async def test_a_record_is_read_when_it_has_reached_the_group_and_not_before(embedded):
    """Proves the delivery port for single and batched polls: delays hold back, the order stays."""
    topic = await embedded.topic()
    held = embedded.log.hooks.delivery = Held()
    producer = await embedded.producer()
    for n in range(4):
        await producer.send_and_wait(topic, b"%d" % n, partition=0)
    reader = await embedded.started(topic, group_id="g")
    waiting = asyncio.create_task(reader.getone())
    await asyncio.sleep(0.02)
    assert not waiting.done()
    held.let(1)
    assert (await waiting).value == b"0"
    assert await embedded.quiet(reader, 10) == []
    held.let(3)
    assert [r.value for r in await embedded.quiet(reader)] == [b"1", b"2"]
    assert ("g", TopicPartition(topic, 0)) in held.asked


async def test_what_an_interceptor_repeats_is_a_new_record_with_the_same_bytes(embedded):
    """Proves duplication between sender and log."""
    topic = await embedded.topic()
    embedded.log.hooks.interceptor = lambda rows: [copy for row in rows for copy in (row, row.detached())]
    producer = await embedded.producer()
    place = await producer.send_and_wait(topic, b"v", key=b"k", partition=0, headers=[("h", b"1")])
    assert place.offset == 0
    records = await embedded.read(await embedded.started(topic), 2)
    assert [(r.offset, r.key, r.value, r.headers) for r in records] == [
        (0, b"k", b"v", [("h", b"1")]),
        (1, b"k", b"v", [("h", b"1")]),
    ]


async def test_what_an_interceptor_holds_is_acknowledged_and_may_come_later_in_another_order(embedded):
    """Proves hold, drop and reorder: the sender goes on, the released records get the offsets of their time."""
    topic = await embedded.topic()
    held = []

    def hold(rows):
        held.extend(row.detached() for row in rows if row.value != b"through")
        return [row for row in rows if row.value == b"through"]

    embedded.log.hooks.interceptor = hold
    producer = await embedded.producer()
    assert (await producer.send_and_wait(topic, b"0", partition=0)).offset == -1
    assert (await producer.send_and_wait(topic, b"1", partition=0)).offset == -1
    assert (await producer.send_and_wait(topic, b"through", partition=0)).offset == 0
    embedded.log.hooks.interceptor = None
    embedded.log.append(list(reversed(held)))
    assert await embedded.values(topic, 3) == [b"through", b"1", b"0"]


async def test_a_held_record_of_a_transaction_comes_after_it(embedded):
    """Proves that a delayed record never joins another transaction."""
    topic = await embedded.topic()
    held = []

    def hold(rows):
        held.extend(row.detached() for row in rows)
        return []

    producer = await embedded.producer(embedded.name("tx"))
    await producer.begin_transaction()
    embedded.log.hooks.interceptor = hold
    await producer.send_and_wait(topic, b"late", partition=0)
    embedded.log.hooks.interceptor = None
    await producer.commit_transaction()
    assert await embedded.values(topic, 0) == []
    embedded.log.append(held)
    assert await embedded.values(topic, 1) == [b"late"]


async def test_a_failing_interceptor_reaches_the_senders(embedded):
    """Proves that nobody waits for ever when a hook is broken."""
    topic = await embedded.topic()

    def broken(rows):
        raise RuntimeError("broken hook")

    embedded.log.hooks.interceptor = broken
    producer = await embedded.producer()
    waiting = await producer.send(topic, b"v")
    with pytest.raises(RuntimeError, match="broken hook"):
        await waiting


async def test_a_patient_poll_waits_for_data_whatever_its_time_out(embedded):
    """Proves that idle consumers cost a simulation no timers, and that passing markers ends a poll all the same."""
    embedded.log.hooks.patient_polls = True
    topic = await embedded.topic()
    reader = await embedded.started(topic)
    waiting = asyncio.create_task(reader.getmany(timeout_ms=1))
    await asyncio.sleep(0.03)
    assert not waiting.done()
    producer = await embedded.producer(embedded.name("tx"))
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"gone", partition=0)
    await producer.abort_transaction()
    assert await waiting == {}
    assert await reader.position(TopicPartition(topic, 0)) == 2
    assert await reader.getmany(timeout_ms=0) == {}


async def test_a_record_in_flight_outlives_its_process(embedded):
    """Proves that writes and time-outs run in the world's context: a dead process's last send still arrives."""
    dead: contextvars.ContextVar[bool] = contextvars.ContextVar("dead", default=False)
    seen = []
    embedded.log.hooks.interceptor = lambda rows: seen.append(dead.get()) or rows
    topic = await embedded.topic()
    producer = await embedded.producer()

    async def process():
        dead.set(True)
        return await producer.send(topic, b"last", partition=0)

    await (await asyncio.create_task(process()))
    assert seen == [False]


async def test_a_rebalance_calls_each_member_in_its_own_context(embedded):
    """Proves that a member's callbacks belong to its process and die with it."""
    process: contextvars.ContextVar[str] = contextvars.ContextVar("process", default="none")
    topic = await embedded.topic(partitions=2)
    heard = []

    class Listener:
        def on_partitions_revoked(self, revoked):
            heard.append(process.get())

        def on_partitions_assigned(self, assigned):
            heard.append(process.get())

    async def member(name):
        process.set(name)
        reader = embedded.consumer(group_id="g")
        reader.subscribe([topic], listener=Listener())
        await reader.start()
        return reader

    await asyncio.create_task(member("one"))
    await asyncio.create_task(member("two"))
    await embedded.until(lambda: len(heard) >= 4)
    assert sorted(heard) == ["one", "one", "one", "two"]
