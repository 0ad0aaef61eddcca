"""Breaks R46: a receipt that arrives after a task's end ends it once more, as the receipt says."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from evenflow.core.lifecycle.causes import Cause
from evenflow.core.lifecycle.task import TaskState
from evenflow.events.contracts.agent import AttemptFailed, AttemptStopped, AttemptSucceeded
from evenflow.placement.deciding import endings, receipts
from evenflow.testkit.mutants.replacing import replaced

_on_receipt = receipts.on_receipt


def _forgetful(draft: Any, received: Any) -> None:
    body = received.body
    row = draft.task(f"{body.tenant}/{body.task}")
    if row is not None and row.state.terminal and isinstance(body, AttemptFailed | AttemptStopped | AttemptSucceeded):
        changed = draft.change(row.key)
        changed.state = TaskState.RUNNING
        endings.end_waiting(draft, changed, TaskState.FAILED, Cause.UNKNOWN)
        return
    _on_receipt(draft, received)


def without_final_end() -> AbstractContextManager[None]:
    """Ends that are not final while entered."""
    return replaced(receipts, "on_receipt", _forgetful)
