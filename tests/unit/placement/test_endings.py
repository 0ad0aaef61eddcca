"""Why attempts end and what it costs: failures, losses, drains, broken devices, time."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.events.contracts import agent

DEVICE = {"resources": {"devices": {"count": 1}}}


def _fail(pool: Any, task: str, cause: str, *, attempt: int = 1, run_ms: int = 1_000) -> None:
    """The member failed and was reclaimed."""
    outcome = pool.outcome("failed", cause=cause, run_ms=run_ms)
    pool.receipt(agent.AttemptFailed, task, attempt=attempt, outcome=outcome)
    pool.reclaim(task, attempt=attempt, ended_as="failed", run_ms=run_ms)


def test_the_last_counted_failure_ends_the_task(pool: Any) -> None:
    """Three user errors with max_failures 3: two pauses that double, then failed."""
    pool.node("n1")
    pool.submit("t1", max_failures=3, **DEVICE)
    pool.turn()
    pauses = []
    for attempt in (1, 2):
        _fail(pool, "t1", "user-error", attempt=attempt)
        pool.turn()
        requeued = pool.last("task.requeued")
        pauses.append(requeued.not_before_ms - pool.now_ms)
        assert (requeued.failure_count, requeued.use.end) == (attempt, "failed")
        pool.after(pauses[-1] / 1000)
    assert pauses == [5_000, 10_000]
    _fail(pool, "t1", "user-error", attempt=3)
    pool.turn()
    ended = pool.last("task.ended")
    assert (ended.end, ended.cause, ended.failure_count, ended.attempt) == ("failed", "user-error", 3, 3)


def test_a_paused_task_says_that_it_backs_off(pool: Any) -> None:
    """Every waiting task carries its reason, time included."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    _fail(pool, "t1", "unknown")
    pool.turn()
    assert pool.last("task.queued").reasons[0].reason == "backing-off"


def test_failed_starts_cost_one_failure_and_the_node(pool: Any) -> None:
    """R41: charged once, another node next, and three in a row close the black hole."""
    pool.node("n1", devices=4)
    for index in range(3):
        pool.submit(f"t{index}", max_failures=3, **DEVICE)
    pool.turn()
    pool.node("n2", devices=4)
    for index in range(3):
        _fail(pool, f"t{index}", "start-failed", run_ms=0)
    pool.turn()
    assert pool.last("task.requeued").failure_count == 1
    assert not pool.last("task.requeued").use.members[0].started
    pool.submit("new", **DEVICE)
    pool.turn()
    assert pool.node_of("new", 1, 0) == "n2"
    pool.after(5)
    assert [pool.node_of(f"t{index}", 2, 0) for index in range(3)] == ["n2"] * 3
    _fail(pool, "t0", "start-failed", attempt=2, run_ms=0)
    pool.turn()
    assert pool.last("task.requeued").failure_count == 1


def test_a_node_where_a_start_failed_is_better_than_none(pool: Any) -> None:
    """It is avoided while others could hold the task, busy or not, and tried again when they are gone."""
    pool.node("n1")
    pool.node("n2", cpu=8)
    pool.submit("other", where={"nodes": ["n2"]}, **DEVICE)
    pool.submit("t1", **DEVICE)
    pool.turn()
    _fail(pool, "t1", "start-failed", run_ms=0)
    pool.turn()
    pool.after(60)
    assert pool.state("t1") == "queued"
    pool.node("n2", administration="cordoned", cpu=8)
    pool.turn()
    assert (pool.state("t1"), pool.node_of("t1", 2, 0)) == ("starting", "n1")


def test_a_closed_node_is_tried_again_after_a_while(make_pool: Any) -> None:
    """Spaced probes: one more failed start closes it again."""
    pool = make_pool(start_probe_ms=60_000, start_failures_quarantine=1)
    pool.node("n1")
    pool.submit("t1", max_failures=1, **DEVICE)
    pool.turn()
    _fail(pool, "t1", "start-failed", run_ms=0)
    pool.submit("t2", **DEVICE)
    pool.turn()
    assert pool.state("t2") == "queued"
    pool.after(30)
    assert pool.state("t2") == "queued"
    assert (pool.last("alert.raised").name, pool.last("alert.raised").subject) == ("node.quarantined", "n1")
    pool.after(31)
    assert pool.state("t2") == "starting"
    pool.started("t2")
    assert pool.last("alert.cleared").name == "node.quarantined"


def test_a_lost_node_loses_its_attempt_at_once(pool: Any) -> None:
    """Requeued and placed elsewhere; the old one is told to reclaim; its capacity stays held, its quota does not."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.started("t1")
    pool.receipt(agent.AttemptProgressed, "t1", progress_ms=20_000, run_ms=21_000)
    pool.node("n2")
    pool.node("n1", reach="suspect")
    assert pool.types(pool.turn()) == []
    pool.node("n1", reach="lost")
    out = pool.turn()
    assert pool.types(out) == ["task.requeued", "task.assigned"]
    use = pool.last("task.requeued").use
    assert (use.end, use.cause, use.members[0].run_ms, use.members[0].started) == ("lost", "node-lost", 21_000, True)
    assert ("n1/default/t1/1/0", "reclaim") in pool.wishes(out)
    assert pool.node_of("t1", 2, 0) == "n2"
    assert pool.used_milli() == 1000
    assert pool.free_milli("n1") == 0


def test_results_of_a_lost_attempt_count_for_nothing(pool: Any) -> None:
    """R38 b: the first copy's success after the loss is no result; its reclaim frees the node."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.started("t1")
    pool.node("n2")
    pool.node("n1", reach="lost")
    pool.turn()
    pool.node("n1")
    pool.succeed("t1", attempt=1)
    pool.verified("t1", 9, 90_000, generation=1)
    pool.turn()
    assert pool.state("t1") == "starting"
    assert pool.model.tasks["default/t1"].checkpoints == []
    pool.reclaim("t1", attempt=1, ended_as="stopped")
    pool.turn()
    assert pool.free_milli("n1") == 1000
    pool.succeed("t1", attempt=2)
    pool.turn()
    assert pool.count("task.ended") == 1
    assert pool.last("task.ended").attempt == 2


def test_a_pinned_task_waits_for_its_node_to_be_reclaimed(pool: Any) -> None:
    """R38 a: declared lost; the second attempt starts on the same node once the first is proven gone."""
    pool.node("n1")
    pool.submit("t1", where={"nodes": ["n1"]}, **DEVICE)
    pool.turn()
    pool.node("n1", reach="lost")
    pool.turn()
    pool.node("n1")
    pool.turn()
    assert pool.state("t1") == "queued"
    pool.reclaim("t1", attempt=1, ended_as="stopped")
    pool.turn()
    assert (pool.state("t1"), pool.model.tasks["default/t1"].attempt) == ("starting", 2)


def test_without_rescheduling_a_lost_task_is_adopted(pool: Any) -> None:
    """R38 c: it stays running, marked unreachable, and goes on when the node is back."""
    pool.node("n1")
    pool.node("n2")
    pool.submit("t1", reschedule_on_lost=False, **DEVICE)
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


def test_a_blind_observer_loses_nobody(pool: Any) -> None:
    """While inventory can't see, lost is not believed."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.node("n1", reach="lost", blind=True)
    assert pool.types(pool.turn()) == []
    assert pool.state("t1") == "starting"


def test_cancel_on_a_lost_node_ends_at_once(pool: Any) -> None:
    """Nobody is there to answer: a stop that was asked for before the loss, and one asked for after it."""
    pool.node("n1", devices=2)
    pool.submit("t1", reschedule_on_lost=False, **DEVICE)
    pool.submit("t2", reschedule_on_lost=False, **DEVICE)
    pool.turn()
    pool.cancel("t1")
    pool.turn()
    assert pool.state("t1") == "stopping"
    pool.node("n1", reach="lost")
    pool.turn()
    assert pool.state("t1") == "cancelled"
    pool.cancel("t2")
    pool.turn()
    assert pool.state("t2") == "cancelled"


def test_a_revoked_node_gives_back_what_was_held_there(pool: Any) -> None:
    """Nobody waits for a receipt that can't come."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.node("n1", revoked=True)
    out = pool.turn()
    assert pool.last("task.requeued").use.cause == "node-lost"
    assert pool.wishes(out)[-1] == ("n1/default/t1/1/0", "gone")
    assert (pool.used_milli(), pool.state("t1")) == (0, "queued")
    assert pool.model.tasks["default/t1"].holds == []


def test_a_drain_moves_work_without_counting_a_failure(pool: Any) -> None:
    """Stopped with grace, ended moved, resumed from its save elsewhere."""
    pool.node("n1")
    pool.submit("t1", checkpoint={"every_s": 30}, **DEVICE)
    pool.turn()
    pool.started("t1")
    pool.node("n2")
    pool.node("n1", administration="draining", drain_deadline_ms=pool.now_ms + 60_000)
    out = pool.turn()
    assert pool.wishes(out) == [("n1/default/t1/1/0", "stop")]
    assert next(one.body.cause for one in out if one.type == "attempt.desired") == "drained"
    pool.receipt(agent.AttemptStopped, "t1", outcome=pool.outcome("stopped", run_ms=40_000, progress_ms=40_000))
    pool.turn()
    requeued = pool.last("task.requeued")
    assert (requeued.use.end, requeued.use.cause, requeued.failure_count) == ("moved", "drained", 0)
    pool.reclaim("t1", ended_as="stopped")
    pool.turn()
    assert pool.node_of("t1", 2, 0) == "n2"


def test_a_drain_lets_a_short_task_finish(pool: Any) -> None:
    """It ends by itself before the deadline; at the deadline it would be stopped."""
    pool.node("n1", devices=2)
    pool.submit("short", declared_s=30, **DEVICE)
    pool.submit("long", declared_s=600, **DEVICE)
    pool.turn()
    pool.started("short")
    pool.started("long")
    deadline_ms = pool.now_ms + 60_000
    pool.node("n1", devices=2, administration="draining", drain_deadline_ms=deadline_ms)
    pool.turn()
    assert (pool.state("short"), pool.state("long")) == ("running", "stopping")
    pool.after(61)
    assert pool.state("short") == "stopping"


def test_a_broken_device_ends_only_the_attempts_on_it(pool: Any) -> None:
    """The other device's task goes on."""
    pool.node("n1", devices=2)
    pool.submit("t1", **DEVICE)
    pool.submit("t2", **DEVICE)
    pool.turn()
    pool.node("n1", devices=2, states={0: "broken"})
    pool.turn()
    requeued = pool.last("task.requeued")
    assert (requeued.task, requeued.use.end, requeued.use.cause) == ("t1", "lost", "device-broken")
    assert pool.state("t2") == "starting"


def test_a_task_that_never_becomes_ready_is_stopped(pool: Any) -> None:
    """The ready time-out is a failed start; a started task has none."""
    pool.node("n1")
    pool.submit("t1", ready_timeout_s=20, max_failures=1, **DEVICE)
    pool.turn()
    assert pool.types(pool.after(19)) == []
    out = pool.after(2)
    assert pool.wishes(out) == [("n1/default/t1/1/0", "stop")]
    pool.receipt(agent.AttemptStopped, "t1", outcome=pool.outcome("stopped"))
    pool.turn()
    ended = pool.last("task.ended")
    assert (ended.end, ended.cause, ended.use.end) == ("failed", "ready-timeout", "start-failed")


@pytest.mark.parametrize("running", [False, True])
def test_the_deadline_ends_a_task_wherever_it_is(pool: Any, running: bool) -> None:
    """From submission: waiting ends at once, running is stopped first; both end failed."""
    if running:
        pool.node("n1")
    pool.submit("t1", deadline_s=60, **DEVICE)
    pool.turn()
    if running:
        pool.started("t1")
    pool.after(59)
    assert pool.count("task.ended") == 0
    pool.after(2)
    if running:
        assert pool.state("t1") == "stopping"
        pool.receipt(agent.AttemptStopped, "t1", outcome=pool.outcome("stopped", run_ms=59_000))
        pool.turn()
    assert (pool.last("task.ended").end, pool.last("task.ended").cause) == ("failed", "deadline")


def test_a_stop_that_is_not_answered_raises_one_alert_and_clears_it(make_pool: Any) -> None:
    """task.stuck stands until the members are done."""
    pool = make_pool(stop_grace_ms=10_000, stop_stuck_ms=20_000)
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.cancel("t1")
    pool.turn()
    pool.after(31)
    pool.after(31)
    assert pool.count("alert.raised") == 1
    assert (pool.last("alert.raised").name, pool.last("alert.raised").subject) == ("task.stuck", "default/t1")
    pool.reclaim("t1", ended_as="stopped")
    pool.turn()
    assert pool.count("alert.cleared") == 1
    assert pool.state("t1") == "cancelled"


def test_a_refused_start_goes_elsewhere(pool: Any) -> None:
    """The agent did not take it: the node must prove that it holds nothing, and is avoided."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.node("n2")
    pool.receipt(agent.AttemptRefused, "t1", reason="no such device")
    out = pool.turn()
    assert pool.wishes(out) == [("n1/default/t1/1/0", "reclaim")]
    pool.after(5)
    assert (pool.state("t1"), pool.free_milli("n1")) == ("queued", 0)
    pool.reclaim("t1", ended_as="stopped")
    pool.turn()
    assert pool.node_of("t1", 2, 0) == "n2"


def _failed_and_emptying(pool: Any) -> None:
    """Attempt 1 of t1 failed on n1 and is not proven gone; its pause is over; n2 is free."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.started("t1")
    pool.node("n2")
    pool.receipt(agent.AttemptFailed, "t1", outcome=pool.outcome("failed", cause="user-error", run_ms=1_000))
    pool.turn()
    pool.after(6)
    assert (pool.state("t1"), pool.last("task.queued").reasons[0].reason) == ("queued", "reclaim-pending")


def test_an_attempt_waits_until_the_one_before_it_is_proven_gone(pool: Any) -> None:
    """INV2: what a failed attempt left behind may still run; the task says why it waits, also after a take-over."""
    _failed_and_emptying(pool)
    pool.take_over()
    pool.after(6)
    assert pool.state("t1") == "queued"
    pool.reclaim("t1", ended_as="failed")
    pool.turn()
    assert (pool.state("t1"), pool.model.tasks["default/t1"].attempt) == ("starting", 2)


def test_nobody_waits_for_proof_from_a_lost_node(pool: Any) -> None:
    """What an ended attempt holds there counts against no queue any longer; the node's capacity stays held."""
    _failed_and_emptying(pool)
    pool.node("n1", reach="lost")
    pool.turn()
    assert pool.node_of("t1", 2, 0) == "n2"
    assert (pool.used_milli(), pool.free_milli("n1")) == (1000, 0)


def test_a_leftover_keeps_its_device_back_and_not_its_task(pool: Any) -> None:
    """The member is gone by its agent's word: the task goes on elsewhere, the device waits for whoever cleans it."""
    _failed_and_emptying(pool)
    pool.reclaim("t1", ended_as="failed", leftover=True)
    pool.turn()
    assert pool.node_of("t1", 2, 0) == "n2"
    assert (pool.used_milli(), pool.free_milli("n1")) == (2000, 0)
    pool.take_over()
    pool.reclaim("t1", node="n1", ended_as="failed")
    pool.turn()
    assert (pool.used_milli(), pool.free_milli("n1")) == (1000, 1000)


def test_a_late_receipt_of_another_attempt_changes_nothing(pool: Any) -> None:
    """Attempt 1's failure arrives while attempt 2 runs."""
    pool.node("n1", devices=2)
    pool.submit("t1", **DEVICE)
    pool.turn()
    _fail(pool, "t1", "user-error")
    pool.turn()
    pool.after(5)
    assert pool.state("t1") == "starting"
    _fail(pool, "t1", "user-error", attempt=1)
    pool.turn()
    assert pool.model.tasks["default/t1"].failure_count == 1
    assert pool.state("t1") == "starting"
