"""Breaks the counting of who waits anew: each input of a round that says so makes one more waiting task."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from evenflow.placement import rounds
from evenflow.placement.deciding.draft import Draft
from evenflow.placement.memory.rows import TaskRow
from evenflow.testkit.mutants.replacing import replaced


class _Every(dict[str, TaskRow]):
    """Keeps each row as often as it was put in, as a list would."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[TaskRow] = []

    def __setitem__(self, key: str, row: TaskRow) -> None:
        self._rows.append(row)
        super().__setitem__(key, row)

    def values(self) -> Any:
        return self._rows


def _counting_each(*given: Any, **named: Any) -> Draft:
    draft = Draft(*given, **named)
    draft.fresh = _Every()
    return draft


def without_counted_once() -> AbstractContextManager[None]:
    """Tasks that wait as often as they were spoken of while entered."""
    return replaced(rounds, "Draft", _counting_each)
