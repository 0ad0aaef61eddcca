"""A task's life from submission to reclaim, and the races that cross it."""

from __future__ import annotations

from typing import Any

from evenflow.events.contracts import agent
from evenflow.placement.memory.model import DUE_SLACK

DEVICE = {"resources": {"devices": {"count": 1}}}


def test_a_task_that_fits_is_assigned_in_the_round_that_saw_it(pool: Any) -> None:
    """Three records say it: the assignment, one desired state, one row; none says that it waited."""
    pool.node("n1")
    pool.turn()
    pool.submit("t1", **DEVICE, run={"work_s": 5})
    out = pool.turn()
    assert pool.types(out) == ["task.assigned"]
    assert pool.wishes(out) == [("n1/default/t1/1/0", "run")]
    desired = next(one.body for one in out if one.type == "attempt.desired")
    assert desired.specification == {"id": "t1", **DEVICE, "run": {"work_s": 5}}
    assert (desired.attempt, desired.epoch, desired.place.devices[0].milli) == (1, 1, 1000)
    assert pool.state("t1") == "starting"
    assert pool.free_milli("n1") == 0


def test_success_ends_the_task_but_only_the_reclaim_frees_its_device(pool: Any) -> None:
    """Free means proven free: a status alone gives nothing back."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.started("t1")
    assert pool.state("t1") == "running"
    pool.succeed("t1")
    out = pool.turn()
    assert pool.types(out) == ["task.ended"]
    assert (pool.state("t1"), pool.free_milli("n1"), pool.used_milli()) == ("succeeded", 0, 1000)
    pool.reclaim("t1")
    out = pool.turn()
    assert pool.wishes(out) == [("n1/default/t1/1/0", "gone")]
    assert (pool.free_milli("n1"), pool.used_milli()) == (1000, 0)


def test_the_end_tells_what_was_used(pool: Any) -> None:
    """Billing gets accepted figures: run and start time, the place with its price, the wait."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.started("t1")
    pool.succeed("t1", run_ms=7_000)
    pool.turn()
    use = pool.last("task.ended").use
    assert (use.attempt, use.end, use.members[0].run_ms, use.members[0].start_ms) == (1, "succeeded", 7_000, 500)
    assert use.members[0].started
    assert use.members[0].place.price_per_hour_micro == 4_000_000


def test_a_reclaim_receipt_is_enough_by_itself(pool: Any) -> None:
    """Started and succeeded may be lost: the reclaim carries the outcome."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.reclaim("t1", run_ms=3_000)
    out = pool.turn()
    assert pool.types(out) == ["task.ended"]
    assert pool.last("task.ended").use.members[0].run_ms == 3_000
    assert pool.free_milli("n1") == 1000


def test_a_leftover_keeps_the_capacity_until_it_is_gone(pool: Any) -> None:
    """A process that stayed on the device holds it, whatever the task's state."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.reclaim("t1", leftover=True, run_ms=1)
    pool.turn()
    assert (pool.state("t1"), pool.free_milli("n1")) == ("succeeded", 0)
    pool.reclaim("t1", run_ms=1)
    pool.turn()
    assert pool.free_milli("n1") == 1000


def test_receipts_in_the_wrong_order_change_nothing_after_the_end(pool: Any) -> None:
    """R46: succeeded first, then started, succeeded again, and a made-up failure: one end, five seconds billed."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.succeed("t1", run_ms=5_000)
    pool.receipt(agent.AttemptStarted, "t1")
    pool.receipt(agent.AttemptAccepted, "t1")
    pool.succeed("t1", run_ms=9_000)
    pool.receipt(agent.AttemptFailed, "t1", outcome=pool.outcome("failed", cause="user-error"))
    pool.turn()
    assert pool.state("t1") == "succeeded"
    assert pool.count("task.ended") == 1
    assert pool.last("task.ended").use.members[0].run_ms == 5_000
    assert pool.last("task.ended").use.members[0].started


def test_a_release_told_three_times_is_booked_once(pool: Any) -> None:
    """R22: used never falls below zero and free never rises above what is there."""
    pool.node("n1", devices=8)
    pool.submit("t0", **DEVICE)
    pool.turn()
    receipt = pool.reclaim("t0", ended_as="failed", cause="start-failed")
    pool.again(receipt)
    pool.turn()
    pool.again(receipt)
    pool.reclaim("t0", ended_as="failed", cause="start-failed")
    pool.turn()
    assert pool.free_milli("n1") == 8000
    assert pool.used_milli() == 0


def test_a_receipt_for_an_attempt_never_issued_is_refused_and_noted_once(pool: Any) -> None:
    """R46's V: nothing changes, one alert stands however often it comes."""
    pool.node("n1")
    pool.submit("v", **DEVICE)
    pool.turn()
    pool.receipt(agent.AttemptSucceeded, "v", attempt=7, node="n1", outcome=pool.outcome("succeeded"))
    pool.turn()
    pool.receipt(agent.AttemptSucceeded, "nobody", node="n1", outcome=pool.outcome("succeeded"))
    pool.turn()
    assert pool.state("v") == "starting"
    assert pool.count("alert.raised") == 1
    assert pool.last("alert.raised").name == "node.identity"


def test_a_receipt_from_another_node_is_refused(pool: Any) -> None:
    """Only the node that holds a member may speak of it."""
    pool.node("n1")
    pool.node("n2")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.receipt(agent.AttemptSucceeded, "t1", node="n2", outcome=pool.outcome("succeeded"))
    pool.turn()
    assert pool.state("t1") == "starting"
    assert pool.last("alert.raised").subject == "n2"


def test_the_same_sequence_with_other_bytes_is_an_alert(pool: Any) -> None:
    """A repeated number with the same bytes is nothing; with other bytes it is not the node."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    first = pool.receipt(agent.AttemptAccepted, "t1", sequence=5)
    pool.again(first)
    pool.turn()
    assert pool.count("alert.raised") == 0
    pool.receipt(agent.AttemptSucceeded, "t1", sequence=5, outcome=pool.outcome("succeeded"))
    pool.turn()
    assert pool.state("t1") == "starting"
    assert pool.count("alert.raised") == 1


def test_cancel_while_queued_ends_at_once(pool: Any) -> None:
    """Nothing runs, so nothing has to be asked."""
    pool.submit("t1", **DEVICE)
    pool.cancel("t1")
    out = pool.turn()
    assert pool.types(out) == ["task.ended"]
    assert pool.last("task.ended").use is None
    assert pool.state("t1") == "cancelled"


def test_cancel_while_running_ends_with_the_stop_receipt(pool: Any) -> None:
    """Stopping until the agent says so; a second cancel is nothing."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.started("t1")
    pool.cancel("t1")
    out = pool.turn()
    assert pool.wishes(out) == [("n1/default/t1/1/0", "stop")]
    assert pool.state("t1") == "stopping"
    pool.cancel("t1")
    assert pool.types(pool.turn()) == []
    pool.receipt(agent.AttemptStopped, "t1", outcome=pool.outcome("stopped", run_ms=800))
    pool.turn()
    assert pool.last("task.ended").end == "cancelled"
    assert pool.free_milli("n1") == 0


def test_success_that_crossed_a_cancel_is_success(pool: Any) -> None:
    """The work was complete before anybody could stop it."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.started("t1")
    pool.cancel("t1")
    pool.succeed("t1")
    pool.turn()
    assert pool.last("task.ended").end == "succeeded"
    assert pool.count("task.ended") == 1


def test_a_cancel_never_touches_the_next_task_on_the_device(pool: Any) -> None:
    """R50: X is cancelled twice, Y gets the device in between and keeps it."""
    pool.node("n1")
    pool.submit("x", **DEVICE)
    pool.submit("y", **DEVICE)
    pool.turn()
    pool.cancel("x")
    pool.turn()
    assert pool.state("y") == "queued"
    pool.reclaim("x", ended_as="stopped", run_ms=0)
    pool.turn()
    assert (pool.state("x"), pool.state("y")) == ("cancelled", "starting")
    pool.cancel("x")
    pool.turn()
    assert pool.state("y") == "starting"
    assert pool.free_milli("n1") == 0


def test_a_gang_runs_when_all_its_members_started(pool: Any) -> None:
    """All or none, and peers know each other."""
    for index in range(3):
        pool.node(f"n{index}")
    pool.submit("g", members=3, **DEVICE)
    out = pool.turn()
    desired = [one.body for one in out if one.type == "attempt.desired"]
    assert [one.peers for one in desired] == [("n0", "n1", "n2")] * 3
    pool.receipt(agent.AttemptStarted, "g", member=0)
    pool.receipt(agent.AttemptStarted, "g", member=1)
    pool.turn()
    assert pool.state("g") == "starting"
    pool.receipt(agent.AttemptStarted, "g", member=2)
    pool.turn()
    assert pool.state("g") == "running"


def test_one_dead_member_restarts_the_whole_gang_after_all_have_stopped(pool: Any) -> None:
    """R13: no moment has members of two generations; one failure is counted; the saved progress is given."""
    for index in range(3):
        pool.node(f"n{index}")
    pool.submit("g", members=2, checkpoint={"every_s": 30}, **DEVICE)
    pool.turn()
    pool.started("g", members=2)
    pool.verified("g", 2, 60_000)
    pool.receipt(agent.AttemptFailed, "g", member=0, outcome=pool.outcome("failed", run_ms=65_000, cause="user-error"))
    pool.reclaim("g", member=0, ended_as="failed", run_ms=65_000)
    out = pool.turn()
    assert ("n1/default/g/1/1", "stop") in pool.wishes(out)
    assert pool.state("g") == "stopping"
    assert pool.after(6) == []
    pool.receipt(agent.AttemptStopped, "g", member=1, outcome=pool.outcome("stopped", run_ms=66_000))
    pool.reclaim("g", member=1, ended_as="stopped")
    pool.turn()
    assert pool.last("task.requeued").failure_count == 1
    assert pool.state("g") == "queued"
    pool.after(6)
    assert pool.state("g") == "starting"
    assigned = pool.last("task.assigned")
    assert (assigned.attempt, assigned.generation, assigned.resume[0].progress_ms) == (2, 2, 60_000)
    assert len({member.node for member in assigned.members}) == 2


def test_limits_of_attempts_that_ended_do_not_wait_for_their_moment(pool: Any) -> None:
    """Found: each attempt left the time by which it had to be ready in memory, for as long as that time was away."""
    pool.node("n1")
    for number in range(3 * DUE_SLACK):
        name = f"t{number}"
        pool.submit(name, **DEVICE)
        pool.turn()
        pool.started(name)
        pool.succeed(name)
        pool.reclaim(name)
        pool.turn()
    assert len(pool.model._due_order) <= DUE_SLACK + 2
    pool.submit("last", **DEVICE)
    pool.turn()
    assert pool.model.next_due_ms is not None
    assert pool.model.due(pool.model.next_due_ms) == ["default/last"]
