"""Paths between sites: the chain of least time, its narrowest rate, its summed price, its lowest confidence."""

from __future__ import annotations

from evenflow.core.fleet.links import Links, LinksView
from evenflow.core.fleet.views import LinkView
from evenflow.testkit.fleets import GB, link


def test_no_link_between_two_sites_means_unreachable():
    """Proves that direction counts, a site reaches itself, and a link told unreachable is none."""
    links = LinksView([link("a", "b")])
    assert links.path("b", "a") is None
    assert links.path("a", "c") is None
    here = links.path("c", "c")
    assert here is not None
    assert (here.transfer_ms(GB), here.price_micro(GB)) == (0, 0)
    assert LinksView([LinkView("a", "b", 1, 10**9, 0, 1, reachable=False)]).path("a", "b") is None


def test_a_path_adds_round_trips_and_prices_and_takes_the_narrowest_rate():
    """Proves the arithmetic of a chain: 10 and 1 Gbit/s, 0.02 and 0.03 per GB."""
    links = LinksView(
        [
            link("a", "b", gbit=10, round_trip_us=1_500, price=20_000, confidence=900_000),
            link("b", "c", gbit=1, round_trip_us=2_000, price=30_000, confidence=500_000),
        ]
    )
    path = links.path("a", "c")
    assert path is not None
    assert path.sites == ("a", "b", "c")
    assert (path.bandwidth_bits, path.round_trip_us, path.confidence_ppm) == (10**9, 3_500, 500_000)
    assert path.price_micro(10 * GB) == 500_000
    assert path.transfer_ms(10 * GB) == 80_004


def test_the_fastest_chain_depends_on_how_much_is_moved():
    """Proves that a small transfer takes the near narrow link and a large one the detour over wide ones."""
    links = LinksView([link("a", "b", gbit=1), link("a", "c", gbit=10, round_trip_us=50_000), link("c", "b", gbit=10)])
    small, large = links.path("a", "b", 10**6), links.path("a", "b", 100 * GB)
    assert small is not None
    assert large is not None
    assert (small.sites, large.sites) == (("a", "b"), ("a", "c", "b"))


def test_equal_chains_are_told_apart_by_price_then_length_then_name():
    """Proves that the choice never depends on the order of links."""
    cheap = [link("a", "x", price=5), link("x", "b", price=5), link("a", "y", price=4), link("y", "b", price=4)]
    found = {LinksView(order).path("a", "b").sites for order in (cheap, cheap[::-1])}
    assert found == {("a", "y", "b")}
    equal = [link("a", "x"), link("x", "b"), link("a", "y"), link("y", "b")]
    assert LinksView(equal[::-1]).path("a", "b").sites == ("a", "x", "b")


def test_published_transfer_times_come_out_exactly():
    """Proves 06 §5: 1 TB at 5 Gbit/s takes 1,600 s and costs 90 at 0.09; at 10 Gbit/s 800 s and 20 at 0.02."""
    slow = LinksView([link("a", "b", gbit=5, price=90_000)]).path("a", "b")
    fast = LinksView([link("a", "b", gbit=10, price=20_000)]).path("a", "b")
    assert (slow.transfer_ms(1_000 * GB), slow.price_micro(1_000 * GB)) == (1_600_000, 90_000_000)
    assert (fast.transfer_ms(1_000 * GB), fast.price_micro(1_000 * GB)) == (800_000, 20_000_000)


def test_a_changed_link_changes_the_next_path_only():
    """Proves that a view taken earlier keeps its links."""
    links = Links()
    links.set(link("a", "b", gbit=10))
    before = links.snapshot()
    links.set(link("a", "b", gbit=1))
    assert before.path("a", "b").bandwidth_bits == 10**10
    assert links.path("a", "b").bandwidth_bits == 10**9
    links.remove("a", "b")
    assert links.path("a", "b") is None
