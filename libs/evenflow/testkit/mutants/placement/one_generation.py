"""Breaks R38: the next attempt begins while something of the one before may still run."""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.placement.memory.rows import MemberRow, TaskRow
from evenflow.testkit.mutants.replacing import replaced


def _nothing(_row: TaskRow) -> list[MemberRow]:
    return []


def without_one_generation() -> AbstractContextManager[None]:
    """Attempts that do not wait for each other while entered."""
    return replaced(TaskRow, "emptying", property(_nothing))
