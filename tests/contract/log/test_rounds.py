"""The product's own rounds on either log: two ids in turn, a fence, a limit around the whole, and no half round."""

from __future__ import annotations

import asyncio
import random

import pytest
import structlog
from aiokafka import TopicPartition

from evenflow.core.errors import Ended
from evenflow.platform.broker.codec import Encoded
from evenflow.platform.broker.transactions import FENCED, LOST, UNKNOWN, Transactions
from evenflow.platform.runtime import Runtime


class Process:
    """One leader, as far as it writes."""

    def __init__(self, cluster, name, round_limit_s=10.0):
        self.stand_at = ""
        self.stands, self.go = asyncio.Event(), asyncio.Event()
        runtime = Runtime(
            "leader", "1", cluster.clock, None, random.Random(1), cluster.process(), None, None, None,
            structlog.get_logger(), self._point,
        )  # fmt: skip
        self.rounds = Transactions(runtime, name, round_limit_s=round_limit_s, fence_limit_s=20.0)

    async def _point(self, name):
        if name == self.stand_at:
            self.stands.set()
            await self.go.wait()

    async def write(self, number, *topics, value=b""):
        records = [Encoded(topic, b"%d" % number, value or b"%d" % number, []) for topic in topics]
        return await self.rounds.write(number, records, [0] * len(records))


@pytest.fixture
async def leaders(cluster):
    """Makes leaders of one pool, one after another."""
    name, made = cluster.name("pool"), []

    async def lead(**settings):
        made.append(Process(cluster, name, **settings))
        await made[-1].rounds.fence(lambda: True)
        return made[-1]

    yield lead
    for process in made:
        process.go.set()
        await process.rounds.close()


async def test_rounds_are_written_in_turn_and_say_where(cluster, leaders):
    """Proves the plain case: each round whole, in order, with the place of each record."""
    a, b = await cluster.topic(), await cluster.topic()
    leader = await leaders()
    places = [await leader.write(number, a, a, b) for number in range(1, 7)]
    assert places[0] == [0, 1, 0]
    assert await cluster.values(a, 12) == [b"%d" % n for n in range(1, 7) for _ in range(2)]
    assert await cluster.values(b, 6) == [b"%d" % n for n in range(1, 7)]


async def test_a_leader_whose_id_was_taken_ends_fenced(cluster, leaders):
    """Proves that a zombie's next round is nothing, on whichever id it falls, and that it knows why it ends."""
    topic = await cluster.topic()
    for number in (1, 2):
        old = await leaders()
        new = await leaders()
        with pytest.raises(Ended) as ended:
            await old.write(number, topic, value=b"zombie")
        assert ended.value.exit_code == FENCED
        await new.write(number, topic)
    assert await cluster.values(topic, 2) == [b"1", b"2"]


async def test_a_leader_that_stood_before_its_commit_commits_nothing_when_it_wakes(cluster, leaders):
    """Proves the fence where it is needed most: everything is written, and another one leads."""
    topic = await cluster.topic()
    old = await leaders()
    old.stand_at = "leader.before-round-commit"
    round_of_old = asyncio.create_task(old.write(1, topic, value=b"zombie"))
    await asyncio.wait_for(old.stands.wait(), 10)
    new = await leaders()
    await new.write(1, topic)
    old.go.set()
    with pytest.raises(Ended) as ended:
        await round_of_old
    assert ended.value.exit_code == FENCED
    assert await cluster.values(topic, 1) == [b"1"]


async def test_a_round_that_takes_too_long_ends_unknown_and_is_undone_by_the_next_leader(cluster, leaders):
    """Proves the limit around the whole round, and that its remains hide nothing from the successor."""
    topic = await cluster.topic()
    slow = await leaders(round_limit_s=0.3)
    slow.stand_at = "leader.before-round-commit"
    with pytest.raises(Ended) as ended:
        await slow.write(1, topic, value=b"unknown")
    assert ended.value.exit_code == UNKNOWN
    await (await leaders()).write(1, topic)
    assert await cluster.values(topic, 1) == [b"1"]


async def test_a_round_with_a_record_the_log_refuses_is_not_committed(cluster, leaders):
    """Proves that each record is awaited before the commit: a refusal ends the leader, and nothing stays."""
    topic, small = await cluster.topic(), await cluster.topic(max_message_bytes="500")
    leader = await leaders()
    with pytest.raises(Ended) as ended:
        await leader.write(1, topic, small, value=b"v" * 1_000)
    assert ended.value.exit_code == UNKNOWN
    await (await leaders()).write(1, topic, small)
    assert (await cluster.values(topic, 1), await cluster.values(small, 1)) == ([b"1"], [b"1"])


async def test_a_candidate_that_lost_its_seat_takes_no_id(cluster, leaders):
    """Proves that a standby which was overtaken leaves the leader alone."""
    topic = await cluster.topic()
    leader = await leaders()
    late = Process(cluster, leader.rounds._name)
    with pytest.raises(Ended) as ended:
        await late.rounds.fence(lambda: False)
    assert ended.value.exit_code == LOST
    await leader.write(1, topic)
    reader = await cluster.started(topic)
    assert (await reader.beginning_offsets([TopicPartition(topic, 0)])) == {TopicPartition(topic, 0): 0}
    assert [r.value for r in await cluster.read(reader, 1)] == [b"1"]
