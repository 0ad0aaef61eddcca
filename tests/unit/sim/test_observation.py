"""The observer's fold, the forms of expectations and the standing invariants, on records written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.sim.stories import Story, whole_life

from evenflow.sim.observation.model import Observation
from evenflow.sim.timeline import RunFiles, final_states, read_events


def test_a_whole_life_is_seen_as_it_was_and_breaks_nothing() -> None:
    """States, use, counts and bill at their moments; no invariant speaks."""
    story = whole_life()
    story.guardian.finish(story.model, settled=True)
    assert story.guardian.violations == []
    broken = story.judge(
        {"at": 1, "task": "t1", "is": "starting", "node": "n1"},
        {"at": 5, "task": "t1", "is": "running"},
        {"by": 2, "task": "t1", "is": "running"},
        {"at": 50, "task": "t1", "is": "succeeded", "is_not": ["failed"]},
        {"at": 5, "task": "t1", "holds": {"devices": "0.3", "cpu": 1}},
        {"at": 50, "task": "t1", "holds": {"devices": 0}},
        {"at": 5, "queue": "q", "used": {"devices": "0.3"}},
        {"at": 50, "queue": "q", "used": {"devices": 0}},
        {"at": 5, "node": "n1", "free": {"devices": "0.7"}, "reach": "ok"},
        {"at": 5, "device": "n1/0", "is": "ok", "used": "0.3"},
        {"at": 5, "total": {"devices": 1, "cpu": 64}},
        {"task": "t1", "attempts": 1, "failures": 0, "starts": {"node": "n1", "min": 1, "max": 1}},
        {"between": [0, 100], "count": "started", "task": "t*", "node": "n1", "min": 1, "max": 1},
        {"between": [3, 100], "count": "started", "max": 0},
        {"ledger": {"task": "t1", "kind": "work", "rows": 1, "device_seconds": 3, "amount": "0.003333"}},
        {"any_of": [{"at": 5, "task": "t1", "is": "queued"}, {"at": 5, "task": "t1", "is": "running"}]},
        {"same": "node", "over": ["t1"]},
        {"all": "t*", "are": "succeeded", "by": 13},
        {"at": 5, "all": "t*", "are": "running", "node": "n1", "min": 1, "max": 1},
        {"at": 5, "all": "t*", "are": "queued", "max": 0},
        {"ledger": {"task": "t1", "rows": 1, "seconds": 10, "tolerance": {"seconds": 0.5}}},
        {"at": 5, "dataset": "d", "copies": []},
    )
    assert broken == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"at": 0.5, "task": "t1", "is": "queued"},
        {"at": 5, "task": "t1", "is": "running", "node": "n2"},
        {"by": 1.9, "task": "t1", "is": "running"},
        {"at": 5, "queue": "q", "used": {"devices": "0.301"}},
        {"at": 5, "device": "n1/0", "is": "held"},
        {"all": "t*", "are": "succeeded", "by": 12.5},
        {"all": "x*", "are": "succeeded"},
        {"at": 5, "all": "t*", "are": "running", "min": 2},
        {"at": 5, "all": "t*", "are": "running", "reason": "quota", "min": 1},
        {"at": 5, "task": "t1", "is": "running", "name": "another"},
        {"at": 5, "dataset": "d", "copies": ["east"]},
        {"ledger": {"task": "t1", "seconds": 11}},
        {"task": "t1", "attempts": {"min": 2}},
        {"between": [0, 100], "count": "ended", "min": 2},
        {"ledger": {"task": "t1", "rows": 2}},
        {"ledger": {"task": "t1", "amount": "0.01", "tolerance": "0.001"}},
        {"any_of": [{"at": 5, "task": "t1", "is": "queued"}]},
        {"alert": "node.lost", "subject": "n1"},
        {"task": "t1", "attempt": 1, "resumes_at_s": {"min": 1}},
    ],
)
def test_every_form_of_expectation_can_fail(wrong: dict[str, Any]) -> None:
    """The same life, asked for what was not so."""
    assert whole_life().judge(wrong) == [0]


def test_receipts_that_the_product_must_not_believe_change_nothing() -> None:
    """A late start after the end, a made-up attempt, another node's word: the task stays succeeded."""
    story = whole_life()
    before = final_states(story.model)
    story.receipt(20, "started")
    story.receipt(20, "failed")
    story.receipt(20, "succeeded", attempt=7)
    story.receipt(20, "reclaimed", node="n9")
    story.receipt(20, "reclaimed")
    assert final_states(story.model) == before
    assert story.violations() == []


def test_the_same_fact_twice_is_one_fact() -> None:
    """A repeated record (same topic and id) is folded once."""
    story = Story()
    story.node()
    story.task(1, "task.queued", fact="a", reasons=[{"reason": "quota"}])
    story.task(2, "task.queued", fact="a", reasons=[{"reason": "quota"}])
    assert story.judge({"between": [0, 10], "count": "queued", "min": 1, "max": 1}) == []


def test_a_kept_run_folds_to_the_same_states(tmp_path: Path) -> None:
    """`events.jsonl` is enough to see everything again."""
    story = whole_life()
    files = RunFiles(tmp_path)
    for record in story.records:
        files.record(record)
    files.finish(story.model, {"seed": 1})
    again = Observation()
    for record in read_events(tmp_path / "events.jsonl"):
        again.apply(record)
    assert final_states(again) == final_states(story.model)
    assert again.timeline == story.model.timeline
    assert again.usage == story.model.usage
