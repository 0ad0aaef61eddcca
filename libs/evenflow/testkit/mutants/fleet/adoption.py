"""Breaks R38: whoever is lost is given up, though the task asked to wait for its node or has nowhere else to go."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from evenflow.core.lifecycle.causes import Cause
from evenflow.placement.deciding import endings, watching
from evenflow.placement.deciding.draft import Draft
from evenflow.placement.memory.rows import AttemptRow, TaskRow
from evenflow.testkit.mutants.replacing import replaced


def _given_up(draft: Draft, row: TaskRow, _attempt: AttemptRow, _node: str, here: list[int], *_more: Any) -> None:
    row = draft.change(row.key)
    members = row.current.members if row.current is not None else []
    endings.lose_members(draft, row, [member for member in members if member.member in here], Cause.NODE_LOST)


def without_adoption() -> AbstractContextManager[None]:
    """Nodes that nobody waits for while entered."""
    return replaced(watching, "_check_lost", _given_up)
