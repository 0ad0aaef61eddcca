"""Breaks R04: a number the door should refuse is read as zero, so the task asks for nothing."""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.core import units
from evenflow.events.documents import quantities
from evenflow.testkit.mutants.replacing import replaced


def _lenient(value: object, scale: int) -> int:
    try:
        return units.scaled(value, scale)
    except (ValueError, ArithmeticError):
        return 0


def without_strict_numbers() -> AbstractContextManager[None]:
    """Lenient numbers while entered."""
    return replaced(quantities, "_exact", _lenient)
