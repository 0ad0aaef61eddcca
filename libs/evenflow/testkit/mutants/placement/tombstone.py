"""Breaks the order of the desired state's tombstone: it follows the attempt's end, not the reclaim receipt."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from evenflow.core.lifecycle.attempt import AttemptEnd
from evenflow.placement.deciding import endings
from evenflow.placement.memory.rows import TaskRow
from evenflow.testkit.mutants.replacing import replaced

_requeue = endings._requeue  # noqa: SLF001  the mutant works inside


def _early(draft: Any, row: TaskRow, end: AttemptEnd, cause: Any, pause_ms: int) -> None:
    _requeue(draft, row, end, cause, pause_ms)
    for hold in row.holds:
        draft.unwant(row, hold.attempt, hold.member)


def with_early_tombstone() -> AbstractContextManager[None]:
    """Desired state that vanishes before its place is free while entered."""
    return replaced(endings, "_requeue", _early)
