"""What must hold for tasks with data on every small pool: asked of random sites, links, datasets and budgets."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenflow.core.demand.task import Output
from evenflow.core.fleet.description import SiteDescription
from evenflow.core.fleet.snapshot import RunningView
from evenflow.core.placement.engine import round as decide
from evenflow.core.placement.policy import DEFAULT_POLICY, CrossingRule
from evenflow.testkit.fleets import GB, asks, dataset, demand, link, node, queues_of, snapshot_of
from evenflow.testkit.oracle import is_overdrawn, stock_of, take

EVERY_CASE = settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
SITES = ("a", "b", "c")
HOUR_MS = 3_600_000
REGION = {"a": "r1", "b": "r2", "c": "r2"}
UNIT = 1_000_000


@st.composite
def snapshots(draw):
    """Up to five nodes at three sites in two regions, some links, some datasets."""
    nodes = [
        node(
            f"n{index}",
            site=draw(st.sampled_from(SITES)),
            devices=draw(st.integers(0, 2)),
            disk=draw(st.sampled_from([100, 10**4])) * GB,
            price=draw(st.integers(0, 4)) * UNIT,
            cpu_price=draw(st.integers(0, 1)) * UNIT,
            model=draw(st.sampled_from(["a100-80g", "h20"])),
        )
        for index in range(draw(st.integers(1, 5)))
    ]
    pairs = [(source, target) for source in SITES for target in SITES if source != target]
    links = [
        link(source, target, gbit=draw(st.sampled_from([1, 10])), price=draw(st.sampled_from([0, 20_000])))
        for source, target in draw(st.lists(st.sampled_from(pairs), unique=True))
    ]
    datasets = [
        dataset(
            name,
            draw(st.sampled_from([1, 50, 2_000])) * GB,
            *draw(st.lists(st.sampled_from(SITES), max_size=2, unique=True)),
            residency=draw(st.sampled_from([(), ("r1",), ("r2",)])),
        )
        for name in draw(st.sampled_from([("d",), ("d", "e")]))
    ]
    return nodes, links, datasets


@st.composite
def wishes(draw, index):
    """A task that reads one or two datasets, alone or as a gang."""
    members = draw(st.sampled_from([1, 1, 1, 2]))
    return demand(
        f"t{index}",
        draw(st.sampled_from([asks(), asks(count=1), asks(share=400)])),
        sequence=index,
        work_ms=draw(st.sampled_from([0, HOUR_MS])),
        reads=draw(st.sampled_from([[("d", 1)], [("d", 3)], [("d", 1), ("e", 2)], []])),
        members=members,
        objective=draw(st.sampled_from(["finish", "cost"])),
        budget_micro=draw(st.sampled_from([None, None, 5 * UNIT])),
        output=draw(st.sampled_from([None, Output(10 * GB, "a")])),
        around=draw(st.sampled_from([{}, {"resume_site": "b", "resume_bytes": GB}])),
    )


@EVERY_CASE
@given(snapshots(), st.data())
def test_data_never_go_where_they_may_not_or_can_not(parts, data):
    """Proves for every plan: nothing over-subscribed, residency and links kept, budgets kept, every wait explained."""
    nodes, links, datasets = parts
    sites = [SiteDescription(site, region=REGION[site]) for site in SITES]
    wanted = [data.draw(wishes(index)) for index in range(data.draw(st.integers(1, 6)))]
    policy = replace(DEFAULT_POLICY, crossing=CrossingRule(keep_copy=data.draw(st.booleans())))
    snapshot = snapshot_of(nodes, links=links, datasets=datasets, sites=sites)
    plan = decide(snapshot, queues_of(), wanted, policy, 0)
    stocks = {view.description.id: stock_of(view) for view in nodes}
    known = {view.id: view for view in datasets}
    assert len(plan.placements) + len(plan.waits) == len(wanted)
    for placed in plan.placements:
        task = placed.demand.task
        if not task.data:
            assert placed.reads == ()
        for place in placed.places:
            take(stocks[place.node], place)
        if task.data:
            site = placed.places[0].site
            assert {place.site for place in placed.places} == {site}
            brought = {read.dataset: read.from_site for read in placed.reads}
            for read in task.data:
                view = known[read.dataset]
                assert not view.residency or REGION[site] in view.residency
                assert (site in view.sites) != (read.dataset in brought)
                if read.dataset in brought:
                    assert brought[read.dataset] in view.sites
                    assert snapshot.links.path(brought[read.dataset], site) is not None
            assert (placed.crossing is not None) == bool(placed.reads)
        if task.budget_micro is not None:
            assert placed.estimate_micro <= task.budget_micro
    assert not any(is_overdrawn(stock) for stock in stocks.values())
    for wait in plan.waits:
        assert wait.blockers
        if wait.crossing is not None:
            assert not wait.crossing.taken
    assert decide(snapshot, queues_of(), wanted[::-1], policy, 0) == plan


@EVERY_CASE
@given(snapshots(), st.data())
def test_a_full_pool_never_breaks_the_forecast(parts, data):
    """Proves that a home held for a known, unknown or overrun time gives a plan and a wake-up in the future."""
    nodes, links, datasets = parts
    first = decide(
        snapshot_of(nodes),
        queues_of(),
        [demand(f"k{at}", asks(count=1), sequence=at) for at in range(9)],
        DEFAULT_POLICY,
        0,
    )
    running = [
        RunningView(placed.demand.task.key, placed.places, data.draw(st.sampled_from([None, 500, 10**6, 10**9])))
        for placed in first.placements
    ]
    wanted = [data.draw(wishes(index)) for index in range(3)]
    snapshot = snapshot_of(nodes, links=links, datasets=datasets, running=running)
    plan = decide(snapshot, queues_of(), wanted, DEFAULT_POLICY, 1_000)
    assert plan.wake_ms is None or plan.wake_ms > 1_000
    assert len(plan.placements) + len(plan.waits) == len(wanted)
