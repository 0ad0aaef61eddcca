"""Level-triggered checks: live attempts against the node table, and tasks whose time has come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from evenflow.core.lifecycle.alerts import Alert
from evenflow.core.lifecycle.causes import Cause
from evenflow.core.lifecycle.node import Administration
from evenflow.core.lifecycle.task import TaskState
from evenflow.placement.deciding import endings
from evenflow.placement.deciding.draft import Draft
from evenflow.placement.memory.rows import AttemptRow, MemberRow, TaskRow

#: Whether nodes that take work now could hold a task if they were empty.
HasPlace = Callable[[TaskRow], bool]

_LEAVING: Final = {
    Administration.DRAINING: Cause.DRAINED,
    Administration.MAINTENANCE: Cause.MAINTENANCE,
}


def check_node(draft: Draft, node: str, has_place: HasPlace) -> None:
    """Compare everything on a node with what is now said of it. `has_place` says whether a task could go elsewhere."""
    _check_session(draft, node)
    if draft.tables.gone(node):
        draft.clear_alert(Alert.NODE_IDENTITY, node)
    for key in list(draft.model.on_node.get(node, ())):
        row = draft.task(key)
        if row is not None:
            _check_task_on(draft, row, node, has_place)


def _check_session(draft: Draft, node: str) -> None:
    """An agent that registers anew starts with a clean slate of failed starts."""
    row = draft.node(node)
    session = draft.tables.session_of(node)
    if row.session and session and row.session != session:
        draft.forgive_node(node, session)


def _check_task_on(draft: Draft, row: TaskRow, node: str, has_place: HasPlace) -> None:
    attempt = row.current
    if attempt is not None and any(m.node == node and not m.state.done for m in attempt.members):
        _check_attempt(draft, row, attempt, node, has_place)
    if draft.tables.gone(node):
        _free_what_is_gone(draft, row.key, node)
    elif draft.tables.lost(node):
        _give_up_holds(draft, row.key, node)


def _check_attempt(draft: Draft, row: TaskRow, attempt: AttemptRow, node: str, has_place: HasPlace) -> None:
    here = [member.member for member in attempt.members if member.node == node and not member.state.done]
    if draft.tables.lost(node):
        _check_lost(draft, row, attempt, node, here, has_place)
        return
    if row.unreachable and not any(draft.tables.lost(member.node) for member in attempt.members):
        row = draft.change(row.key)
        row.unreachable = False
        if draft.policy.silence.reconnect == "stop" and row.current is not None:
            endings.lose_members(draft, row, row.current.members, Cause.NODE_LOST)
            return
    broken = draft.tables.broken_devices(node)
    if broken:
        hit = [m.member for m in attempt.members if m.member in here and any(i in broken for i, _ in m.devices)]
        if hit:
            row = draft.change(row.key)
            endings.lose_members(draft, row, _members(row, hit), Cause.DEVICE_BROKEN)
            return
    status = draft.tables.nodes[node]
    cause = _LEAVING.get(status.administration)
    if cause is not None and attempt.cause is None and not _may_finish(draft, row, attempt, status.drain_deadline_ms):
        endings.stop_attempt(draft, draft.change(row.key), cause)


def _check_lost(
    draft: Draft, row: TaskRow, attempt: AttemptRow, node: str, here: list[int], has_place: HasPlace
) -> None:
    """Give the attempt up, unless it is to wait for its node, or there is nowhere else for it to go."""
    waits = False
    if row.task is not None and not draft.tables.gone(node) and attempt.cause not in endings.FINAL:
        waits = not row.task.reschedule_on_lost
        waits = waits or (bool(attempt.started_ms) and attempt.cause is None and not has_place(row))
    if waits:
        if not row.unreachable:
            draft.change(row.key).unreachable = True
        return
    row = draft.change(row.key)
    endings.lose_members(draft, row, _members(row, here), Cause.NODE_LOST)


def _may_finish(draft: Draft, row: TaskRow, attempt: AttemptRow, deadline_ms: int | None) -> bool:
    """Whether a task of known length ends by itself before the node must be empty.

    One that can save its progress is stopped at once instead: it loses nothing by moving.
    """
    task = row.task
    if task is None or deadline_ms is None or task.declared_ms is None or task.checkpoint is not None:
        return False
    started = all(member.started for member in attempt.members)
    ran_ms = min((member.run_ms for member in attempt.members), default=0)
    return started and draft.now_ms + max(0, task.declared_ms - ran_ms) <= deadline_ms


def _members(row: TaskRow, numbers: list[int]) -> list[MemberRow]:
    current = row.current
    return [member for member in current.members if member.member in numbers] if current is not None else []


def _free_what_is_gone(draft: Draft, key: str, node: str) -> None:
    """A node that never comes back gives back what was held there without a receipt."""
    row = draft.change(key)
    for number, _, member in row.holding():
        if member.node == node:
            endings.release(draft, row, number, member)


def _give_up_holds(draft: Draft, key: str, node: str) -> None:
    """What ended attempts hold on a lost node counts against no queue and is not waited for; the node still owes it."""
    row = draft.task(key)
    if row is not None and any(hold.counted and hold.member.node == node for hold in row.holds):
        row = draft.change(key)
        for hold in row.holds:
            hold.counted = hold.counted and hold.member.node != node


# --- time -------------------------------------------------------------------------------------------------------------


def check_due(draft: Draft, key: str) -> None:
    """A task whose time has come: its deadline, its start's time-out, or a stop that takes too long."""
    row = draft.task(key)
    if row is None or row.task is None or row.terminal:
        return
    row = draft.change(key)
    attempt = row.current
    deadline_ms = row.task.deadline_ms if row.task is not None else None
    if deadline_ms is not None and draft.now_ms >= row.submitted_ms + deadline_ms:
        if attempt is None:
            endings.end_waiting(draft, row, TaskState.FAILED, Cause.DEADLINE, "the deadline passed while it waited")
            return
        if attempt.cause not in endings.FINAL:
            endings.stop_attempt(draft, row, Cause.DEADLINE, "the deadline passed")
            _give_up_unreachable(draft, row)
            return
    if attempt is None:
        return
    starting = row.state is TaskState.STARTING and attempt.cause is None
    if starting and attempt.ready_due_ms and draft.now_ms >= attempt.ready_due_ms:
        endings.stop_attempt(draft, row, Cause.READY_TIMEOUT, "not ready in time")
    elif attempt.cause is not None and attempt.stop_due_ms and draft.now_ms >= attempt.stop_due_ms:
        late = ", ".join(member.node for member in attempt.members if not member.state.done)
        draft.raise_task_alert(row, Alert.TASK_STUCK, f"asked to stop ({attempt.cause}) and not stopped on {late}")


def _give_up_unreachable(draft: Draft, row: TaskRow) -> None:
    """Nobody can ask a lost node to stop: a task that must end does not wait for it."""
    attempt = row.current
    lost = [] if attempt is None else [m for m in attempt.members if not m.state.done and draft.tables.lost(m.node)]
    if lost:
        endings.lose_members(draft, row, lost, Cause.NODE_LOST)


def forget_old(draft: Draft, limit: int) -> None:
    """Forget ended tasks whose ids need not be remembered any longer."""
    settings = draft.settings
    before_ms = draft.now_ms - settings.task_id_retention_ms
    for key in draft.model.forgettable(before_ms, settings.ended_tasks_max, limit):
        draft.rows[f"task/{key}"] = None
