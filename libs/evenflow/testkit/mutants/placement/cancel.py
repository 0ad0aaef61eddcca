"""Breaks R50: a cancelled task is over at once, and whatever of it runs is asked for nothing."""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.core.lifecycle.causes import Cause
from evenflow.core.lifecycle.task import TaskState
from evenflow.placement.deciding import endings
from evenflow.placement.deciding.draft import Draft
from evenflow.placement.memory.rows import TaskRow
from evenflow.testkit.mutants.replacing import replaced

_stop_attempt = endings.stop_attempt


def _at_once(draft: Draft, row: TaskRow, cause: Cause, message: str = "") -> None:
    if cause is not Cause.CANCELLED:
        _stop_attempt(draft, row, cause, message)
        return
    row.current = None
    endings.enter(row, TaskState.STOPPING)
    endings.end_waiting(draft, row, TaskState.CANCELLED, cause, message)


def with_cancel_at_once() -> AbstractContextManager[None]:
    """Cancels that forget what runs while entered."""
    return replaced(endings, "stop_attempt", _at_once)
