"""Field cases and rules of one placement round: gangs, shares, order, topology, reasons."""

from __future__ import annotations

import itertools
import random

from evenflow.core.demand.task import Adjacency, Where
from evenflow.core.fleet.description import SiteDescription
from evenflow.core.fleet.holder import Holder
from evenflow.core.lifecycle.node import DeviceState
from evenflow.core.lifecycle.reasons import Reason
from evenflow.core.placement.engine import could_seat
from evenflow.core.placement.engine import round as decide
from evenflow.core.placement.policy import DEFAULT_POLICY
from evenflow.core.queueing.description import QueueDescription
from evenflow.testkit.fleets import (
    GIB,
    asks,
    dataset,
    demand,
    fleet_of,
    link,
    node,
    nodes_in,
    queues_of,
    reasons_in,
    snapshot_of,
)


def decided(pool, demands, queues=None, now_ms=0, **around):
    return decide(snapshot_of(pool, **around), queues or queues_of(), demands, DEFAULT_POLICY, now_ms)


def test_a_quarter_of_a_device_is_never_none():
    """Proves R06: four quarters run with a named device each, the fifth and the gang wait, and later run together."""
    fleet = fleet_of([node("n1", devices=1)])
    quarters = [demand(f"q{index}", asks(share=250), sequence=index) for index in range(5)]
    gang = demand("gang", asks(share=250), members=3, sequence=9)
    plan = decided(fleet, [*quarters, gang])
    assert [placed.places[0].devices for placed in plan.placements] == [((0, 250),)] * 4
    assert reasons_in(plan) == {"q4": ["device-share"], "gang": ["device-share"]}
    plan = decided([node("n1", devices=1)], [quarters[4], gang])
    assert nodes_in(plan) == {"q4": ["n1"], "gang": ["n1"] * 3}
    assert sum(milli for placed in plan.placements for place in placed.places for _, milli in place.devices) == 1_000


def test_two_gangs_never_hold_half_each():
    """Proves R09: of two gangs that each need every node one runs whole and the other holds nothing."""
    pool = [node(f"n{index}", devices=1) for index in range(1, 5)]
    gangs = [demand(f"g{index}", asks(count=1), members=4, one_per_node=True, sequence=index) for index in (1, 2)]
    plan = decided(pool, gangs)
    assert nodes_in(plan) == {"g1": ["n1", "n2", "n3", "n4"]}
    assert reasons_in(plan) == {"g2": ["device-count"]}
    three = [demand(f"g{index}", asks(count=1), members=3, sequence=index) for index in (1, 2, 3)]
    assert list(nodes_in(decided(pool, three))) == ["g1"]


def test_reasons_name_model_node_size_and_dataset():
    """Proves R15 (3): a model nobody has, two devices on one node, a dataset that does not exist, on a full pool."""
    fleet = fleet_of([node(f"n{index}", devices=1, model="mi355x") for index in range(1, 5)])
    running = decided(fleet, [demand(f"v{index}", asks(count=1), sequence=index) for index in range(4)])
    for placed in running.placements:
        fleet.hold(Holder(placed.demand.task.key, 1, 0), placed.places[0])
    plan = decided(
        fleet,
        [
            demand("p1", asks(count=1, models=["mi355"])),
            demand("p2", asks(count=2), sequence=1),
            demand("p3", asks(count=1), reads=[("ghost", 1)], sequence=2),
        ],
    )
    assert reasons_in(plan) == {
        "p1": ["never-fits", "device-model", "device-count"],
        "p2": ["never-fits", "node-size"],
        "p3": ["dataset", "device-count"],
    }
    assert plan.evictions == ()
    size = plan.waits[1].blockers[1]
    assert (size.dimension, size.needed, size.available, size.nodes) == ("devices", "2 devices", "1 devices", 4)


def test_an_unplaceable_task_stops_nobody_behind_it():
    """Proves R27: in default and in strict order a task that can never run blocks nobody."""
    for order in ("default", "strict"):
        queues = queues_of(QueueDescription("q", order=order))
        fleet = fleet_of([node("n1", cpu=16, devices=1)])
        first = decided(fleet, [demand("j1", asks(count=1), queue="q")], queues)
        fleet.hold(Holder("t/j1", 1, 0), first.placements[0].places[0])
        j2, j3 = demand("j2", asks(count=8), queue="q", sequence=2), demand("j3", asks(), queue="q", sequence=3)
        plan = decided(fleet, [j2, j3], queues)
        assert (list(nodes_in(plan)), reasons_in(plan)) == (["j3"], {"j2": ["never-fits", "node-size"]})
        assert plan.waits[0].never_fits
        fleet.free(Holder("t/j1", 1, 0))
        plan = decided(fleet, [j2, demand("j4", asks(count=1), queue="q", sequence=4)], queues)
        assert list(nodes_in(plan)) == ["j4"]


def test_a_head_that_could_run_blocks_its_strict_queue_only():
    """Proves that strict order holds those behind a head short of room, in its own queue, and says so."""
    queues = queues_of(QueueDescription("q", order="strict"))
    wanted = [
        demand("held", asks(count=1), queue="q"),
        demand("head", asks(count=2), queue="q", sequence=1),
        demand("behind", asks(count=1), queue="q", sequence=2),
        demand("other", asks(), sequence=3),
    ]
    plan = decided([node("n1", devices=2)], wanted, queues)
    assert list(nodes_in(plan)) == ["held", "other"]
    assert reasons_in(plan) == {"head": ["device-count"], "behind": ["order"]}
    assert [(wait.demand.task.id, wait.position) for wait in plan.waits] == [("head", 1), ("behind", 2)]
    backing = [demand("late", asks(), queue="q", around={"not_before_ms": 5_000}), demand("now", queue="q", sequence=1)]
    plan = decided([node("n1")], backing, queues)
    assert (list(nodes_in(plan)), reasons_in(plan), plan.wake_ms) == (["now"], {"late": ["backing-off"]}, 5_000)


def test_higher_priority_comes_first_then_arrival():
    """Proves the order of a round, whatever order demands are given in."""
    wanted = [
        demand("old", asks(count=1), sequence=1),
        demand("new", asks(count=1), sequence=2),
        demand("high", asks(count=1), sequence=3, priority=90),
    ]
    for given in itertools.permutations(wanted):
        assert list(nodes_in(decided([node("n1", devices=2)], given))) == ["high", "old"]


def test_equal_racks_are_filled_tight_first_and_by_name():
    """Proves R32: a gang of two always takes the rack it just fills, and a gang of three then has the other."""
    pool = [node(f"n{index}", rack="r1" if index < 3 else "r2", devices=1) for index in range(1, 6)]
    order = random.Random(5)
    two = demand("g", asks(count=1), members=2, adjacency=Adjacency("rack"))
    three = demand("h", asks(count=1), members=3, adjacency=Adjacency("rack"), sequence=1)
    for _ in range(20):
        order.shuffle(pool)
        assert nodes_in(decided(pool, [two])) == {"g": ["n1", "n2"]}
    plan = decided(pool, [two, three])
    assert nodes_in(plan) == {"g": ["n1", "n2"], "h": ["n3", "n4", "n5"]}
    assert [placed.level for placed in plan.placements] == ["rack", "rack"]


def test_residency_keeps_a_task_waiting_rather_than_leave():
    """Proves R34: data bound to one region never lead to a place elsewhere, and the wait says residency."""
    around = {
        "links": [link("eu", "us"), link("us", "eu")],
        "datasets": [dataset("d", 50 * 10**9, "eu", residency=["EU"])],
        "sites": [SiteDescription("eu", region="EU"), SiteDescription("us", region="US")],
    }
    us = node("n2", site="us", devices=8)
    task = demand("t", asks(count=1), reads=[("d", 1)])
    fleet = fleet_of([node("n1", site="eu", devices=1), us])
    held = decided(fleet, [demand("k", asks(count=1), where=Where(sites=("eu",)))])
    fleet.hold(Holder("t/k", 1, 0), held.placements[0].places[0])
    assert reasons_in(decided(fleet, [task], **around)) == {"t": ["device-count", "residency"]}
    dead = [node("n1", site="eu", devices=1, is_open=False), us]
    assert reasons_in(decided(dead, [task], **around)) == {"t": ["residency", "node-state"]}
    gone = decided([us], [task], **around)
    assert (gone.waits[0].never_fits, reasons_in(gone)) == (True, {"t": ["never-fits", "residency"]})
    back = decided([node("n1", site="eu", devices=1), us], [task], **around)
    assert nodes_in(back) == {"t": ["n1"]}


def test_a_share_packs_on_the_fullest_device_that_fits():
    """Proves that shares fill up devices and never span them, and whole devices need untouched ones."""
    wanted = [demand(f"s{at}", asks(share=share), sequence=at) for at, share in enumerate((600, 300, 500, 100))]
    plan = decided([node("n1", devices=3)], [*wanted, demand("w", asks(count=2), sequence=9)])
    devices = [placed.places[0].devices[0] for placed in plan.placements]
    assert devices == [(0, 600), (0, 300), (1, 500), (0, 100)]
    assert reasons_in(plan) == {"w": ["device-count"]}


def test_device_memory_alone_takes_the_share_it_fills():
    """Proves that memory without count or share means a share, rounded up to thousandths."""
    plan = decided([node("n1", devices=1, device_memory=30 * GIB)], [demand("m", asks(device_memory=10 * GIB))])
    place = plan.placements[0].places[0]
    assert (place.devices, place.device_memory_bytes) == (((0, 334),), 10 * GIB)


def test_memory_of_a_shared_device_is_counted_beside_its_share():
    """Proves that two shares whose memory does not fit one device are not put on it, and the reason says memory."""
    greedy, second = asks(share=250, device_memory=60 * GIB), asks(share=250, device_memory=30 * GIB)
    plan = decided([node("n1", devices=1)], [demand("a", greedy), demand("b", second, sequence=1)])
    assert (list(nodes_in(plan)), reasons_in(plan)) == (["a"], {"b": ["device-memory"]})
    plan = decided([node("n1", devices=1)], [demand("a", greedy), demand("c", asks(share=500), sequence=1)])
    assert reasons_in(plan) == {"c": ["device-memory"]}


def test_work_without_devices_goes_where_no_device_is_locked_in():
    """Proves that a task of cores alone prefers a node without free devices, and devices pack on the fuller node."""
    pool = [node("n1", devices=8), node("n2", devices=4), node("n3")]
    plan = decided(pool, [demand("cpu"), demand("gpu", asks(count=2), sequence=1)])
    assert nodes_in(plan) == {"cpu": ["n3"], "gpu": ["n2"]}


def test_every_rule_is_named_by_its_own_reason():
    """Proves one by one which reason a rule of the specification, or the state of the only node, gives."""
    free = node("n1", site="east", rack="a", devices=1, model="v100-32g", device_memory=32 * GIB, labels=[("k", "v")])
    device = asks(count=1)
    cases = {
        "label": demand("t", where=Where(labels=(("k", "w"),))),
        "site": demand("t", where=Where(sites=("west",))),
        "pinned": demand("t", where=Where(nodes=("n2",))),
        "residency": demand("t", where=Where(residency=("eu",))),
        "device-model": demand("t", asks(count=1, models=["t4"])),
        "device-memory": demand("t", asks(count=1, device_memory=40 * GIB)),
        "precision": demand("t", asks(count=1, precision="fp8")),
        "failed-here": demand("t", device, around={"avoid": ("n1",)}),
        "apart": demand("t", device, around={"apart_nodes": ("n1",)}),
        "node-size": demand("t", asks(cpu_milli=65_000)),
    }
    for reason, wanted in cases.items():
        got = reasons_in(decided([free], [wanted]))["t"]
        assert got[-1] == reason
        assert set(got) <= {"never-fits", reason}
    for text, reason in (("window", "window"), ("", "node-state"), ("something else", "node-state")):
        closed = node("n1", is_open=False, reason_closed=text)
        assert reasons_in(decided([closed], [demand("t")])) == {"t": [reason]}
    broken = node("n1", devices=1, states=(DeviceState.BROKEN,))
    assert reasons_in(decided([broken], [demand("t", device)])) == {"t": ["device-count"]}
    assert reasons_in(decided([], [demand("t")])) == {"t": ["never-fits"]}


def test_a_node_that_is_too_small_is_not_blamed_while_a_larger_one_is_full():
    """Proves that reasons are about what could help: the full node's devices, not the small nodes' size."""
    fleet = fleet_of([node("n1", devices=8), node("n2", devices=1), node("n3")])
    first = decided(fleet, [demand("a", asks(count=8))])
    fleet.hold(Holder("t/a", 1, 0), first.placements[0].places[0])
    (blocker,) = decided(fleet, [demand("b", asks(count=4))]).waits[0].blockers
    assert (blocker.reason, blocker.needed, blocker.nodes) == (Reason.DEVICE_COUNT, "4 devices", 1)


def test_a_gang_relaxes_level_by_level_or_fails_or_waits():
    """Proves what follows after `wait_ms`, and when the plan asks to be made again."""
    pool = [node("n1", rack="a", devices=1), node("n2", rack="b", devices=1)]

    def after(then, now_ms):
        adjacency = Adjacency("rack", 60_000, then)
        return decided(pool, [demand("g", asks(count=1), members=2, adjacency=adjacency)], now_ms=now_ms)

    early = after("relax", 59_999)
    assert (reasons_in(early), early.wake_ms) == ({"g": ["adjacency"]}, 60_000)
    assert after("relax", 60_000).placements[0].level == "site"
    wait = after("wait", 10**9)
    assert (reasons_in(wait), wait.waits[0].never_fits) == ({"g": ["never-fits", "adjacency"]}, True)
    assert wait.wake_ms is None
    assert after("fail", 59_999).rejections == ()
    assert [gone.blocker.reason for gone in after("fail", 60_000).rejections] == [Reason.ADJACENCY]


def test_members_that_ask_differently_are_packed_where_a_greedy_guess_fails():
    """Proves that unlike members find the one seating there is."""
    asked = tuple(asks(cpu_milli=cores * 1_000) for cores in (3, 3, 2, 2, 2))
    plan = decided([node("n1", cpu=6), node("n2", cpu=6)], [demand("g", members=5, member_resources=asked)])
    assert nodes_in(plan)["g"] == ["n1", "n1", "n2", "n2", "n2"]


def test_tasks_apart_from_each_other_part_within_one_round():
    """Proves that rules between tasks hold among those placed together, in both directions."""
    first = demand("a", labels=(("app", "db"),))
    second = demand("b", sequence=1, where=Where(apart_from=("a",)))
    third = demand("c", sequence=2, where=Where(not_with=(("app", "db"),)))
    plan = decided([node("n1"), node("n2")], [first, second, third])
    assert nodes_in(plan) == {"a": ["n1"], "b": ["n2"], "c": ["n2"]}
    early = demand("b", sequence=0, where=Where(apart_from=("a",)))
    assert nodes_in(decided([node("n1"), node("n2")], [early, demand("a", sequence=1)])) == {"b": ["n1"], "a": ["n2"]}
    assert reasons_in(decided([node("n1")], [early, demand("a", sequence=1)])) == {"a": ["apart"]}


def test_a_gang_of_a_thousand_devices_is_one_decision():
    """Proves that 128 members of 8 devices get 128 whole nodes of one site at once."""
    pool = [node(f"n{index:03d}", site="east" if index % 2 else "west", devices=8) for index in range(300)]
    placed = decided(pool, [demand("big", asks(count=8), members=128)]).placements[0]
    assert placed.level == "site"
    assert len({place.node for place in placed.places}) == 128
    assert len({place.site for place in placed.places}) == 1


def test_a_place_to_go_is_a_node_that_takes_work_and_is_large_enough_even_if_full():
    """Proves R39: closed nodes and those a task must avoid are no place to go, full ones are, and gangs go together."""

    def has_place(pool, wanted):
        return could_seat(snapshot_of(pool), wanted, DEFAULT_POLICY, 0)

    closed = node("n1", devices=2, is_open=False, reason_closed="lost/open/ok")
    one = demand("t", asks(count=1))
    assert not has_place([closed], one)
    assert not has_place([closed, node("n2", devices=0)], one)
    assert has_place([closed, node("n2", devices=1)], one)
    full = fleet_of([closed, node("n2", devices=1)])
    placed = decided(full, [one]).placements[0]
    full.hold(Holder(placed.demand.task.key, 1, 0), placed.places[0])
    assert has_place(full, one)
    assert not has_place([closed, node("n2", devices=1)], demand("t", asks(count=1), around={"avoid": ("n2",)}))
    gang = demand("g", asks(count=1), members=2, one_per_node=True)
    assert not has_place([closed, node("n2", devices=4)], gang)
    assert has_place([closed, node("n2", devices=4), node("n3", devices=1)], gang)
