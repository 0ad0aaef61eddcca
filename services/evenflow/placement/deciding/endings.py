"""How attempts end and what follows: stop, lose, settle, requeue, end. The only place that closes an attempt.

An attempt is over when every member is done. Until then its first reason to end stands as its cause, and nothing that
its members say later changes it. Capacity is another matter: it comes back with each member's reclaim receipt alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from evenflow.core.deciding.failures import Tally, judge
from evenflow.core.lifecycle.alerts import Alert
from evenflow.core.lifecycle.attempt import END_OF_CAUSE, AttemptEnd, Wish
from evenflow.core.lifecycle.causes import Cause
from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.member import MemberState
from evenflow.core.lifecycle.task import TaskState, may_follow
from evenflow.placement.deciding.draft import Draft, place_document
from evenflow.placement.memory.rows import AttemptRow, HoldRow, MemberRow, TaskRow

#: Causes of a stop after which the task must end, whatever else happens to the attempt.
FINAL: Final = frozenset({Cause.CANCELLED, Cause.DEADLINE})
#: Causes that a later loss replaces: the stop they asked for can't be finished any more.
_REPLACED_BY_LOSS: Final = frozenset(
    {
        Cause.DRAINED,
        Cause.MAINTENANCE,
        Cause.MOVED,
        Cause.PREEMPTED,
        Cause.QUOTA_EXPIRY,
        Cause.NODE_RECLAIMED,
    }
)
_MESSAGE_LENGTH_MAX: Final = 1_000
AVOID_MAX: Final = 64
LOST_GENERATIONS_MAX: Final = 64
_TASK_ALERTS: Final = (Alert.TASK_STUCK, Alert.TASK_UNSATISFIABLE)


def enter(row: TaskRow, state: TaskState) -> None:
    """Put a task into a state that may follow its present one."""
    if row.state is state:
        return
    if not may_follow(row.state, state):
        raise AssertionError(f"{row.key}: {state} can't follow {row.state}")
    row.state = state


def stop_attempt(draft: Draft, row: TaskRow, cause: Cause, message: str = "") -> None:
    """Ask every member that is not done to stop, with grace; `row` must be one to change."""
    attempt = _current(row)
    _blame(attempt, cause, message)
    told = Cause.PEER_LOST if any(m.state.done and not _succeeded(m) for m in attempt.members) else cause
    for member in attempt.members:
        if not member.state.done and member.wish is Wish.RUN:
            draft.want(row, attempt.number, member, Wish.STOP, told)
    attempt.stop_due_ms = draft.now_ms + draft.settings.stop_grace_ms + draft.settings.stop_stuck_ms
    enter(row, TaskState.STOPPING)
    settle(draft, row)


def lose_members(draft: Draft, row: TaskRow, lost: list[MemberRow], cause: Cause) -> None:
    """Give members up, and with them the attempt: its results count for nothing from now on."""
    attempt = _current(row)
    if attempt.cause is None or attempt.cause in _REPLACED_BY_LOSS:
        attempt.cause = cause
    for member in lost:
        if not member.state.done:
            member.state = MemberState.LOST
            draft.want(row, attempt.number, member, Wish.RECLAIM, cause)
    for member in attempt.members:
        if not member.state.done and member.wish is not Wish.RECLAIM:
            draft.want(row, attempt.number, member, Wish.RECLAIM, Cause.PEER_LOST)
    attempt.stop_due_ms = draft.now_ms + draft.settings.stop_grace_ms + draft.settings.stop_stuck_ms
    row.unreachable = False
    enter(row, TaskState.STOPPING)
    settle(draft, row)


def fail_attempt(draft: Draft, row: TaskRow, cause: Cause, message: str) -> None:
    """Take note that one member failed: the whole attempt ends."""
    attempt = _current(row)
    _blame(attempt, cause, message)
    stop_attempt(draft, row, cause)


def settle(draft: Draft, row: TaskRow) -> None:
    """End the attempt if every member is done; otherwise nothing."""
    attempt = row.current
    if attempt is None or not all(member.state.done for member in attempt.members):
        return
    if all(_succeeded(member) for member in attempt.members):
        _end_task(draft, row, TaskState.SUCCEEDED, AttemptEnd.SUCCEEDED, None)
        return
    cause = attempt.cause or Cause.UNKNOWN
    end = END_OF_CAUSE[cause]
    if cause is Cause.CANCELLED:
        _end_task(draft, row, TaskState.CANCELLED, end, cause)
    elif cause is Cause.DEADLINE:
        _end_task(draft, row, TaskState.FAILED, end, cause)
    else:
        _judge(draft, row, cause, end)


def end_waiting(draft: Draft, row: TaskRow, state: TaskState, cause: Cause | None, message: str = "") -> None:
    """End a task that has no attempt; `row` must be one to change."""
    _say_end(draft, row, state, cause, None, message)
    close(draft, row, state)


def release(draft: Draft, row: TaskRow, attempt: int, member: MemberRow) -> None:
    """Take a member's capacity back; its desired state gets a tombstone."""
    if member.held:
        member.held = False
        draft.frees = True
        draft.unwant(row, attempt, member)
    emptied = any(hold.counted and not hold.member.held for hold in row.holds)
    row.holds = [hold for hold in row.holds if hold.member.held]
    if emptied and row.state is TaskState.QUEUED:
        row.queued_ms = draft.now_ms
    if row.state is TaskState.QUEUED and not row.holds:
        row.announced_ms = 0  # it waits for something else now, and says so at once
        draft.fresh[row.key] = row
    if row.current is None and not row.holds:
        draft.clear_task_alerts(row, [Alert.TASK_STUCK])


def _current(row: TaskRow) -> AttemptRow:
    if row.current is None:
        raise AssertionError(f"{row.key} has no attempt to end")
    return row.current


def _blame(attempt: AttemptRow, cause: Cause, message: str) -> None:
    if attempt.cause is None or (cause in FINAL and attempt.cause not in FINAL):
        attempt.cause = cause
        attempt.message = message[:_MESSAGE_LENGTH_MAX]


def _succeeded(member: MemberRow) -> bool:
    return member.state is MemberState.SUCCEEDED


def _judge(draft: Draft, row: TaskRow, cause: Cause, end: AttemptEnd) -> None:
    """Count what has to be counted, then end the task or put it back into its queue."""
    attempt = _current(row)
    retry = draft.policy.retry
    verdict = judge(
        cause,
        Tally(row.failure_count, row.start_failed, row.setback_count),
        max_failures=row.task.max_failures if row.task is not None else 1,
        first_ms=retry.backoff_first_ms,
        max_ms=retry.backoff_max_ms,
    )
    row.failure_count = verdict.tally.failure_count
    row.start_failed = verdict.tally.start_failed
    row.setback_count = verdict.tally.setback_count
    if verdict.start_failure:
        _blame_nodes(draft, row, attempt)
    if verdict.ends:
        _end_task(draft, row, TaskState.FAILED, end, cause)
    else:
        _requeue(draft, row, end, cause, verdict.pause_ms)


def _blame_nodes(draft: Draft, row: TaskRow, attempt: AttemptRow) -> None:
    """Count a failed start against the nodes where members did not start, and avoid them for this task."""
    nodes = dict.fromkeys(m.node for m in attempt.members if not m.started and m.state in _START_FAILED)
    if draft.policy.retry.avoid_failed_node:
        row.avoid = tuple(dict.fromkeys([*row.avoid, *nodes]))[-AVOID_MAX:]
    for name in nodes:
        node = draft.node(name)
        count = node.start_failure_count + 1
        closed = draft.now_ms if count >= quarantine_count(draft) else node.closed_ms
        if closed != node.closed_ms:
            draft.note("node closed after failed starts", node=name, count=count)
            draft.raise_alert(Alert.NODE_QUARANTINED, name, f"{count} starts in a row failed there")
        session = draft.tables.session_of(name)
        draft.change_node(replace(node, start_failure_count=count, closed_ms=closed, session=session))


_START_FAILED: Final = frozenset({MemberState.FAILED, MemberState.REFUSED, MemberState.STOPPED})


def quarantine_count(draft: Draft) -> int:
    """Failed starts in a row that close a node: the service's setting, or else the policy's."""
    return draft.settings.start_failures_quarantine or draft.policy.retry.start_failures_quarantine


def _requeue(draft: Draft, row: TaskRow, end: AttemptEnd, cause: Cause, pause_ms: int) -> None:
    attempt = _current(row)
    use = attempt_use(attempt, end, cause)
    if end is AttemptEnd.LOST:
        row.lost_generations = (*row.lost_generations, attempt.number)[-LOST_GENERATIONS_MAX:]
    _move_to_holds(draft, row, end)
    row.queued_ms = draft.now_ms
    row.not_before_ms = draft.now_ms + pause_ms if pause_ms else 0
    row.reasons = []
    row.announced_ms = 0
    row.unreachable = False
    draft.clear_task_alerts(row, [Alert.TASK_STUCK])
    enter(row, TaskState.QUEUED)
    body = {
        "epoch": draft.epoch,
        "use": use,
        "failure_count": row.failure_count,
        "not_before_ms": row.not_before_ms,
    }
    draft.say(EventType.TASK_REQUEUED, row, body)
    draft.fresh[row.key] = row


def _end_task(draft: Draft, row: TaskRow, state: TaskState, end: AttemptEnd, cause: Cause | None) -> None:
    attempt = _current(row)
    use = attempt_use(attempt, end, cause)
    _move_to_holds(draft, row, end)
    _say_end(draft, row, state, cause, use, attempt.message)
    close(draft, row, state)


def _say_end(
    draft: Draft, row: TaskRow, state: TaskState, cause: Cause | None, use: dict[str, Any] | None, message: str
) -> None:
    body: dict[str, Any] = {
        "epoch": draft.epoch,
        "end": state,
        "attempt": row.attempt,
        "failure_count": row.failure_count,
        "submitted_ms": row.submitted_ms,
        "message": message[:_MESSAGE_LENGTH_MAX],
    }
    if cause is not None:
        body["cause"] = cause
    if use is not None:
        body["use"] = use
    draft.say(EventType.TASK_ENDED, row, body)
    draft.counts.ended += 1


def close(draft: Draft, row: TaskRow, state: TaskState) -> None:
    """Make the row what an ended task keeps."""
    enter(row, state)
    draft.clear_task_alerts(row, _TASK_ALERTS)
    row.ended_ms = draft.now_ms
    row.specification = b""
    row.task = None
    row.checkpoints = []
    row.reasons = []
    row.avoid = ()
    row.not_before_ms = 0
    row.unreachable = False


def _move_to_holds(draft: Draft, row: TaskRow, end: AttemptEnd) -> None:
    """What is lost counts against its queue no longer; its node gives it back when it can be asked."""
    attempt = _current(row)

    def counted(member: MemberRow) -> bool:
        lost = end is AttemptEnd.LOST or member.state is MemberState.LOST
        return not lost and not draft.tables.lost(member.node)

    row.holds = row.holds + [
        HoldRow(attempt.number, counted(member), member) for member in attempt.members if member.held
    ]
    row.current = None


def attempt_use(attempt: AttemptRow, end: AttemptEnd, cause: Cause | None) -> dict[str, Any]:
    """An ended attempt as events.contracts.placement.AttemptUse."""
    out: dict[str, Any] = {
        "attempt": attempt.number,
        "generation": attempt.number,
        "end": end,
        "wait_ms": attempt.wait_ms,
        "members": [_use_of(member) for member in attempt.members],
    }
    if cause is not None:
        out["cause"] = cause
    if attempt.crossing is not None:
        out["crossing"] = attempt.crossing
    return out


def _use_of(member: MemberRow) -> dict[str, Any]:
    return {
        "place": place_document(member),
        "ended_as": member.state,
        "started": member.started,
        "run_ms": member.run_ms,
        "start_ms": member.start_ms,
        "progress_ms": member.progress_ms,
    }
