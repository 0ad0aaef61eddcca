"""Receipts: what agents say of members, folded into the task's row.

A receipt about an attempt that is not current, or that would take a member back, changes nothing and is counted. One
about an attempt that was never issued, or from another node than the member's, is refused and noted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from evenflow.core.lifecycle.alerts import Alert
from evenflow.core.lifecycle.attempt import Wish
from evenflow.core.lifecycle.causes import Cause
from evenflow.core.lifecycle.member import MemberState, may_follow
from evenflow.core.lifecycle.task import TaskState
from evenflow.events.contracts import agent
from evenflow.placement.deciding import endings
from evenflow.placement.deciding.draft import Draft
from evenflow.placement.memory.rows import MemberRow, TaskRow
from evenflow.platform.broker.codec import Received

_STATE_OF_END: Final = {
    "succeeded": MemberState.SUCCEEDED,
    "failed": MemberState.FAILED,
    "stopped": MemberState.STOPPED,
}


def on_receipt(draft: Draft, received: Received) -> None:
    """Fold one receipt in."""
    body: Any = received.body
    row = draft.task(f"{body.tenant}/{body.task}")
    if row is None or not 1 <= body.attempt <= row.attempt or body.epoch > draft.epoch:
        _refuse(draft, received, "names an attempt that was never issued")
        return
    place = _place_of(row, body.attempt, body.member)
    if place is None and row.current is not None and row.current.number == body.attempt:
        _refuse(draft, received, "names a member that was never issued")
        return
    if place is None:
        draft.counts.stale_receipts += 1
        return
    if place.node != body.node:
        _refuse(draft, received, f"is about a member on {place.node}")
        return
    current = row.current
    if current is not None and current.number == body.attempt and body.epoch < current.epoch:
        draft.counts.stale_receipts += 1
        return
    row = draft.change(row.key)
    member = _place_of(row, body.attempt, body.member)
    if member is None:
        raise AssertionError(f"{row.key} lost a member while it was copied")
    live = row.current is not None and row.current.number == body.attempt
    stamp = received.envelope.stamp
    if isinstance(body, agent.AttemptAccepted) and stamp is not None:
        if member.session and member.session != stamp.session:
            _on_taken_anew(draft, row, member, body, live=live)
            return
        member.session = stamp.session
    if isinstance(body, agent.AttemptReclaimed):
        _on_reclaimed(draft, row, member, body, live=live)
    elif live:
        _FOLDS[type(body)](draft, row, member, body)
    else:
        draft.counts.stale_receipts += 1


def _place_of(row: TaskRow, attempt: int, member: int) -> MemberRow | None:
    if row.current is not None and row.current.number == attempt:
        for one in row.current.members:
            if one.member == member:
                return one
        return None
    for hold in row.holds:
        if hold.attempt == attempt and hold.member.member == member:
            return hold.member
    return None


def _refuse(draft: Draft, received: Received, problem: str) -> None:
    body: Any = received.body
    draft.counts.refused_receipts += 1
    what = f"{body.TYPE} for {body.tenant}/{body.task} attempt {body.attempt} member {body.member}"
    draft.note("receipt refused", node=body.node, problem=f"{what} {problem}", origin=received.origin)
    draft.raise_alert(Alert.NODE_IDENTITY, body.node, f"{what} {problem}")


# --- one function per type --------------------------------------------------------------------------------------------


def _advance(draft: Draft, member: MemberRow, state: MemberState) -> bool:
    if not may_follow(member.state, state):
        draft.counts.stale_receipts += 1
        return False
    member.state = state
    return True


def _on_accepted(draft: Draft, _: TaskRow, member: MemberRow, __: Any) -> None:
    _advance(draft, member, MemberState.ACCEPTED)


def _on_taken_anew(draft: Draft, row: TaskRow, member: MemberRow, body: agent.AttemptAccepted, *, live: bool) -> None:
    """The node took the same member twice: its machine came back without memory of the first time.

    What ran there is gone, and what it begins now is not that: it would do the work again from where the attempt began.
    """
    draft.note("a machine came back empty", node=member.node, task=row.key, attempt=body.attempt, member=body.member)
    if live and not member.state.done:
        endings.lose_members(draft, row, [member], Cause.NODE_LOST)
    elif member.held and member.wish is not Wish.RECLAIM:
        draft.want(row, body.attempt, member, Wish.RECLAIM)


def _on_refused(draft: Draft, row: TaskRow, member: MemberRow, body: agent.AttemptRefused) -> None:
    """The agent never took it. It still must prove that nothing of it is there before the capacity counts as free."""
    if not _advance(draft, member, MemberState.REFUSED):
        return
    draft.want(row, body.attempt, member, Wish.RECLAIM, Cause.START_FAILED)
    if row.current is not None and row.current.cause is None:
        endings.fail_attempt(draft, row, Cause.START_FAILED, f"{member.node} refused: {body.reason}")
    else:
        endings.settle(draft, row)


def _on_staged(draft: Draft, row: TaskRow, member: MemberRow, _: Any) -> None:
    if not _advance(draft, member, MemberState.STAGED):
        return
    if row.current is not None and row.current.staging and row.current.ready_due_ms and row.task is not None:
        row.current.ready_due_ms = draft.now_ms + row.task.ready_timeout_ms


def _on_started(draft: Draft, row: TaskRow, member: MemberRow, body: agent.AttemptStarted) -> None:
    if not _advance(draft, member, MemberState.STARTED):
        return
    _has_started(draft, row, member, body.start_ms)
    member.progress_ms = max(member.progress_ms, body.resumed_progress_ms)
    damaged = set(body.damaged)
    if damaged:
        row.checkpoints = [one for one in row.checkpoints if one["manifest"] not in damaged]


def _has_started(draft: Draft, row: TaskRow, member: MemberRow, start_ms: int) -> None:
    member.started = True
    member.start_ms = max(member.start_ms, start_ms)
    draft.forgive_node(member.node)
    attempt = row.current
    if attempt is None or row.state is not TaskState.STARTING:
        return
    if all(one.started for one in attempt.members):
        endings.enter(row, TaskState.RUNNING)
        attempt.ready_due_ms = 0
        attempt.started_ms = draft.now_ms


def _on_progressed(draft: Draft, _: TaskRow, member: MemberRow, body: Any) -> None:
    """Progress and run time only grow; after the end of the member's work its outcome has said it all."""
    if member.state.done:
        draft.counts.stale_receipts += 1
        return
    member.progress_ms = max(member.progress_ms, body.progress_ms)
    member.run_ms = max(member.run_ms, body.run_ms)


def _on_outcome(draft: Draft, row: TaskRow, member: MemberRow, body: Any) -> None:
    _take_outcome(draft, row, member, _OUTCOMES[type(body)], body.outcome)


def _take_outcome(draft: Draft, row: TaskRow, member: MemberRow, state: MemberState, outcome: agent.Outcome) -> None:
    """The member's work is over; its first outcome counts."""
    if not _advance(draft, member, state):
        return
    if state is MemberState.SUCCEEDED or outcome.run_ms:
        _has_started(draft, row, member, outcome.start_ms)
    member.run_ms = max(member.run_ms, outcome.run_ms)
    member.start_ms = max(member.start_ms, outcome.start_ms)
    member.progress_ms = max(member.progress_ms, outcome.progress_ms)
    attempt = row.current
    if attempt is None or state is MemberState.SUCCEEDED or attempt.cause is not None:
        endings.settle(draft, row)
        return
    endings.fail_attempt(draft, row, outcome.cause or Cause.UNKNOWN, outcome.message)


def _on_reclaimed(draft: Draft, row: TaskRow, member: MemberRow, body: agent.AttemptReclaimed, *, live: bool) -> None:
    """Proven free: enough by itself, even when nothing was heard of the member's end."""
    attempt = body.attempt
    if live and not member.state.done:
        state = _STATE_OF_END.get(body.outcome.ended_as, MemberState.STOPPED)
        _take_outcome(draft, row, member, state, body.outcome)
    if body.leftover:
        draft.note("capacity kept back by a leftover", node=member.node, task=row.key, attempt=attempt)
        member.leftover = member.held
        draft.frees = draft.frees or not live  # nothing came free, but the task need not wait for this any longer
    elif member.held:
        endings.release(draft, row, attempt, member)
    else:
        draft.counts.stale_receipts += 1


_OUTCOMES: Final[dict[type, MemberState]] = {
    agent.AttemptSucceeded: MemberState.SUCCEEDED,
    agent.AttemptFailed: MemberState.FAILED,
    agent.AttemptStopped: MemberState.STOPPED,
}

_FOLDS: Final[dict[type, Callable[[Draft, TaskRow, MemberRow, Any], None]]] = {
    agent.AttemptAccepted: _on_accepted,
    agent.AttemptRefused: _on_refused,
    agent.AttemptStaged: _on_staged,
    agent.AttemptStarted: _on_started,
    agent.AttemptProgressed: _on_progressed,
    agent.AttemptCheckpointed: _on_progressed,
    agent.AttemptSucceeded: _on_outcome,
    agent.AttemptFailed: _on_outcome,
    agent.AttemptStopped: _on_outcome,
}
