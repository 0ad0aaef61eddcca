"""Every invariant speaks when it is broken: one story per way to break it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.sim.stories import PLACE, Story

from evenflow.sim.observation.record import Seen


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


def lost_while_it_waits(story: Story, *members: tuple[str, str]) -> None:
    """A task that waits for n1 is given up while n1 is lost; `members`: where another was, and what became of it."""
    story.assign(1, waits=True)
    story.receipt(2, "accepted", session="s1")
    story.node(reach="lost", at=40)
    ends = enumerate(members or [("n1", "lost")])
    uses = [{"place": {**PLACE, "member": number, "node": node}, "ended_as": end} for number, (node, end) in ends]
    use = {"attempt": 1, "end": "lost", "cause": "node-lost", "members": uses}
    story.task(50, "task.requeued", use=use, failure_count=0)


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


def a_shorter_pause(story: Story) -> None:
    """A second setback that is followed by no longer pause than the first."""
    story.set_back(1, 5)
    story.set_back(10, 5)


def lost_before_its_time(story: Story) -> None:
    """A node that was heard half a tolerance ago."""
    story.beat(1, 1)
    story.beat(20, 2)
    story.lost(35)


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
        (lost_while_it_waits, "INV7"),
        (progress_went_back, "INV8"),
        (mixed_generations, "INV8"),
        (other_peers, "INV3"),
        (a_shorter_pause, "INV8"),
        (lost_before_its_time, "INV12"),
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


@pytest.mark.parametrize(("session", "broken"), [("s2", False), ("s1", True), ("", True)])
def test_a_machine_that_takes_a_member_anew_is_waited_for_no_longer(session: str, broken: bool) -> None:
    """It is empty, and its word may come before inventory's that the node is back; the same session proves nothing."""
    story = Story()
    story.node()
    story.node("n2")
    story.receipt(0.5, "accepted", session="s0")
    story.assign(1, waits=True)
    story.receipt(2, "accepted", session="s1")
    story.node(reach="lost", at=40)
    story.receipt(50, "accepted", session=session)
    use = {"attempt": 1, "end": "lost", "cause": "node-lost", "members": [{"place": PLACE, "ended_as": "lost"}]}
    story.task(50, "task.requeued", use=use, failure_count=0)
    assert ("INV7" in story.violations()) is broken


def test_a_member_that_was_done_before_its_node_was_lost_is_not_given_up() -> None:
    """What its gang lost is on another node, one that was removed and never comes back."""
    story = Story()
    story.node()
    story.node("n2", revoked=True)
    lost_while_it_waits(story, ("n1", "succeeded"), ("n2", "lost"))
    assert "INV7" not in story.violations()


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


def test_pauses_that_double_up_to_the_limit_of_the_policy_break_nothing() -> None:
    """The limit ends the doubling, a new rule or a new task under an old id begins it anew, a repeat says nothing."""
    story = Story()
    rule = {"retry": {"backoff_s": [5, 15]}}
    story.say(0, "document.published", {"kind": "policy", "name": "default", "version": 1, "document": rule})
    for at_s, pause_s in ((1, 5), (10, 10), (30, 15), (60, 15)):
        story.set_back(at_s, pause_s, fact=f"at {at_s}")
        story.set_back(1, 5, fact="at 1")
    story.say(80, "document.published", {"kind": "policy", "name": "default", "version": 2, "document": {}})
    story.set_back(90, 5)
    story.task(100, "task.ended", end="cancelled", submitted_ms=5)
    story.set_back(110, 5)
    assert "another setback" not in " ".join(violation.text for violation in story.guardian.violations)


def test_a_loss_after_the_tolerance_or_of_a_node_that_only_seemed_to_speak_breaks_nothing() -> None:
    """Repeated numbers, other sessions and what the observer may not have read yet are no life signs."""
    for late in (
        {"t_s": 20, "sequence": 2},
        {"t_s": 35, "sequence": 2},
        {"t_s": 35, "sequence": 9, "session": "older"},
        {"t_s": 49, "sequence": 9},
    ):
        story = Story()
        story.node()
        story.beat(1, 1)
        story.beat(19, 2)
        story.beat(**late)  # type: ignore[arg-type]  # named above
        story.lost(50)
        assert "INV12" not in story.violations(), late
