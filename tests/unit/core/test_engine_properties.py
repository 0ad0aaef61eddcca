"""What must hold for the engine on every small pool: asked of random pools, checked by brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenflow.core.demand.task import Adjacency, Devices, Resources, Where
from evenflow.core.fleet.holder import Holder
from evenflow.core.fleet.views import NodeView
from evenflow.core.lifecycle.node import DeviceState
from evenflow.core.lifecycle.reasons import Reason
from evenflow.core.placement.engine import round as decide
from evenflow.core.placement.plan import Plan
from evenflow.core.placement.policy import DEFAULT_POLICY
from evenflow.core.queueing.description import Limits
from evenflow.core.queueing.quota import amount_of
from evenflow.testkit.fleets import GIB, demand, fleet_of, node, queues_of, snapshot_of
from evenflow.testkit.oracle import can_seat, is_overdrawn, stock_of, take

EVERY_CASE = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
MODELS = (("a100-80g", 80), ("t4", 16), ("h20", 96))


@st.composite
def nodes(draw, name):
    """A node with few devices, some of them not usable, in one of two sites and racks."""
    model, memory = draw(st.sampled_from(MODELS))
    count = draw(st.integers(0, 3))
    states = draw(st.lists(st.sampled_from([DeviceState.OK] * 4 + list(DeviceState)), min_size=count, max_size=count))
    return node(
        name,
        site=draw(st.sampled_from(["east", "west"])),
        rack=draw(st.sampled_from(["a", "b", None])),
        cpu=draw(st.integers(1, 8)),
        memory=draw(st.integers(1, 16)) * GIB,
        disk=draw(st.integers(0, 4)) * GIB,
        devices=count,
        model=model,
        device_memory=memory * GIB,
        labels=draw(st.sampled_from([(), (("kind", "x"),)])),
        is_open=draw(st.sampled_from([True] * 5 + [False])),
        states=states,
    )


@st.composite
def pools(draw, most=4):
    """Up to `most` nodes."""
    return [draw(nodes(f"n{index}")) for index in range(draw(st.integers(1, most)))]


@st.composite
def wishes(draw):
    """What one member asks for."""
    kind = draw(st.sampled_from(["none", "count", "share", "memory", "both"]))
    share = draw(st.sampled_from([1, 250, 400, 700])) if kind in ("share", "both") else 0
    return Resources(
        draw(st.sampled_from([0, 500, 1_000, 3_000])),
        draw(st.sampled_from([0, GIB, 5 * GIB])),
        draw(st.sampled_from([0, 0, GIB])),
        Devices(
            count=draw(st.integers(1, 3)) if kind == "count" else 0,
            share_milli=1 if kind == "memory" else share,
            models=draw(st.sampled_from([(), (), ("t4",), ("a100-80g", "h20")])) if kind != "none" else (),
            memory_bytes=draw(st.sampled_from([5, 16, 40])) * GIB if kind in ("memory", "both") else 0,
            precision=draw(st.sampled_from([None, None, None, "bf16"])) if kind != "none" else None,
            any_share=kind == "memory",
        ),
    )


@st.composite
def demands(draw, index):
    """A task: alone, a gang of alike members or one of members that ask differently."""
    members = draw(st.sampled_from([1, 1, 1, 2, 3]))
    unlike = members > 1 and draw(st.booleans())
    where = Where(
        labels=draw(st.sampled_from([(), (), (), (("kind", "x"),)])),
        sites=draw(st.sampled_from([(), (), ("east",)])),
        not_nodes=draw(st.sampled_from([(), (), ("n0",)])),
    )
    level = draw(st.sampled_from([None, "node", "rack", "site", "region"])) if members > 1 else None
    return demand(
        f"t{index}",
        draw(wishes()),
        sequence=index,
        where=where,
        priority=draw(st.sampled_from([50, 50, 90])),
        queue=draw(st.sampled_from(["default", "small"])),
        members=members,
        member_resources=tuple(draw(wishes()) for _ in range(members)) if unlike else (),
        one_per_node=members > 1 and draw(st.booleans()),
        adjacency=Adjacency(level, then="wait") if level else None,
        around={"avoid": draw(st.sampled_from([(), (), ("n1",)]))},
    )


@st.composite
def cases(draw, tasks=8):
    """A pool and what waits for it."""
    return draw(pools()), [draw(demands(index)) for index in range(draw(st.integers(1, tasks)))]


def small_queue():
    """A queue that may hold 2.5 devices and 6 cores."""
    return queues_of(small=Limits(devices_milli=2_500, cpu_milli=6_000))


def decided(pool, asked, queues=None) -> Plan:
    """One round over an empty pool."""
    return decide(snapshot_of(pool), queues or small_queue(), asked, DEFAULT_POLICY, 0)


def stocks_after(pool, plan):
    """What is left by the oracle's own count."""
    stocks = {view.description.id: stock_of(view) for view in pool}
    for placed in plan.placements:
        for place in placed.places:
            take(stocks[place.node], place)
    return stocks


@EVERY_CASE
@given(cases())
def test_no_dimension_of_any_node_is_ever_given_twice(case):
    """Proves that cores, memory, disk, shares, devices and device memory are never over-subscribed, and rules kept."""
    pool, asked = case
    plan = decided(pool, asked)
    stocks = stocks_after(pool, plan)
    assert [name for name, stock in stocks.items() if is_overdrawn(stock)] == []
    for placed in plan.placements:
        task = placed.demand.task
        for place in placed.places:
            stock, wish = stocks[place.node], task.resources_of(place.member)
            assert stock.view.open
            assert place.node not in (*placed.demand.avoid, *task.where.not_nodes)
            assert all(stock.usable[index] for index, _ in place.devices)
            assert (place.cpu_milli, place.memory_bytes) == (wish.cpu_milli, wish.memory_bytes)
            if wish.devices.count:
                assert [milli for _, milli in place.devices] == [1_000] * wish.devices.count
            elif wish.devices.share_milli and not wish.devices.any_share:
                assert [milli for _, milli in place.devices] == [wish.devices.share_milli]
            elif wish.devices.memory_bytes:
                assert len(place.devices) == 1
                assert place.device_memory_bytes == wish.devices.memory_bytes


@EVERY_CASE
@given(cases())
def test_a_gang_is_placed_whole_and_as_close_as_asked(case):
    """Proves that every member has a place or none has, on nodes of their own and within one domain where asked."""
    pool, asked = case
    by_name = {view.description.id: view.description for view in pool}
    for placed in decided(pool, asked).placements:
        task = placed.demand.task
        assert [place.member for place in placed.places] == list(range(task.members))
        names = [place.node for place in placed.places]
        if task.one_per_node:
            assert len(dict.fromkeys(names)) == len(names)
        if task.adjacency is not None:
            keys = {
                "node": lambda name: name,
                "rack": lambda name: (by_name[name].site, by_name[name].rack_id),
                "site": lambda name: by_name[name].site,
                "region": lambda name: by_name[name].site,
            }
            assert len({keys[task.adjacency.level](name) for name in names}) == 1


@EVERY_CASE
@given(cases())
def test_a_queue_never_holds_more_than_its_limit(case):
    """Proves that all placements of one round together keep the quota, request included."""
    pool, asked = case
    plan = decided(pool, asked)
    taken = amount_of(
        place for placed in plan.placements if placed.demand.task.queue == "small" for place in placed.places
    )
    assert taken.devices_milli <= 2_500
    assert taken.cpu_milli <= 6_000


@EVERY_CASE
@given(cases())
def test_a_task_waits_only_when_nothing_fits(case):
    """Proves against brute force that whoever waits for room alone has no seat in what is left, and has a reason."""
    pool, asked = case
    plan = decided(pool, asked)
    stocks = list(stocks_after(pool, plan).values())
    assert len(plan.placements) + len(plan.waits) + len(plan.rejections) == len(asked)
    for wait in plan.waits:
        task = wait.demand.task
        assert wait.blockers
        if any(blocker.reason is Reason.QUOTA for blocker in wait.blockers):
            continue
        level = task.adjacency.level if task.adjacency else ""
        assert not can_seat(stocks, task, level=level, barred=wait.demand.avoid)


@EVERY_CASE
@given(pools(), st.data())
def test_one_demand_alone_is_placed_exactly_when_it_can_be(pool, data):
    """Proves against brute force that a lone demand on an empty pool gets a place if there is one at all."""
    wish = data.draw(demands(0))
    plan = decided(pool, [wish], queues_of(small=Limits()))
    level = wish.task.adjacency.level if wish.task.adjacency else ""
    possible = can_seat([stock_of(view) for view in pool], wish.task, level=level, barred=wish.avoid)
    assert bool(plan.placements) == possible
    if possible:
        assert not any(wait.never_fits for wait in plan.waits)


@EVERY_CASE
@given(cases(), st.randoms(use_true_random=False))
def test_the_plan_does_not_depend_on_the_order_of_listing(case, order):
    """Proves that nodes registered, and demands given, in any order lead to the same plan."""
    pool, asked = case
    plan = decided(pool, asked)
    order.shuffle(pool)
    order.shuffle(asked)
    assert decided(pool, asked) == plan


@EVERY_CASE
@given(pools(3), st.data())
def test_another_node_never_turns_a_placement_into_a_wait(pool, data):
    """Proves that adding capacity does not hurt a lone demand."""
    wish = data.draw(demands(0))
    before = decided(pool, [wish])
    after = decided([*pool, data.draw(nodes("n9"))], [wish])
    assert len(after.placements) >= len(before.placements)


@EVERY_CASE
@given(cases())
def test_a_round_changes_nothing_it_is_given(case):
    """Proves that snapshot, queues and demands stay as they are, so that a dry run is a dry run."""
    pool, asked = case
    fleet, queues = fleet_of(pool), small_queue()
    snapshot = snapshot_of(fleet)
    before = [snapshot.fleet.amounts.copy(), snapshot.fleet.devices.copy(), snapshot.fleet.device_memory.copy()]
    given_before, used = list(asked), queues.used("small")
    first = decide(snapshot, queues, asked, DEFAULT_POLICY, 0)
    after = [snapshot.fleet.amounts, snapshot.fleet.devices, snapshot.fleet.device_memory]
    assert all(np.array_equal(left, right) for left, right in zip(before, after, strict=True))
    assert (asked, queues.used("small")) == (given_before, used)
    assert decide(snapshot, queues, asked, DEFAULT_POLICY, 0) == first


@EVERY_CASE
@given(cases(), cases(), st.data())
def test_what_is_kept_between_rounds_never_shows(first, second, data):
    """Proves that a fleet with a history of rounds, holdings and returns decides like a new one in the same state."""
    pool, asked = first
    fleet, queues = fleet_of(pool), small_queue()
    for wave in (asked, second[1]):
        plan = decide(snapshot_of(fleet), queues, wave, DEFAULT_POLICY, 0)
        for placed in plan.placements:
            for place in placed.places:
                fleet.hold(Holder(f"{placed.demand.task.key}/{id(wave)}", 1, place.member), place)
        held = [holder for view in pool for holder in fleet.held_by(view.description.id)]
        for holder in held:
            if data.draw(st.booleans()):
                fleet.free(holder)
    fresh = fleet_of(pool)
    for view in pool:
        for holder, place in fleet.held_by(view.description.id).items():
            fresh.hold(holder, place)
    kept = decide(snapshot_of(fleet), queues, asked, DEFAULT_POLICY, 0)
    assert kept == decide(snapshot_of(fresh), queues, asked, DEFAULT_POLICY, 0)


@EVERY_CASE
@given(pools(), st.data())
def test_taking_all_named_blockers_away_lets_a_task_start(pool, data):
    """Proves that reasons are complete: without everything that is named there is a seat."""
    wish = alone(data.draw(demands(0)))
    for wait in decided(pool, [wish], queues_of(small=Limits())).waits:
        assert wait.blockers
        freed, task = without(pool, wish, wait.blockers)
        assert can_seat([stock_of(view) for view in freed], task, barred=barred_after(wish, wait.blockers))


@EVERY_CASE
@given(pools(), st.data())
def test_a_blocker_that_rules_out_every_node_holds_alone(pool, data):
    """Proves that reasons are true: a shortage named for all nodes holds the task when all other reasons are gone."""
    wish = alone(data.draw(demands(0)))
    for wait in decided(pool, [wish], queues_of(small=Limits())).waits:
        for blocker in wait.blockers:
            assert blocker.nodes <= len(pool)
            if blocker.nodes == len(pool) and blocker.reason in HOLDS_ALONE:
                others = [other for other in wait.blockers if other != blocker]
                freed, task = without(pool, wish, others)
                assert not can_seat([stock_of(view) for view in freed], task, barred=barred_after(wish, others))


@EVERY_CASE
@given(pools(), st.data())
def test_what_never_fits_would_not_fit_an_empty_pool(pool, data):
    """Proves that never-fits is said only of what no registered nodes could hold, all open and repaired."""
    wish = data.draw(demands(0))
    level = wish.task.adjacency.level if wish.task.adjacency else ""
    for wait in decided(pool, [wish], queues_of(small=Limits())).waits:
        repaired = [stock_of(NodeView(view.description, open=True)) for view in pool]
        assert wait.never_fits == (not can_seat(repaired, wish.task, level=level))


HOLDS_ALONE = (
    Reason.CPU,
    Reason.MEMORY,
    Reason.DISK,
    Reason.NODE_STATE,
    Reason.LABEL,
    Reason.SITE,
    Reason.DEVICE_COUNT,
)
ROOM_REASONS = (Reason.DEVICE_COUNT, Reason.DEVICE_SHARE)


def alone(wish):
    """The same task with one member."""
    return replace(wish, task=replace(wish.task, members=1, member_resources=(), one_per_node=False, adjacency=None))


def without(pool, wish, blockers):
    """Pool and task with everything taken away that the blockers name."""
    gone = {(blocker.reason, blocker.dimension.split(".")[0]) for blocker in blockers}
    reasons = {reason for reason, _ in gone}
    task, asked = wish.task, wish.task.resources
    sizes = {dimension for reason, dimension in gone if reason is Reason.NODE_SIZE}
    if Reason.CPU in reasons or "cpu" in sizes:
        asked = replace(asked, cpu_milli=0)
    if Reason.MEMORY in reasons or "memory" in sizes:
        asked = replace(asked, memory_bytes=0)
    if Reason.DISK in reasons or "disk" in sizes:
        asked = replace(asked, disk_bytes=0)
    if Reason.DEVICE_MODEL in reasons:
        asked = replace(asked, devices=replace(asked.devices, models=()))
    if Reason.PRECISION in reasons:
        asked = replace(asked, devices=replace(asked.devices, precision=None))
    if Reason.DEVICE_MEMORY in reasons:
        asked = replace(asked, devices=replace(asked.devices, memory_bytes=0, any_share=False))
    if "devices" in sizes or any(reason in reasons for reason in ROOM_REASONS):
        asked = replace(asked, devices=Devices())
    where = task.where
    if Reason.LABEL in reasons:
        where = replace(where, labels=())
    if Reason.SITE in reasons:
        where = replace(where, sites=())
    if Reason.PINNED in reasons:
        where = replace(where, not_nodes=())
    if Reason.NODE_STATE in reasons:
        pool = [replace(view, open=True) for view in pool]
    return pool, replace(task, resources=asked, where=where)


def barred_after(wish, blockers):
    """Nodes it still avoids."""
    return () if any(blocker.reason is Reason.FAILED_HERE for blocker in blockers) else wish.avoid
