"""Breaks R01: the limit test adds binary fractions, so 0.1 + 0.2 is above 0.3."""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.core.queueing.quota import Amount, Books
from evenflow.core.units import MILLI
from evenflow.testkit.mutants.replacing import replaced


def _allows(self: Books, asked: Amount) -> bool:
    most, used = self._limit.devices_milli, self._used.devices_milli
    return most is None or used / MILLI + asked.devices_milli / MILLI <= most / MILLI


def without_exact_quota() -> AbstractContextManager[None]:
    """Quota in floating point while entered."""
    return replaced(Books, "allows", _allows)
