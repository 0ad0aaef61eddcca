"""Silence is not death: the table of who is suspect, who is lost, and when the observer doubts itself."""

from __future__ import annotations

import pytest

from evenflow.core.lifecycle.node import Reach
from evenflow.core.probing.liveness import Contact, Tolerance, Verdict, judge

LIMITS = Tolerance(suspect_ms=15, tolerance_ms=30, blind_max_ms=100)
NOW = 1_000


def seen(contacts: dict[str, Contact], *, beacon_ms: int = NOW, blind_since_ms: int | None = None) -> Verdict:
    return judge(contacts, beacon_ms=beacon_ms, blind_since_ms=blind_since_ms, now_ms=NOW, limits=LIMITS)


def node(silent_ms: int, site: str = "east", reach: Reach = Reach.OK) -> Contact:
    return Contact(site, NOW - silent_ms, reach)


@pytest.mark.parametrize(
    ("silent_ms", "reach", "becomes"),
    [
        (0, Reach.OK, None), (14, Reach.OK, None), (15, Reach.OK, Reach.SUSPECT), (29, Reach.OK, Reach.SUSPECT),
        (30, Reach.OK, Reach.LOST), (29, Reach.SUSPECT, None), (30, Reach.SUSPECT, Reach.LOST), (99, Reach.LOST, None),
    ],
)  # fmt: skip
def test_one_node_is_judged_by_its_own_silence(silent_ms: int, reach: Reach, becomes: Reach | None) -> None:
    """Both limits count from being met exactly; others that are heard keep the observer sure of itself."""
    verdict = seen({"n1": node(silent_ms, reach=reach), "n2": node(0)})
    assert verdict.changes == ((("n1", becomes),) if becomes else ())
    assert verdict.blind_since_ms is None


def test_the_only_node_of_a_pool_can_be_lost() -> None:
    """One node alone is no crowd: its silence is its own."""
    assert seen({"n1": node(40)}).changes == (("n1", Reach.LOST),)


@pytest.mark.parametrize(
    ("contacts", "why"),
    [
        ({"n1": node(40), "n2": node(40)}, "every node of the pool fell silent together"),
        ({"n1": node(40), "w1": node(50, "west"), "x1": node(0, "x")}, "2 sites fell silent together"),
        ({"n1": node(40), "w1": node(70, "west")}, "2 sites fell silent together"),
    ],
)
def test_silence_of_many_at_once_is_ours(contacts: dict[str, Contact], why: str) -> None:
    """All of a pool, or all of two sites, within one tolerance of each other: nobody is lost, all are suspect."""
    verdict = seen(contacts)
    assert (verdict.blind_since_ms, verdict.blind_why) == (NOW, why)
    assert all(reach is Reach.SUSPECT for _, reach in verdict.changes)


@pytest.mark.parametrize(
    "contacts",
    [
        {"n1": node(40), "n2": node(80)},
        {"n1": node(40), "w1": node(71, "west")},
        {"n1": node(40), "n2": node(40), "w1": node(0, "west")},
        {"n1": node(40), "w1": node(40, "west", Reach.LOST), "x1": node(0, "x")},
    ],
)
def test_silence_that_came_one_after_another_is_theirs(contacts: dict[str, Contact]) -> None:
    """Further apart than a tolerance, one site alone, or one that was given up long ago: the observer sees."""
    verdict = seen(contacts)
    assert verdict.blind_since_ms is None
    assert ("n1", Reach.LOST) in verdict.changes


def test_a_missing_beacon_freezes_expiry_for_a_bounded_time() -> None:
    """While blind nobody is lost; after the bound losses are believed again though the beacon is still missing."""
    contacts = {"n1": node(40), "n2": node(0)}
    assert seen(contacts, beacon_ms=NOW - 29).changes == (("n1", Reach.LOST),)
    began = seen(contacts, beacon_ms=NOW - 30)
    assert (began.blind_since_ms, began.changes) == (NOW, (("n1", Reach.SUSPECT),))
    assert began.blind_why == "the observer's own beacon is missing"
    still = seen(contacts, beacon_ms=NOW - 120, blind_since_ms=NOW - 99)
    assert (still.blind_since_ms, still.changes) == (NOW - 99, (("n1", Reach.SUSPECT),))
    over = seen(contacts, beacon_ms=NOW - 120, blind_since_ms=NOW - 100)
    assert (over.blind_since_ms, over.changes) == (NOW - 100, (("n1", Reach.LOST),))


def test_changes_come_in_order_of_name() -> None:
    """Whatever order nodes registered in, the verdict reads the same."""
    contacts = {name: node(40 if name != "z" else 0) for name in ("z", "b", "a", "c")}
    assert [name for name, _ in seen(contacts).changes] == ["a", "b", "c"]
    assert seen(dict(reversed(contacts.items()))) == seen(contacts)
