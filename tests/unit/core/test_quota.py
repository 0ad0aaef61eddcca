"""Quota: the request counts, the limit may be met exactly, and nothing is given back twice."""

from __future__ import annotations

import pytest

from evenflow.core.errors import Conflict
from evenflow.core.fleet.holder import Holder
from evenflow.core.lifecycle.reasons import Reason
from evenflow.core.placement.engine import round as decide
from evenflow.core.placement.policy import DEFAULT_POLICY
from evenflow.core.queueing.description import Limits, QueueDescription
from evenflow.core.queueing.quota import Amount, Queues, amount_of
from evenflow.testkit.fleets import asks, demand, fleet_of, node, nodes_in, queues_of, reasons_in, snapshot_of


class Pool:
    """A pool whose rounds are booked, as a service would."""

    def __init__(self, nodes, queues):
        self.fleet, self.queues = fleet_of(nodes), queues
        self.waiting = []
        self.running = {}

    def submit(self, *demands):
        self.waiting += demands
        plan = decide(snapshot_of(self.fleet), self.queues, self.waiting, DEFAULT_POLICY, 0)
        for placed in plan.placements:
            task = placed.demand.task
            for place in placed.places:
                self.fleet.hold(Holder(task.key, 1, place.member), place)
                self.queues.hold(task.queue, Holder(task.key, 1, place.member), amount_of([place]))
            self.running[task.id] = placed
        self.waiting = [wait.demand for wait in plan.waits]
        return plan

    def end(self, name, times=1):
        placed = self.running.pop(name)
        for place in placed.places:
            for _ in range(times):
                self.fleet.free(Holder(placed.demand.task.key, 1, place.member))
                self.queues.free(Holder(placed.demand.task.key, 1, place.member))
        return self.submit()


def test_a_tenth_and_two_tenths_meet_three_tenths_exactly():
    """Proves R01: a limit met exactly is allowed, and one thousandth more waits for quota."""
    pool = Pool([node("n1", devices=1)], queues_of(q=Limits(devices_milli=300)))
    pool.submit(demand("t1", asks(share=100), queue="q"))
    pool.submit(demand("t2", asks(share=200), queue="q", sequence=1))
    plan = pool.submit(demand("t3", asks(share=1), queue="q", sequence=2))
    assert sorted(pool.running) == ["t1", "t2"]
    assert pool.queues.used("q").devices_milli == 300
    (blocker,) = plan.waits[0].blockers
    assert (blocker.reason, blocker.dimension, blocker.needed) == (Reason.QUOTA, "devices", "0.001 devices")
    assert "in queue q" in blocker.available


def test_not_full_yet_is_not_it_fits():
    """Proves R23: with 9 of 10 cores used a task of 10 waits, and of two tasks of one core exactly one runs."""
    pool = Pool([node("n1", devices=8)], queues_of(qc=Limits(cpu_milli=10_000), qg=Limits(devices_milli=2_000)))
    pool.submit(demand("a", asks(cpu_milli=9_000), queue="qc"))
    assert reasons_in(pool.submit(demand("b", asks(cpu_milli=10_000), queue="qc", sequence=1))) == {"b": ["quota"]}
    pool.submit(demand("c1", asks(), queue="qc", sequence=2), demand("c2", asks(), queue="qc", sequence=3))
    assert [name for name in pool.running if name.startswith("c")] == ["c1"]
    pool.submit(*[demand(f"g{index}", asks(count=1), queue="qg", sequence=9 + index) for index in range(4)])
    assert pool.queues.used("qg").devices_milli == 2_000
    pool.end("g0")
    assert sorted(name for name in pool.running if name.startswith("g")) == ["g1", "g2"]


def test_an_end_told_three_times_opens_no_quota():
    """Proves R22: after three ends and a cancelled resubmission exactly two of four tasks run under a limit of two."""
    pool = Pool([node("n1", devices=8)], queues_of(q=Limits(devices_milli=2_000)))
    pool.submit(demand("t0", asks(count=1), queue="q"))
    pool.end("t0", times=3)
    assert not pool.queues.free(Holder("t/t0b", 1, 0))
    plan = pool.submit(*[demand(f"t{index}", asks(count=1), queue="q", sequence=index) for index in range(1, 5)])
    assert sorted(pool.running) == ["t1", "t2"]
    assert reasons_in(plan) == {"t3": ["quota"], "t4": ["quota"]}
    for name in ("t1", "t2", "t3", "t4"):
        pool.end(name, times=2)
    assert pool.queues.used("q") == Amount()
    assert pool.fleet.free_of("n1") == pool.fleet.totals()


def test_a_task_above_its_queues_own_limit_is_rejected():
    """Proves that only what can never be admitted is rejected, all members counted; an unknown queue as well."""
    queues = queues_of(q=Limits(devices_milli=2_000))
    asked = [
        demand("gang", asks(count=1), queue="q", members=3),
        demand("exact", asks(count=1), queue="q", members=2, sequence=1),
        demand("lost", asks(), queue="nowhere", sequence=2),
    ]
    plan = decide(snapshot_of([node("n1", devices=8)]), queues, asked, DEFAULT_POLICY, 0)
    assert list(nodes_in(plan)) == ["exact"]
    assert reasons_in(plan) == {"gang": ["quota"], "lost": ["queue-unknown"]}


def test_quota_and_missing_room_are_both_named():
    """Proves that a wait names all blockers, and quota alone when there is room."""
    queues = queues_of(q=Limits(devices_milli=1_000))
    held = demand("held", asks(count=1), queue="q")
    both, free = demand("both", asks(count=1, share=0), queue="q", sequence=1), demand("cpu", asks(), sequence=2)
    assert reasons_in(decide(snapshot_of([node("n1", devices=1)]), queues, [held, both, free], DEFAULT_POLICY, 0)) == {
        "both": ["quota", "device-count"]
    }
    assert reasons_in(decide(snapshot_of([node("n1", devices=2)]), queues, [held, both], DEFAULT_POLICY, 0)) == {
        "both": ["quota"]
    }


def test_a_share_by_memory_counts_with_what_it_takes():
    """Proves that a task asking for device memory alone is held to the share it gets."""
    queues = queues_of(q=Limits(devices_milli=300))
    asked = [demand(name, asks(device_memory=20 * 2**30), queue="q", sequence=at) for at, name in enumerate("ab")]
    plan = decide(snapshot_of([node("n1", devices=1)]), queues, asked, DEFAULT_POLICY, 0)
    assert [placed.places[0].devices for placed in plan.placements] == [((0, 250),)]
    assert reasons_in(plan) == {"b": ["quota"]}


def test_lowering_a_limit_stops_only_what_asks_for_that_dimension():
    """Proves that a queue above its lowered device limit may still run tasks without devices."""
    queues = queues_of(q=Limits(devices_milli=4_000))
    queues.hold("q", Holder("t/old", 1, 0), Amount(1_000, 0, 0, 4_000))
    queues.set(QueueDescription("q", limit=Limits(devices_milli=1_000)))
    asked = [demand("cpu", asks(), queue="q"), demand("gpu", asks(share=1), queue="q", sequence=1)]
    plan = decide(snapshot_of([node("n1", devices=8)]), queues, asked, DEFAULT_POLICY, 0)
    assert (list(nodes_in(plan)), reasons_in(plan)) == (["cpu"], {"gpu": ["quota"]})


def test_books_refuse_another_amount_under_the_same_name():
    """Proves that a member is counted once, and a changed amount is an error."""
    queues = Queues()
    holder = Holder("t/a", 1, 0)
    assert queues.hold("default", holder, Amount(cpu_milli=5))
    assert not queues.hold("default", holder, Amount(cpu_milli=5))
    with pytest.raises(Conflict):
        queues.hold("default", holder, Amount(cpu_milli=6))
    assert queues.used("default") == Amount(cpu_milli=5)
    assert queues.children("root") == ("default",)
