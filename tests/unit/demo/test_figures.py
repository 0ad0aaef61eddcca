"""The demo's figures on a log small enough to reckon by hand, by the product and by the independent check."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from evenflow.core.ledger.chain import GENESIS, line_hash
from evenflow.sim.demo.figures import Figures, figures, mean_and_p95, read_events

RECOMPUTE = Path(__file__).parents[2] / "demo" / "recompute.py"


def task(name, home, **resources):
    return {
        "id": name,
        "labels": {"home": home},
        "run": {"work_s": 50},
        "resources": {"cpu": "1", "memory": "10MiB", **resources},
    }


def node(name, site, count):
    document = {"site": site, "cpu": "4", "memory": "100MiB", "devices": {"count": count}}
    return {"node": name, "document": document}


def use(attempt, end):
    return {"attempt": attempt, "end": end}


def charge(number, amount, previous, balance, kind="work"):
    body = {"entry": f"e{number}", "queue": "ls", "number": number, "kind": kind}
    body |= {"amount_micro": amount, "balance_micro": balance}
    return body | {"previous": previous, "hash": line_hash(previous, body)}


def assigned(name, attempt, milli, crossing=None):
    return {"task": name, "attempt": attempt, "members": [{"devices": [{"milli": milli}]}], "crossing": crossing}


def started(name, attempt, resumed_ms=0):
    return {"task": name, "attempt": attempt, "resumed_progress_ms": resumed_ms}


def the_log():
    """Two devices; `a` waits 10 s, is lost and resumes; `b` crosses and waits 30 s; `big` fits nowhere."""
    first = charge(1, 700, GENESIS, 700)
    second = charge(2, 300, first["hash"], 1_000, kind="transfer")
    crossing = {"taken": True, "gain_ms": 5_000}
    rows = [
        (0, "node.registered", node("n1", "east", 1)),
        (0, "node.registered", node("n2", "west", 1)),
        (0, "task.submitted", task("a", "east", devices={"count": 1})),
        (10, "task.assigned", assigned("a", 1, 1_000)),
        (10, "attempt.started", started("a", 1)),
        (20, "task.requeued", {"task": "a", "use": use(1, "lost")}),
        (20, "task.assigned", assigned("a", 2, 1_000)),
        (20, "attempt.started", started("a", 2, resumed_ms=7_000)),
        (20, "task.submitted", task("b", "west", devices={"share": "0.5"})),
        (20, "task.queued", {"task": "b", "crossing": {"taken": False, "gain_ms": -1}}),
        (40, "task.assigned", assigned("b", 1, 500, crossing)),
        (50, "attempt.started", started("b", 1)),
        (60, "task.ended", {"task": "a", "end": "succeeded", "use": use(2, "succeeded")}),
        (70, "transfer.finished", {"counted_bytes": 9}),
        (100, "task.submitted", task("big", "west", cpu="64")),
        (100, "task.queued", {"task": "big", "crossing": {"taken": False, "gain_ms": 1}}),
        (110, "task.ended", {"task": "b", "end": "succeeded", "use": use(1, "succeeded")}),
        (110, "crossing.settled", {"predicted": {"gain_ms": 5_000}, "gain_ms": 4_000}),
        (120, "charge.recorded", first),
        (120, "charge.recorded", second),
        (120, "state.recorded", None),
    ]
    return [{"t": t, "topic": "evenflow.x.v1", "type": kind, "value": value} for t, kind, value in rows]


def test_every_figure_of_a_small_log_is_what_one_reckons_by_hand():
    """Proves each figure: waits, use of 2 devices over 100 s, loss, resumption, crossing, refusals, bill."""
    found = figures(the_log())
    assert (found.submitted, found.impossible_at_home, found.placed, found.succeeded) == (3, 1, 2, 2)
    assert found.wait_by_site == {"east": (10.0, 10.0), "west": (30.0, 30.0)}
    assert (found.wait_mean_s, found.wait_p95_s) == (20.0, 30.0)
    assert found.device_use_pct == 37.5  # (10 + 40) s whole and 50 s of a half, of 2 × 100 s
    assert (found.lost_attempts, found.resumed_attempts, found.resumed_work_s) == (1, 1, 7)
    crossings = found.crossings
    assert (crossings.taken, crossings.settled, crossings.bytes, crossings.cost_micro) == (1, 1, 9, 300)
    assert (crossings.predicted_gain_ms, crossings.actual_gain_ms) == (5_000, 4_000)
    assert (crossings.refused_no_gain, crossings.refused_within_margin) == (1, 1)
    assert found.bill_micro == {"ls": 1_000}
    assert found.bill_chain_whole
    assert found.finished_s == 110


@pytest.mark.parametrize("field", ["amount_micro", "balance_micro", "previous"])
def test_a_bill_with_one_changed_line_is_not_whole(field):
    """Proves that the chain is looked at, not only added up."""
    log = the_log()
    line = log[-2]["value"]
    line[field] = "0" * 64 if field == "previous" else line[field] + 1
    assert not figures(log).bill_chain_whole


def test_figures_come_back_from_their_own_file():
    """Proves that what a world wrote is what the closing tables show."""
    found = figures(the_log())
    again = Figures.from_json(json.loads(json.dumps(found.as_json())))
    assert json.dumps(again.as_json()) == json.dumps(found.as_json())


def test_the_rank_of_the_95th_percentile_is_the_nearest_one():
    """Proves the rank at its edges: nothing, one, twenty, twenty-one."""
    assert mean_and_p95([]) == (0.0, 0.0)
    assert mean_and_p95([3.0]) == (3.0, 3.0)
    assert mean_and_p95([float(n) for n in range(20, 0, -1)])[1] == 19.0
    assert mean_and_p95([float(n) for n in range(21)])[1] == 19.0


def test_services_own_states_are_passed_over_by_their_topic(tmp_path):
    """Proves that no figure depends on rows that only services read back, and that all other lines are read."""
    own = {"t": 0, "topic": "evenflow.placement-state.v1", "type": "state.recorded", "value": {}}
    other = {"t": 0, "topic": "evenflow.tasks.v1", "type": "x", "value": {"topic": "evenflow.placement-state.v1"}}
    lines = [json.dumps(row, separators=(",", ":")) for row in (own, other)]
    path = tmp_path / "events.jsonl"
    path.write_text("\n".join(lines) + "\n")
    assert list(read_events(path)) == [other]


def test_the_independent_check_finds_the_same_figures(tmp_path):
    """Proves that the standard-library recomputation and the product agree on the small log."""
    spec = importlib.util.spec_from_file_location("recompute", RECOMPUTE)
    recompute = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recompute)
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in the_log()))
    found, _ = recompute.world(path)
    assert json.loads(json.dumps(found)) == json.loads(json.dumps(figures(the_log()).as_json()))
