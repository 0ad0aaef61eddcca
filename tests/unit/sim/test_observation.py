"""The observer's fold, the forms of expectations and the standing invariants, on records written by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evenflow.sim.expectations.runner import Judge
from evenflow.sim.invariants import Guardian
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen
from evenflow.sim.scenario.file import Expectation
from evenflow.sim.scenario.parse import read_expectation
from evenflow.sim.scenario.schema import Reading
from evenflow.sim.timeline import RunFiles, final_states, read_events

PLACE: dict[str, Any] = {
    "member": 0,
    "node": "n1",
    "site": "east",
    "devices": [{"index": 0, "milli": 300}],
    "cpu_milli": 1000,
    "memory_bytes": 2**30,
    "disk_bytes": 0,
    "price_per_hour_micro": 4_000_000,
}
SPECIFICATION = {"id": "t1", "queue": "q", "resources": {"devices": {"share": 0.3}}}


class Story:
    """Writes records and folds them, as the world does."""

    def __init__(self) -> None:
        self.model = Observation()
        self.guardian = Guardian(silence_tolerance_ms=30_000, blind_max_ms=900_000)
        self.records: list[Seen] = []

    def say(self, t_s: float, event_type: str, body: Mapping[str, Any] | None = None, *, fact: str = "") -> None:
        """One record; every fact has its own id unless given."""
        number = len(self.records)
        headers = (("ce_type", event_type.encode()), ("ce_id", (fact or f"id-{number}").encode()))
        record = Seen(round(t_s * 1000), "topic", 0, number, b"default/t1", json.dumps(body or {}).encode(), headers)
        self.records.append(record)
        self.model.apply(record)
        self.guardian.after(self.model, record)

    def node(self, name: str = "n1", **changes: Any) -> None:
        """A node with one device."""
        body = {
            "node": name,
            "document": {"id": name, "site": "east", "devices": {"model": "a100-80g", "count": 1}},
            "reach": "ok",
            "administration": "open",
            "health": "ok",
            "devices": [{"index": 0, "state": "ok"}],
        }
        self.say(changes.pop("at", 0), "node.registered", {**body, **changes})

    def queue(self, **limit: Any) -> None:
        """Queue q with a limit."""
        document = {"id": "q", "parent": "root", "limit": limit}
        self.say(0, "document.published", {"kind": "queue", "name": "q", "version": 1, "document": document})

    def task(self, t_s: float, event_type: str, task: str = "t1", *, fact: str = "", **more: Any) -> None:
        """A decision about a task."""
        self.say(t_s, event_type, {"tenant": "default", "task": task, "queue": "q", **more}, fact=fact)

    def assign(self, t_s: float, task: str = "t1", *, attempt: int = 1, **place: Any) -> None:
        """A place for one member, and its desired state."""
        where = {**PLACE, **place}
        self.task(t_s, "task.assigned", task, attempt=attempt, generation=attempt, epoch=1, members=[where])
        document = {**SPECIFICATION, "id": task}
        self.task(t_s, "attempt.desired", task, attempt=attempt, wish="run", place=where, specification=document)

    def receipt(self, t_s: float, kind: str, task: str = "t1", *, attempt: int = 1, **more: Any) -> None:
        """A receipt of member 0 on n1."""
        body = {"attempt": attempt, "member": 0, "node": "n1", **more}
        self.task(t_s, f"attempt.{kind}", task, **body)

    def violations(self) -> list[str]:
        """Names of the invariants that broke."""
        return [violation.invariant for violation in self.guardian.violations]

    def judge(self, *written: dict[str, Any], until_s: float = 100) -> list[Any]:
        """What was found by the expectations that do not hold."""
        reading = Reading()
        expectations: list[Expectation] = [
            read_expectation(entry, f"expect[{number}]", number, reading) for number, entry in enumerate(written)
        ]
        judge = Judge(expectations, round(until_s * 1000))
        judge.finish(self.model)
        return [broken.number for broken in judge.broken]


def whole_life() -> Story:
    """One task from its queue to its bill."""
    story = Story()
    story.node()
    story.queue(devices="0.3")
    story.task(1, "task.queued", reasons=[], submitted_ms=5)
    story.assign(1)
    story.receipt(1.5, "accepted")
    story.receipt(2, "started", resumed_progress_ms=0)
    story.receipt(12, "succeeded")
    story.receipt(12.5, "reclaimed")
    story.task(
        12.6, "task.ended", end="succeeded", use={"attempt": 1, "end": "succeeded"}, failure_count=0, submitted_ms=5
    )
    usage = {"entry": "default/t1/1/0/work", "kind": "work", "device_milli": 300, "device_milli_ms": 3_000_000}
    story.say(13, "usage.measured", {**usage, "price_per_hour_micro": 4_000_000})
    charge = {
        "entry": "default/t1/1/0/work",
        "kind": "work",
        "tenant": "default",
        "task": "t1",
        "attempt": 1,
        "member": 0,
    }
    story.say(
        13,
        "charge.recorded",
        {**charge, "queue": "q", "amount_micro": 3_333, "duration_ms": 10_000, "device_milli_ms": 3_000_000},
    )
    return story


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


def over_booked(story: Story) -> None:
    """A second task beyond the device."""
    story.assign(1)
    story.assign(2, "t2", devices=[{"index": 0, "milli": 800}])


def two_at_once(story: Story) -> None:
    """A second attempt beside the first."""
    story.assign(1)
    story.assign(2, attempt=2)


def not_proven_free(story: Story) -> None:
    """A second attempt after the first was given up on a reachable node."""
    story.assign(1)
    story.task(5, "task.requeued", use={"attempt": 1, "end": "failed"}, failure_count=1)
    story.assign(6, attempt=2)


def half_a_gang(story: Story) -> None:
    """Two members assigned, one ever desired."""
    second = {**PLACE, "member": 1, "devices": []}
    story.task(1, "task.assigned", attempt=1, generation=1, epoch=1, members=[PLACE, second])
    document = {"id": "t1", "members": 2, "resources": {"devices": {"share": 0.3}}}
    desired = {"attempt": 1, "wish": "run", "place": PLACE, "specification": document}
    story.task(1, "attempt.desired", **desired, peers=["n1", "n1"])
    assert "INV3" not in story.violations()
    story.say(10, "round.completed")


def fewer_than_asked(story: Story) -> None:
    """One member placed and desired of two that were asked for."""
    story.task(1, "task.assigned", attempt=1, generation=1, epoch=1, members=[PLACE])
    document = {"id": "t1", "members": 2, "resources": {"devices": {"share": 0.3}}}
    story.task(1, "attempt.desired", attempt=1, wish="run", place=PLACE, specification=document)


def failed_unheard(story: Story) -> None:
    """An attempt that is said to have failed though its agent said nothing of the kind."""
    story.assign(1)
    story.receipt(2, "started", resumed_progress_ms=0)
    use = {"attempt": 1, "end": "failed", "members": [{"place": PLACE, "ended_as": "failed"}]}
    story.task(3, "task.requeued", use=use, failure_count=1)


def over_the_limit(story: Story) -> None:
    """A second task beyond the queue's limit."""
    story.queue(devices="0.3")
    story.assign(1)
    story.assign(2, "t2", node="n2")


def after_the_end(story: Story) -> None:
    """A decision about an ended task."""
    story.task(1, "task.queued", submitted_ms=5, reasons=[{"reason": "quota"}])
    story.task(2, "task.ended", end="cancelled", submitted_ms=5)
    story.task(3, "task.requeued", use={"attempt": 1, "end": "failed"})


def ended_twice(story: Story) -> None:
    """Two ends with different ids."""
    story.task(2, "task.ended", end="cancelled", submitted_ms=5)
    story.task(3, "task.ended", end="failed", submitted_ms=5)


def billed_twice(story: Story) -> None:
    """The same entry again."""
    story.assign(1)
    charge = {"entry": "e", "kind": "work", "tenant": "default", "task": "t1", "attempt": 1, "member": 0}
    story.say(50, "charge.recorded", {**charge, "amount_micro": 1, "duration_ms": 5})
    story.say(51, "charge.recorded", {**charge, "amount_micro": 1, "duration_ms": 5})


def billed_too_long(story: Story) -> None:
    """More time than passed."""
    story.assign(1)
    charge = {"entry": "e", "kind": "work", "tenant": "default", "task": "t1", "attempt": 1, "member": 0}
    story.say(11, "charge.recorded", {**charge, "amount_micro": 1, "duration_ms": 60_000})


def priced_wrongly(story: Story) -> None:
    """An amount that is not use times price."""
    story.assign(1)
    usage = {"entry": "e", "kind": "work", "device_milli": 1000, "device_milli_ms": 3_600_000_000}
    story.say(5, "usage.measured", {**usage, "price_per_hour_micro": 4_000_000})
    charge = {"entry": "e", "kind": "work", "tenant": "default", "task": "t1", "attempt": 1, "member": 0}
    story.say(6, "charge.recorded", {**charge, "amount_micro": 4_000_001, "duration_ms": 1})


def another_model(story: Story) -> None:
    """A device that the task's rules forbid."""
    where = {**PLACE, "devices": [{"index": 0, "milli": 300}]}
    story.task(1, "task.assigned", attempt=1, generation=1, epoch=1, members=[where])
    document = {"id": "t1", "resources": {"devices": {"share": 0.3, "models": ["h20"]}}}
    story.task(1, "attempt.desired", attempt=1, wish="run", place=where, specification=document)


def progress_went_back(story: Story) -> None:
    """A later attempt resumes below an earlier one."""
    story.assign(1)
    story.receipt(2, "started", resumed_progress_ms=60_000)
    story.receipt(3, "failed")
    story.receipt(3, "reclaimed")
    story.task(4, "task.requeued", use={"attempt": 1, "end": "failed"}, failure_count=1)
    story.assign(5, attempt=2)
    story.receipt(6, "started", attempt=2, resumed_progress_ms=0)


def mixed_generations(story: Story) -> None:
    """A checkpoint that a lost attempt told of after its loss is given to a later one."""
    story.assign(1)
    story.task(4, "task.requeued", use={"attempt": 1, "end": "lost"}, failure_count=0)
    saved = {"checkpoint": 3, "generation": 1, "progress_ms": 90_000}
    story.task(5, "checkpoint.verified", **saved)
    story.task(6, "task.assigned", attempt=2, generation=2, epoch=1, members=[{**PLACE, "node": "n2"}], resume=[saved])


def other_peers(story: Story) -> None:
    """A member of a gang is told of other nodes than its peers are on."""
    second = {**PLACE, "member": 1, "node": "n2"}
    story.task(1, "task.assigned", attempt=1, generation=1, epoch=1, members=[PLACE, second])
    document = {"id": "t1", "members": 2, "resources": {"devices": {"share": 0.3}}}
    desired = {"attempt": 1, "wish": "run", "place": PLACE, "specification": document}
    story.task(1, "attempt.desired", **desired, peers=["n1", "n3"])


def parked_without_a_word(story: Story) -> None:
    """A dead letter that says neither where it was nor why it is one."""
    record = Seen(1000, "evenflow.tasks.v1.dlq", 0, 0, b"k", b"{}", (("ce_type", b"record.parked"),))
    story.model.apply(record)
    story.guardian.after(story.model, record)


def never_explained(story: Story) -> None:
    """A waiting task without a reason."""
    story.task(1, "task.queued", reasons=[])
    story.say(10, "round.completed")


@pytest.mark.parametrize(
    ("spoil", "invariant"),
    [
        (over_booked, "INV1"),
        (two_at_once, "INV2"),
        (not_proven_free, "INV2"),
        (half_a_gang, "INV3"),
        (fewer_than_asked, "INV3"),
        (over_the_limit, "INV4"),
        (after_the_end, "INV5"),
        (ended_twice, "INV5"),
        (failed_unheard, "INV5"),
        (billed_twice, "INV6"),
        (billed_too_long, "INV6"),
        (priced_wrongly, "INV6"),
        (another_model, "INV7"),
        (progress_went_back, "INV8"),
        (mixed_generations, "INV8"),
        (other_peers, "INV3"),
        (parked_without_a_word, "INV9"),
        (never_explained, "INV9"),
    ],
)
def test_each_invariant_speaks_when_it_is_broken(spoil: Any, invariant: str) -> None:
    """One story per way to break it."""
    story = Story()
    story.node()
    story.node("n2")
    spoil(story)
    assert invariant in story.violations()


def test_a_run_that_does_not_end_breaks_progress() -> None:
    """After settle a satisfiable task that still waits is a violation, a hopeless one is not."""
    story = Story()
    story.node()
    story.task(1, "task.queued", "t1", reasons=[{"reason": "quota"}])
    story.task(1, "task.queued", "t2", reasons=[{"reason": "never-fits"}])
    story.guardian.finish(story.model, settled=True)
    texts = [violation.text for violation in story.guardian.violations if violation.invariant == "INV8"]
    assert len(texts) == 1
    assert texts[0].startswith("t1 ")


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
