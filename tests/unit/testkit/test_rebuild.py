"""What `make rebuild-archive` compares, and that its judgement can fail."""

from __future__ import annotations

from evenflow.testkit.processes.rebuild import Rebuilt, differences, lasting


def test_ages_are_left_out_and_nothing_else() -> None:
    """Proves that a view is compared by what it says, not by when it was asked."""
    row = {
        "node": "n1",
        "heard_age_ms": 4,
        "for_ms": 1,
        "as_of_ms": 2,
        "load": {"cpu": 1},
        "held": [{"since_ago_ms": 3, "x": 1}],
    }
    assert lasting(row) == {"node": "n1", "held": [{"x": 1}]}


def test_a_difference_is_named_by_its_path() -> None:
    """Proves that a lost line, another value and a missing field are each found."""
    assert differences([{"a": 1}], [{"a": 1}]) == []
    assert differences([{"a": 1}], [{"a": 2}]) == ["[0].a: 1 became 2"]
    assert differences([{"a": 1}], [{}]) == ["[0].a: 1 became None"]
    assert differences([1, 2], [1]) == [": [1, 2] became [1]"]


def test_nothing_expired_nothing_charged_and_any_difference_are_complaints() -> None:
    """Proves that a run which showed nothing does not pass."""
    good = Rebuilt(expired=5, lines=4)
    assert good.complaints == []
    for bad in (
        Rebuilt(expired=0, lines=4),
        Rebuilt(expired=5, lines=0),
        Rebuilt(expired=5, lines=4, differences=["ledger: other"]),
        Rebuilt(expired=5, lines=4, broken=["the chain of default"]),
    ):
        assert len(bad.complaints) == 1
