"""Breaks R41: the pause before the next attempt is the same each time."""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.core.deciding import failures
from evenflow.testkit.mutants.replacing import replaced


def _same(setback_count: int, first_ms: int, _max_ms: int) -> int:
    return first_ms if setback_count else 0


def without_growing_pause() -> AbstractContextManager[None]:
    """Pauses that do not grow while entered."""
    return replaced(failures, "pause_ms", _same)
