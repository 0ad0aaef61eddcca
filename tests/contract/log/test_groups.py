"""Consumer groups: sharing, leaving, rebalances, callbacks, generations and silence."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from aiokafka import ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError, InconsistentGroupProtocolError


class Told(ConsumerRebalanceListener):
    """Writes down what it is told; may commit what it loses."""

    def __init__(self, commits_of=None):
        self.calls = []
        self.reader = None
        self.commits_of = commits_of

    async def on_partitions_revoked(self, revoked):
        self.calls.append(("revoked", sorted(revoked)))
        if self.commits_of is not None and revoked:
            await self.reader.commit(dict.fromkeys(revoked, self.commits_of))

    async def on_partitions_assigned(self, assigned):
        self.calls.append(("assigned", sorted(assigned)))


def keys(topic, *numbers):
    return [TopicPartition(topic, number) for number in numbers]


async def joined(cluster, topic, group, listener=None, **settings):
    reader = cluster.consumer(group_id=group, session_timeout_ms=cluster.session_ms, **settings)
    if listener is not None:
        listener.reader = reader
    reader.subscribe([topic], listener=listener)
    await asyncio.wait_for(reader.start(), 30)
    return reader


async def polling(reader):
    """Keep a member alive, as every service does."""
    with contextlib.suppress(Exception):
        while True:
            await reader.getmany(timeout_ms=50)


async def test_members_share_the_partitions_and_no_record_is_read_twice(cluster):
    """Proves that a group reads each record once and keeps the order within its keys."""
    topic = await cluster.topic(partitions=4)
    group = cluster.name("g")
    first = await joined(cluster, topic, group)
    second = await joined(cluster, topic, group)
    await cluster.until(lambda: len(first.assignment()) == 2 == len(second.assignment()), 30)
    assert first.assignment() | second.assignment() == set(keys(topic, 0, 1, 2, 3))
    producer = await cluster.producer()
    for n in range(200):
        await producer.send(topic, b"%d" % n, key=b"key-%d" % (n % 8))
    await producer.flush()
    seen: list[tuple[bytes, int]] = []

    async def drain(reader):
        while True:
            for batch in (await reader.getmany(timeout_ms=100)).values():
                seen.extend((r.key, int(r.value)) for r in batch)

    drains = [asyncio.create_task(drain(reader)) for reader in (first, second)]
    await cluster.until(lambda: len(seen) >= 200)
    await asyncio.sleep(0.05)
    for task in drains:
        task.cancel()
    assert sorted(n for _, n in seen) == list(range(200))
    for key in {key for key, _ in seen}:
        assert [n for k, n in seen if k == key] == sorted(n for k, n in seen if k == key)


async def test_a_leaving_members_partitions_go_to_the_others(cluster):
    """Proves that a clean stop hands over at once, from the committed offsets."""
    topic = await cluster.topic(partitions=2)
    group = cluster.name("g")
    first = await joined(cluster, topic, group)
    second = await joined(cluster, topic, group)
    await cluster.until(lambda: len(first.assignment()) == 1 == len(second.assignment()), 30)
    producer = await cluster.producer()
    for number in (0, 1):
        await producer.send_and_wait(topic, b"%d" % number, partition=number)
    (held,) = second.assignment()
    await cluster.read(second, 1)
    await second.stop()
    await cluster.until(lambda: len(first.assignment()) == 2, 30)
    values = {r.value for r in await cluster.read(first, 2)}
    assert values == {b"0", b"1"}, f"{held} was not committed, so it is read again"


async def test_two_groups_each_read_everything(cluster):
    """Proves that groups do not share positions."""
    topic = await cluster.topic()
    producer = await cluster.producer()
    await producer.send_and_wait(topic, b"v")
    for _ in range(2):
        reader = await joined(cluster, topic, cluster.name("g"))
        assert [r.value for r in await cluster.read(reader, 1)] == [b"v"]


async def test_a_listener_hears_what_it_loses_and_then_what_it_gets(cluster):
    """Proves the order of callbacks: assigned at the first join, then revoked and assigned at each rebalance."""
    topic = await cluster.topic(partitions=2)
    group = cluster.name("g")
    told = Told()
    first = await joined(cluster, topic, group, told)
    await cluster.until(lambda: ("assigned", keys(topic, 0, 1)) in told.calls, 30)
    await joined(cluster, topic, group)
    await cluster.until(lambda: len(first.assignment()) == 1, 30)
    await cluster.until(lambda: told.calls[-1] == ("assigned", sorted(first.assignment())), 30)
    after = told.calls.index(("assigned", keys(topic, 0, 1))) + 1
    assert told.calls[after] == ("revoked", keys(topic, 0, 1))
    assert told.calls[-1][0] == "assigned"


async def test_a_member_without_partitions_is_told_so_at_each_join(cluster):
    """Proves that revoked is no sign of a loss: every join calls it, with an empty set for whoever has nothing."""
    topic, group, told = await cluster.topic(), cluster.name("g"), Told()
    leader = await joined(cluster, topic, group, sticky=True)
    pump = asyncio.create_task(polling(leader))
    await joined(cluster, topic, group, told, sticky=True)
    await cluster.until(lambda: told.calls[-1:] == [("assigned", [])], 30)
    before = len(told.calls)
    await joined(cluster, topic, group, sticky=True)
    await cluster.until(lambda: told.calls[before:] == [("revoked", []), ("assigned", [])], 30)
    pump.cancel()


async def test_sticky_members_keep_what_they_can(cluster):
    """Proves that a second member takes half and that the first keeps the rest of what it had."""
    topic, group = await cluster.topic(partitions=8), cluster.name("g")
    first = await joined(cluster, topic, group, sticky=True)
    pump = asyncio.create_task(polling(first))
    second = await joined(cluster, topic, group, sticky=True)
    await cluster.until(lambda: len(first.assignment()) == 4 == len(second.assignment()), 30)
    kept = first.assignment()
    third = await joined(cluster, topic, group, sticky=True)
    await cluster.until(lambda: sorted(map(len, (first.assignment(), third.assignment()))) == [2, 3], 30)
    assert first.assignment() <= kept
    pump.cancel()


async def test_what_is_revoked_may_still_be_committed_in_the_callback(cluster):
    """Proves that a member commits its last work before another one takes over, so nothing is done twice."""
    topic = await cluster.topic(partitions=2)
    group = cluster.name("g")
    told = Told(commits_of=3)
    await joined(cluster, topic, group, told)
    second = await joined(cluster, topic, group)
    await cluster.until(lambda: len(second.assignment()) == 1, 30)
    (key,) = second.assignment()
    assert ("revoked", keys(topic, 0, 1)) in told.calls
    assert await second.committed(key) == 3


async def test_a_rebalance_reads_again_what_was_not_committed(cluster):
    """Proves the eager protocol: every position goes back to the committed offset."""
    topic = await cluster.topic(partitions=2)
    group = cluster.name("g")
    producer = await cluster.producer()
    for n in range(6):
        await producer.send_and_wait(topic, b"%d" % n, partition=n % 2)
    first = await joined(cluster, topic, group)
    await cluster.read(first, 6)
    await first.commit({TopicPartition(topic, 0): 1, TopicPartition(topic, 1): 1})
    second = await joined(cluster, topic, group)
    await cluster.until(lambda: len(first.assignment()) == 1 == len(second.assignment()), 30)
    again = await cluster.read(first, 2) + await cluster.read(second, 2)
    assert sorted(r.value for r in again) == [b"2", b"3", b"4", b"5"]


async def test_a_member_that_was_put_out_cannot_commit(embedded):
    """Proves that a zombie's commit is refused, that it loses nothing by it, and that it joins again."""
    topic = await embedded.topic()
    group = embedded.name("g")
    producer = await embedded.producer()
    await producer.send_and_wait(topic, b"v")
    zombie = embedded.process()
    old = await joined(embedded, topic, group, process=zombie)
    (record,) = await embedded.read(old, 1)
    zombie.lost_contact()
    fresh = await joined(embedded, topic, group)
    await embedded.until(lambda: bool(fresh.assignment()))
    assert [r.value for r in await embedded.read(fresh, 1)] == [b"v"]
    await fresh.commit()
    with pytest.raises(CommitFailedError):
        await old.commit({TopicPartition(topic, 0): record.offset})
    assert await fresh.committed(TopicPartition(topic, 0)) == 1
    assert embedded.log.groups.is_member(old)


async def test_a_group_can_be_wound_back(embedded):
    """Proves the simulation's rewind: members read again from there, and never before the start."""
    topic = await embedded.topic()
    producer = await embedded.producer()
    for n in range(5):
        await producer.send_and_wait(topic, b"%d" % n)
    reader = await joined(embedded, topic, "g")
    await embedded.read(reader, 5)
    await reader.commit()
    embedded.log.rewind("g", 2)
    assert [r.value for r in await embedded.read(reader, 2)] == [b"3", b"4"]
    embedded.log.rewind("g", 100)
    assert len(await embedded.read(reader, 5)) == 5


async def test_a_process_that_was_paused_briefly_keeps_its_partitions(embedded):
    """Proves that contact regained within the session changes nothing."""
    topic = await embedded.topic()
    process = embedded.process()
    reader = await joined(embedded, topic, embedded.name("g"), process=process)
    before = reader.generation
    process.lost_contact()
    process.regained()
    await asyncio.sleep(embedded.session_ms / 1000 * 1.5)
    assert reader.assignment() == set(keys(topic, 0))
    assert reader.generation == before


async def test_a_process_that_was_paused_for_long_joins_again(embedded):
    """Proves that a zombie works on stale positions only until its next heartbeat."""
    topic = await embedded.topic()
    process = embedded.process()
    reader = await joined(embedded, topic, embedded.name("g"), process=process)
    before = reader.member_id
    process.lost_contact()
    await embedded.until(lambda: not embedded.log.groups.is_member(reader))
    assert reader.assignment() == set(keys(topic, 0)), "it does not know yet"
    process.regained()
    await embedded.until(lambda: reader.member_id != before and bool(reader.assignment()))


async def silent(cluster, topic, group, told):
    """A member that read one record and then left for not polling."""
    interval_ms = 100 if cluster.kind == "embedded" else 3_000
    reader = await joined(cluster, topic, group, told, max_poll_interval_ms=interval_ms)
    (record,) = await cluster.read(reader, 1)
    await cluster.until(lambda: told.calls[-1] == ("revoked", keys(topic, 0)), 20)
    return reader, {TopicPartition(topic, 0): record.offset + 1}


async def test_a_member_that_does_not_poll_leaves_and_comes_back_with_its_next_poll(cluster):
    """Proves max_poll_interval: silent work longer than it loses the partitions, and the work is done again."""
    topic, group = await cluster.topic(), cluster.name("g")
    await (await cluster.producer()).send_and_wait(topic, b"slow")
    slow, _ = await silent(cluster, topic, group, Told())
    assert [r.value for r in await cluster.read(slow, 1, 30)] == [b"slow"]


async def test_a_silent_member_cannot_commit_once_another_reads_in_its_place(cluster):
    """Proves that slow work which somebody else does by now is refused, and is done twice."""
    topic, group = await cluster.topic(), cluster.name("g")
    await (await cluster.producer()).send_and_wait(topic, b"slow")
    slow, done = await silent(cluster, topic, group, Told())
    other = await joined(cluster, topic, group)
    assert [r.value for r in await cluster.read(other, 1, 30)] == [b"slow"]
    with pytest.raises(CommitFailedError):
        await slow.commit(done)


async def test_a_silent_member_may_commit_while_its_group_is_empty(cluster):
    """Proves that work which nobody else took over counts, as a commit from outside does."""
    topic, group = await cluster.topic(), cluster.name("g")
    await (await cluster.producer()).send_and_wait(topic, b"slow")
    slow, done = await silent(cluster, topic, group, Told())
    await slow.commit(done)
    assert await slow.committed(TopicPartition(topic, 0)) == 1


async def test_a_waiting_member_is_not_silent(cluster):
    """Proves that a poll without data counts as polling however long it waits."""
    topic = await cluster.topic()
    told = Told()
    interval_ms = 60 if cluster.kind == "embedded" else 3_000
    reader = await joined(cluster, topic, cluster.name("g"), told, max_poll_interval_ms=interval_ms)
    assert await reader.getmany(timeout_ms=interval_ms * 2) == {}
    assert [call for call in told.calls if call[0] == "revoked" and call[1]] == []


async def test_the_holder_of_the_only_partition_keeps_its_seat(cluster):
    """Proves the sticky assignor: members that come and go never move the leader's seat."""
    topic = await cluster.topic()
    group = cluster.name("g")
    leader = await joined(cluster, topic, group, sticky=True)
    pump = asyncio.create_task(polling(leader))
    for _ in range(3):
        standby = await joined(cluster, topic, group, sticky=True)
        await cluster.until(lambda: leader.assignment() == set(keys(topic, 0)), 30)
        assert standby.assignment() == set()
        await standby.stop()
    last = await joined(cluster, topic, group, sticky=True)
    pump.cancel()
    await leader.stop()
    await cluster.until(lambda: last.assignment() == set(keys(topic, 0)), 30)


async def test_a_member_with_another_assignor_is_refused(cluster):
    """Proves that a group deals its partitions out in one way only."""
    topic = await cluster.topic()
    group = cluster.name("g")
    await joined(cluster, topic, group, sticky=True)
    other = cluster.consumer(group_id=group)
    other.subscribe([topic])
    with pytest.raises(InconsistentGroupProtocolError):
        await asyncio.wait_for(other.start(), 30)


async def test_a_pattern_takes_in_topics_made_later(cluster):
    """Proves pattern subscription: a new topic that fits is read without a restart."""
    stem = cluster.name("family")
    from_the_start = stem + ".one"
    await cluster.transport.provision([_settings(from_the_start)])
    reader = cluster.consumer(group_id=cluster.name("g"))
    reader.subscribe(pattern=stem + r"\..*")
    await asyncio.wait_for(reader.start(), 30)
    assert {key.topic for key in reader.assignment()} == {from_the_start}
    later = stem + ".two"
    await cluster.transport.provision([_settings(later)])
    pump = asyncio.create_task(polling(reader))
    await cluster.until(lambda: {key.topic for key in reader.assignment()} == {from_the_start, later}, 30)
    pump.cancel()


async def test_a_failing_listener_does_not_break_its_group(embedded, caplog):
    """Proves that an exception in a callback is logged and swallowed, as the client on Kafka does."""

    class Broken(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked):
            raise RuntimeError("broken")

        def on_partitions_assigned(self, assigned):
            raise RuntimeError("broken")

    topic = await embedded.topic(partitions=2)
    group = embedded.name("g")
    first = await joined(embedded, topic, group, Broken())
    second = await joined(embedded, topic, group)
    await embedded.until(lambda: len(first.assignment()) == 1 == len(second.assignment()))
    assert "a rebalance listener failed" in caplog.text


async def test_a_member_that_never_answers_is_put_out_when_its_session_ends(embedded):
    """Proves that a hanging callback holds the group for one session and no longer."""

    class Hanging(ConsumerRebalanceListener):
        async def on_partitions_revoked(self, revoked):
            await asyncio.get_running_loop().create_future()

        async def on_partitions_assigned(self, assigned):
            pass

    topic = await embedded.topic(partitions=2)
    group = embedded.name("g")
    listener = Hanging()
    await joined(embedded, topic, group, listener)
    begun = asyncio.get_running_loop().time()
    second = await joined(embedded, topic, group)
    assert len(second.assignment()) == 2
    assert asyncio.get_running_loop().time() - begun >= embedded.session_ms / 1000 * 0.9


async def test_members_and_partitions_are_visited_in_order(embedded):
    """Proves that assignments and their sets iterate in order, whatever the hash seed."""
    topic = await embedded.topic(partitions=12)
    group = embedded.name("g")
    readers = [await joined(embedded, topic, group) for _ in range(3)]
    await embedded.until(lambda: all(len(reader.assignment()) == 4 for reader in readers))
    assert [list(reader.assignment()) for reader in readers] == [
        keys(topic, *range(start, 12, 3)) for start in range(3)
    ]


def _settings(name):
    from types import SimpleNamespace

    return SimpleNamespace(name=name, partitions=1, configs={})
