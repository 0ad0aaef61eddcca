"""Nodes that come back: with their memory, without it, or to a task that had nowhere else to go."""

from __future__ import annotations

from typing import Any

from evenflow.events.contracts import agent
from evenflow.events.streams import RUNS

DEVICE = {"resources": {"devices": {"count": 1}}}


def _taken_anew(pool: Any, task: str, *, session: str = "another", attempt: int = 1) -> None:
    """The member is accepted once more, in another session of its node."""
    one = pool.receipt(agent.AttemptAccepted, task, attempt=attempt)
    stamp = one.received.envelope.stamp
    pool.pending.remove(one)
    fresh = type(stamp)(stamp.node, session, 1, stamp.attempt, stamp.member, stamp.epoch, "ff")
    pool.tell(RUNS, one.received.body, stamp=fresh)


def test_a_task_with_nowhere_else_to_go_waits_for_its_lost_node_and_is_adopted(pool: Any) -> None:
    """R38 a, R39: nobody is evicted without a target; the same attempt goes on when the node is back."""
    pool.node("n1")
    pool.node("n2", devices=0)
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.started("t1")
    pool.node("n1", reach="lost")
    assert pool.types(pool.turn()) == []
    assert (pool.state("t1"), pool.model.tasks["default/t1"].unreachable) == ("running", True)
    pool.node("n1")
    pool.turn()
    assert not pool.model.tasks["default/t1"].unreachable
    pool.succeed("t1")
    pool.turn()
    assert pool.last("task.ended").attempt == 1


def test_it_is_given_up_as_soon_as_there_is_somewhere_else(pool: Any) -> None:
    """A node that takes no work is no place to go; one that is opened is."""
    pool.node("n1")
    pool.node("n2", administration="cordoned")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.started("t1")
    pool.node("n1", reach="lost")
    assert pool.types(pool.turn()) == []
    pool.node("n2")
    assert pool.types(pool.turn()) == ["task.requeued", "task.assigned"]
    assert pool.node_of("t1", 2, 0) == "n2"


def test_an_attempt_that_had_not_started_is_given_up_at_once(pool: Any) -> None:
    """Nothing would be lost with it, and a start that hangs on a lost node would hang for ever."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.node("n1", reach="lost")
    assert "task.requeued" in pool.types(pool.turn())


def test_a_deadline_ends_a_task_on_a_node_that_can_not_be_asked(pool: Any) -> None:
    """Nobody waits for a lost node to stop what must end."""
    pool.node("n1")
    pool.submit("t1", deadline_s=100, **DEVICE)
    pool.turn()
    pool.started("t1")
    pool.node("n1", reach="lost")
    pool.turn()
    pool.after(101)
    assert pool.state("t1") == "failed"
    assert pool.last("task.ended").cause == "deadline"


def test_a_machine_that_came_back_empty_loses_the_attempt(pool: Any) -> None:
    """What it takes a second time is not what ran there: the next attempt goes on from the checkpoint instead."""
    pool.node("n1")
    pool.submit("t1", checkpoint={"every_s": 30}, **DEVICE)
    pool.turn()
    pool.started("t1")
    pool.verified("t1", 2, 60_000)
    pool.turn()
    _taken_anew(pool, "t1")
    out = pool.turn()
    use = pool.last("task.requeued").use
    assert (use.end, use.cause) == ("lost", "node-lost")
    assert ("n1/default/t1/1/0", "reclaim") in pool.wishes(out)
    pool.reclaim("t1", attempt=1, ended_as="stopped")
    pool.turn()
    assert pool.last("task.assigned").attempt == 2
    assert [point.progress_ms for point in pool.last("task.assigned").resume] == [60_000]


def test_it_loses_the_attempt_before_its_node_counts_as_back(pool: Any) -> None:
    """Its word may come before inventory's; what a task that waits for its node waited for is gone all the same."""
    pool.node("n1")
    pool.submit("t1", reschedule_on_lost=False, **DEVICE)
    pool.turn()
    pool.started("t1")
    pool.node("n2")
    pool.node("n1", reach="lost")
    assert pool.types(pool.turn()) == []
    assert pool.model.tasks["default/t1"].unreachable
    _taken_anew(pool, "t1")
    assert pool.types(pool.turn()) == ["task.requeued", "task.assigned"]
    assert pool.node_of("t1", 2, 0) == "n2"


def test_an_acceptance_that_comes_late_is_no_second_one(pool: Any) -> None:
    """Receipts in the wrong order, and an agent that restarted with its journal, change nothing."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.receipt(agent.AttemptStarted, "t1", start_ms=500)
    pool.receipt(agent.AttemptAccepted, "t1")
    pool.receipt(agent.AttemptAccepted, "t1")
    assert pool.types(pool.turn()) == []
    assert pool.state("t1") == "running"


def test_a_machine_that_takes_a_done_member_anew_is_told_to_let_go(pool: Any) -> None:
    """The result stands; what was begun again is reclaimed, and only that frees the device."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.started("t1")
    pool.succeed("t1")
    pool.turn()
    assert pool.state("t1") == "succeeded"
    _taken_anew(pool, "t1")
    assert pool.wishes(pool.turn()) == [("n1/default/t1/1/0", "reclaim")]
    assert pool.free_milli("n1") == 0
    pool.reclaim("t1", attempt=1, ended_as="stopped")
    pool.turn()
    assert (pool.free_milli("n1"), pool.count("task.ended")) == (1000, 1)


def test_what_a_place_takes_to_empty_is_no_waiting(pool: Any) -> None:
    """R64: every second is on one line of the ledger, the stop of one attempt or the wait for the next."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    outcome = pool.outcome("failed", cause="start-failed", start_ms=60_000)
    pool.document("policy", "default", {"retry": {"avoid_failed_node": False}})
    pool.after(60)
    pool.receipt(agent.AttemptFailed, "t1", outcome=outcome)
    pool.turn()
    pool.after(20)
    pool.reclaim("t1", ended_as="failed", start_ms=60_000, stop_ms=20_000)
    pool.turn()
    assigned = pool.last("task.assigned")
    assert (assigned.attempt, assigned.wait_ms) == (2, 0)
    assert pool.last("task.requeued").use.members[0].start_ms == 60_000


def test_a_task_says_anew_why_it_waits_once_its_last_place_is_free(pool: Any) -> None:
    """R41: reclaim-pending is over with the receipt; then the pause is the reason, not what was said before."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.receipt(agent.AttemptFailed, "t1", outcome=pool.outcome("failed", cause="start-failed"))
    pool.turn()
    pool.reclaim("t1", ended_as="failed")
    pool.turn()
    assert [reason.reason for reason in pool.last("task.queued").reasons] == ["backing-off"]
