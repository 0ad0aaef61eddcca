"""When a task leaves its data: the arithmetic, its published figures, its limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evenflow.core.demand.task import Devices, Output, Where
from evenflow.core.fleet.description import SiteDescription
from evenflow.core.fleet.holder import Holder
from evenflow.core.fleet.snapshot import RunningView
from evenflow.core.placement.engine import round as decide
from evenflow.core.placement.policy import DEFAULT_POLICY, CrossingRule
from evenflow.core.pricing.estimate import break_even_bytes
from evenflow.testkit.fleets import (
    GB,
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

HOUR_MS = 3_600_000
UNIT = 1_000_000
READ_EVERY_TIME = replace(DEFAULT_POLICY, crossing=CrossingRule(keep_copy=False))
ONE = asks(count=1)


def two_sites(price_a=4 * UNIT, price_b=3 * UNIT, **b):
    return [
        node("n1", site="a", devices=1, price=price_a),
        node("n2", site="b", devices=1, price=price_b, **b),
    ]


def busy(pool, *, until_ms=None):
    """The pool with n1 held, and the running task that holds it."""
    fleet = fleet_of(pool)
    held = decide(snapshot_of(fleet), queues_of(), [demand("k", ONE, where=Where(nodes=("n1",)))], DEFAULT_POLICY, 0)
    place = held.placements[0].places[0]
    fleet.hold(Holder("t/k", 1, 0), place)
    return fleet, [RunningView("t/k", (place,), until_ms)]


R58 = (
    (1_000, 5, "n1", 106_000_000),
    (1_000, 1, "n1", 26_000_000),
    (10, 1, "n2", 6_200_000),
    (100, 1, "n1", 8_000_000),
    (30, 5, "n1", 9_000_000),
)


@pytest.mark.parametrize(("gigabytes", "reads", "where", "cost_there"), R58)
def test_a_cheap_device_far_from_the_data_pays_for_every_read(gigabytes, reads, where, cost_there):
    """Proves R58: with no copy kept the totals there are 106, 26, 6.20, 8.00 and 9.00 against 8.00; a tie stays."""
    task = demand("t", ONE, work_ms=2 * HOUR_MS, objective="cost", reads=[("d", reads)])
    snapshot = snapshot_of(
        two_sites(), links=[link("a", "b", gbit=100, price=20_000)], datasets=[dataset("d", gigabytes * GB, "a")]
    )
    placed = decide(snapshot, queues_of(), [task], READ_EVERY_TIME, 0).placements[0]
    assert [place.node for place in placed.places] == [where]
    terms = placed.crossing or placed.refused_crossing
    assert (terms.stay_cost_micro, terms.cross_cost_micro, terms.taken) == (8 * UNIT, cost_there, where == "n2")
    assert (terms.by_money, terms.gain_micro) == (True, 8 * UNIT - cost_there)
    assert placed.estimate_micro == (cost_there if where == "n2" else 8 * UNIT)
    assert (placed.crossing is None) == (where == "n1")
    if where == "n2":
        assert [(read.dataset, read.reads, read.keep_copy, read.price_micro) for read in placed.reads] == [
            ("d", 1, False, 200_000)
        ]


def test_a_budget_lets_run_only_what_it_can_pay():
    """Proves R58 (3): with a budget of 7.00 the third case runs at 6.20, all others wait with reason budget."""
    links = [link("a", "b", gbit=100, price=20_000)]
    for gigabytes, reads, where, _ in R58:
        task = demand("t", ONE, work_ms=2 * HOUR_MS, objective="cost", reads=[("d", reads)], budget_micro=7 * UNIT)
        snapshot = snapshot_of(two_sites(), links=links, datasets=[dataset("d", gigabytes * GB, "a")])
        plan = decide(snapshot, queues_of(), [task], READ_EVERY_TIME, 0)
        if where == "n2":
            assert nodes_in(plan) == {"t": ["n2"]}
        else:
            assert reasons_in(plan) == {"t": ["budget"]}
            assert plan.waits[0].blockers[0].available == "7.00"


def test_waiting_at_home_counts_only_nodes_that_the_task_does_not_avoid():
    """Proves R39 and R34: where the only node beside the data failed to start it, staying is never, not soon."""
    around = {"avoid": ("n1",)}
    task = demand("t", ONE, work_ms=60_000, reads=[("d", 1)], around=around)
    links, datasets = [link("a", "b", gbit=1)], [dataset("d", 2 * GB, "a")]
    plan = decide(snapshot_of(two_sites(), links=links, datasets=datasets), queues_of(), [task], DEFAULT_POLICY, 0)
    assert nodes_in(plan) == {"t": ["n2"]}
    with_another = [*two_sites(), node("n3", site="a", devices=1)]
    fleet, _ = busy(with_another)
    hold = decide(snapshot_of(fleet), queues_of(), [demand("k3", ONE, where=Where(nodes=("n3",)))], DEFAULT_POLICY, 0)
    place = hold.placements[0].places[0]
    fleet.hold(Holder("t/k3", 1, 0), place)
    running = [RunningView("t/k3", (place,), 5_000)]
    full = snapshot_of(fleet, links=links, datasets=datasets, running=running)
    refused = decide(full, queues_of(), [task], DEFAULT_POLICY, 0).waits[0].crossing
    assert refused is not None
    assert (refused.stay_wait_ms, refused.taken) == (5_000, False)


def test_a_budget_holds_for_tasks_without_data_too():
    """Proves that a node too dear for the budget is ruled out, and the cheaper one taken."""
    task = demand("t", ONE, work_ms=2 * HOUR_MS, budget_micro=7 * UNIT)
    assert nodes_in(decide(snapshot_of(two_sites()), queues_of(), [task], DEFAULT_POLICY, 0)) == {"t": ["n2"]}
    poor = demand("t", ONE, work_ms=2 * HOUR_MS, budget_micro=5 * UNIT)
    assert reasons_in(decide(snapshot_of(two_sites()), queues_of(), [poor], DEFAULT_POLICY, 0)) == {"t": ["budget"]}


def test_break_even_volumes_come_out_as_published():
    """Proves 06 §5: 4 h to wait here, a start of 0.25 h there, 10 Gbit/s, same speed: 16.875 TB, 337.50 at 0.02."""
    volume = break_even_bytes(10 * 10**9, 4 * HOUR_MS, HOUR_MS // 4)
    assert volume == 16_875 * GB
    assert volume * 20_000 // GB == 337_500_000
    assert volume * 90_000 // GB == 1_518_750_000
    assert break_even_bytes(10**9, 5, 6) == 0


def crossing_by_time(gigabytes, margin_ppm=0, confidence=1_000_000):
    """One task of an hour whose home is held for another hour; the other site is free at 10 Gbit/s."""
    fleet, running = busy(two_sites(0, 0, disk=10**13), until_ms=HOUR_MS)
    snapshot = snapshot_of(
        fleet,
        running=running,
        links=[link("a", "b", gbit=10, confidence=confidence)],
        datasets=[dataset("d", gigabytes * GB, "a")],
    )
    policy = replace(DEFAULT_POLICY, crossing=CrossingRule(margin_ppm=margin_ppm))
    task = demand("t", ONE, work_ms=HOUR_MS, reads=[("d", 1)])
    return decide(snapshot, queues_of(), [task], policy, 0)


def test_a_task_crosses_when_the_wait_is_longer_than_the_transfer():
    """Proves the break-even in time: 4,500 GB take exactly the hour of waiting, and a tie stays."""
    crossed = crossing_by_time(4_499).placements[0].crossing
    assert (crossed.stay_wait_ms, crossed.stay_run_ms, crossed.cross_run_ms) == (HOUR_MS, HOUR_MS, HOUR_MS)
    assert (crossed.transfer_in_ms, crossed.gain_ms) == (4_499 * 800, 800)
    assert (crossed.from_site, crossed.to_site, crossed.bytes) == ("a", "b", 4_499 * GB)
    stayed = crossing_by_time(4_500)
    assert reasons_in(stayed) == {"t": ["device-count", "crossing"]}
    refused = stayed.waits[0].crossing
    assert (refused.gain_ms, refused.taken) == (0, False)
    assert stayed.wake_ms == HOUR_MS


def test_the_margin_is_a_part_of_what_staying_is_worth():
    """Proves gain > margin × (wait + run), and that links nobody is sure of ask for up to twice the margin."""
    # A tenth of two hours is 720 s: 3,600 GB leave exactly that, 3,599 GB a little more.
    assert reasons_in(crossing_by_time(3_600, 100_000)) == {"t": ["device-count", "crossing"]}
    assert nodes_in(crossing_by_time(3_599, 100_000)) == {"t": ["n2"]}
    unsure = crossing_by_time(3_000, 100_000, confidence=500_000)
    assert unsure.placements[0].crossing.margin_ppm == 150_000
    assert reasons_in(crossing_by_time(3_400, 100_000, confidence=0)) == {"t": ["device-count", "crossing"]}


def test_a_home_that_never_fits_sends_its_tasks_away():
    """Proves that data at a site without devices are no reason to wait for ever."""
    pool = [node("n1", site="a"), node("n2", site="b", devices=1)]
    snapshot = snapshot_of(pool, links=[link("a", "b")], datasets=[dataset("d", GB, "a")])
    plan = decide(snapshot, queues_of(), [demand("t", ONE, reads=[("d", 1)])], DEFAULT_POLICY, 0)
    assert nodes_in(plan) == {"t": ["n2"]}
    assert plan.placements[0].crossing.taken


def test_no_link_means_waiting_at_home():
    """Proves that an unreachable site is no choice, however free, and is named with reason path."""
    fleet, running = busy(two_sites())
    snapshot = snapshot_of(fleet, running=running, links=[link("b", "a")], datasets=[dataset("d", GB, "a")])
    plan = decide(snapshot, queues_of(), [demand("t", ONE, reads=[("d", 1)])], DEFAULT_POLICY, 0)
    assert reasons_in(plan) == {"t": ["device-count", "path"]}


def test_the_nearest_of_several_copies_is_read():
    """Proves that replicas count: a copy at the site needs no transfer, else the soonest one is taken."""
    links = [link("a", "c", gbit=1), link("b", "c", gbit=10)]
    far = [node("n3", site="c", devices=1)]
    snapshot = snapshot_of(far, links=links, datasets=[dataset("d", GB, "a", "b")])
    placed = decide(snapshot, queues_of(), [demand("t", ONE, reads=[("d", 1)])], DEFAULT_POLICY, 0).placements[0]
    assert [(read.from_site, read.keep_copy) for read in placed.reads] == [("b", True)]
    home = snapshot_of([*far, *two_sites()], links=links, datasets=[dataset("d", GB, "a", "c")])
    placed = decide(home, queues_of(), [demand("t", ONE, reads=[("d", 1)])], DEFAULT_POLICY, 0).placements[0]
    assert (placed.reads, placed.crossing) == ((), None)


def test_a_kept_copy_is_moved_once_and_staged_on_disk():
    """Proves that reads count once when the copy stays, and that staged data need and hold disk."""
    fleet, running = busy(two_sites(disk=100 * GB), until_ms=9 * HOUR_MS)
    links = [link("a", "b", gbit=10)]
    for gigabytes, expected in ((100, {"t": ["n2"]}), (101, {})):
        snapshot = snapshot_of(fleet, running=running, links=links, datasets=[dataset("d", gigabytes * GB, "a")])
        task = demand("t", ONE, work_ms=HOUR_MS, reads=[("d", 7)])
        plan = decide(snapshot, queues_of(), [task], DEFAULT_POLICY, 0)
        assert nodes_in(plan) == expected
        if expected:
            assert plan.placements[0].crossing.transfer_in_ms == 80_000
            assert plan.placements[0].places[0].disk_bytes == 100 * GB
        else:
            assert reasons_in(plan) == {"t": ["device-count", "disk"]}


def test_transfers_of_one_round_share_their_link():
    """Proves that a second crossing in the same round reckons with half the rate."""
    pool = [node("n1", site="a"), node("n2", site="b", devices=2)]
    snapshot = snapshot_of(
        pool, links=[link("a", "b", gbit=10)], datasets=[dataset("d", GB, "a"), dataset("e", GB, "a")]
    )
    wanted = [demand("t", ONE, reads=[("d", 1)]), demand("u", ONE, reads=[("e", 1)], sequence=1)]
    plan = decide(snapshot, queues_of(), wanted, DEFAULT_POLICY, 0)
    assert [placed.crossing.bandwidth_bits for placed in plan.placements] == [10**10, 5 * 10**9]


def test_the_source_sends_no_faster_than_its_upload():
    """Proves that a site's upload bounds the transfer."""
    pool = [node("n1", site="a"), node("n2", site="b", devices=1)]
    snapshot = snapshot_of(
        pool,
        links=[link("a", "b", gbit=10)],
        datasets=[dataset("d", GB, "a")],
        sites=[SiteDescription("a", upload_bits=10**9)],
    )
    placed = decide(snapshot, queues_of(), [demand("t", ONE, reads=[("d", 1)])], DEFAULT_POLICY, 0).placements[0]
    assert (placed.crossing.bandwidth_bits, placed.crossing.transfer_in_ms) == (10**9, 8_000)


def test_output_and_saved_work_count_in_the_comparison():
    """Proves that output brought home is part of crossing, and work done before a checkpoint is not done again."""
    fleet, running = busy(two_sites(0, 0), until_ms=HOUR_MS)
    snapshot = snapshot_of(
        fleet, running=running, links=[link("a", "b"), link("b", "a")], datasets=[dataset("d", 1_000 * GB, "a")]
    )
    task = demand(
        "t",
        ONE,
        work_ms=2 * HOUR_MS,
        reads=[("d", 1)],
        output=Output(500 * GB, "a"),
        around={"progress_ms": HOUR_MS, "resume_site": "a", "resume_bytes": 100 * GB},
    )
    crossing = decide(snapshot, queues_of(), [task], DEFAULT_POLICY, 0).placements[0].crossing
    assert (crossing.transfer_in_ms, crossing.transfer_out_ms) == (880_000, 400_000)
    assert (crossing.stay_run_ms, crossing.cross_run_ms) == (HOUR_MS, HOUR_MS)
    assert crossing.gain_ms == 2 * HOUR_MS - 880_000 - HOUR_MS - 400_000


def test_those_who_wait_ahead_make_crossing_worth_it():
    """Proves that the queue at home counts: the first few wait, those behind leave when the wait has grown."""
    fleet, running = busy(two_sites(0, 0), until_ms=HOUR_MS // 2)
    snapshot = snapshot_of(
        fleet, running=running, links=[link("a", "b", gbit=10)], datasets=[dataset("d", 3_000 * GB, "a")]
    )
    wanted = [demand(f"t{index}", ONE, work_ms=HOUR_MS, reads=[("d", 1)], sequence=index) for index in range(3)]
    plan = decide(snapshot, queues_of(), wanted, DEFAULT_POLICY, 0)
    assert nodes_in(plan) == {"t1": ["n2"]}
    assert [wait.crossing.stay_wait_ms for wait in plan.waits if wait.crossing] == [HOUR_MS // 2]


def test_a_gang_crosses_whole_or_stays():
    """Proves that all members of a gang with data run at one site."""
    pool = [
        node("n1", site="a", devices=1),
        node("n2", site="b", devices=1),
        node("n3", site="b", devices=1),
    ]
    snapshot = snapshot_of(pool, links=[link("a", "b")], datasets=[dataset("d", GB, "a")])
    gang = demand("g", ONE, members=2, reads=[("d", 1)])
    plan = decide(snapshot, queues_of(), [gang], DEFAULT_POLICY, 0)
    assert nodes_in(plan) == {"g": ["n2", "n3"]}
    assert [place.disk_bytes for place in plan.placements[0].places] == [GB, 0]
    lone = snapshot_of(pool[:2], links=[link("a", "b")], datasets=[dataset("d", GB, "a")])
    assert nodes_in(decide(lone, queues_of(), [gang], DEFAULT_POLICY, 0)) == {}


def test_a_faster_device_elsewhere_is_weighed_by_its_speed():
    """Proves that the run there is the run here × the ratio of speeds, for declared bounds as well as for work."""
    pool = [node("n1", site="a", devices=1), node("n2", site="b", devices=1, model="h20")]
    snapshot = snapshot_of(pool, links=[link("a", "b")], datasets=[dataset("d", GB, "a")])
    bound = demand("t", ONE, reads=[("d", 1)], declared_ms=HOUR_MS, workload="bandwidth")
    crossing = decide(snapshot, queues_of(), [bound], DEFAULT_POLICY, 0).placements[0].crossing
    assert (crossing.stay_run_ms, crossing.cross_run_ms) == (HOUR_MS, -(-HOUR_MS * 10**6 // 1_961_746))
    compute = demand("t", ONE, reads=[("d", 1)], work_ms=HOUR_MS, workload="compute")
    placed = decide(snapshot, queues_of(), [compute], DEFAULT_POLICY, 0).placements[0]
    assert (placed.places[0].node, placed.refused_crossing.taken) == ("n1", False)


def test_the_cheapest_node_is_taken_when_cost_is_the_objective():
    """Proves that without data, too, cost decides before packing, and devices are priced pro rata."""
    pool = [node("n1", devices=1, price=4 * UNIT), node("n2", devices=8, price=3 * UNIT)]
    half = demand("t", replace(ONE, devices=Devices(share_milli=500)), work_ms=HOUR_MS, objective="cost")
    placed = decide(snapshot_of(pool), queues_of(), [half], DEFAULT_POLICY, 0).placements[0]
    assert (placed.places[0].node, placed.estimate_micro) == ("n2", 1_500_000)


def test_a_home_that_is_down_is_not_waited_for_like_a_free_one():
    """Proves that closed nodes promise nothing: the task crosses when its site is gone and the way is short."""
    pool = [node("n1", site="a", devices=1, is_open=False), node("n2", site="b", devices=1)]
    snapshot = snapshot_of(pool, links=[link("a", "b")], datasets=[dataset("d", GB, "a")])
    placed = decide(snapshot, queues_of(), [demand("t", ONE, reads=[("d", 1)])], DEFAULT_POLICY, 0).placements[0]
    assert placed.places[0].node == "n2"
    assert placed.crossing.stay_wait_ms == HOUR_MS


def test_saved_work_is_resumed_where_it_can_be_brought():
    """Proves that a site which can't reach the checkpoint counts with the whole run, and comes last between equals."""
    pool = [node("n1", site="a", devices=1), node("n2", site="b", devices=1), node("n3", site="c", devices=1)]
    saved = {"progress_ms": HOUR_MS, "resume_site": "c", "resume_bytes": 10 * GB}
    for work_ms, links, expected in (
        (2 * HOUR_MS, [], "n3"),
        (2 * HOUR_MS, [link("c", "b")], "n3"),
        (0, [], "n3"),
    ):
        task = demand("t", ONE, work_ms=work_ms, around=saved)
        assert nodes_in(decide(snapshot_of(pool, links=links), queues_of(), [task], DEFAULT_POLICY, 0)) == {
            "t": [expected]
        }
    task = demand("t", ONE, work_ms=2 * HOUR_MS, around=saved)
    far = snapshot_of(pool[:2], links=[link("c", "b")])
    assert nodes_in(decide(far, queues_of(), [task], DEFAULT_POLICY, 0)) == {"t": ["n2"]}
    assert nodes_in(decide(snapshot_of(pool[:2]), queues_of(), [task], DEFAULT_POLICY, 0)) == {"t": ["n1"]}
