"""Breaks R23: the limit is tested without the request, so whoever finds any room left goes in."""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.core.queueing.quota import Amount, Books
from evenflow.testkit.mutants.replacing import replaced


def _allows(self: Books, asked: Amount) -> bool:
    full = self._limit.short_of(self._used.plus(Amount(1, 1, 1, 1)))
    return not any(asked[index] for index in full)


def without_counted_request() -> AbstractContextManager[None]:
    """Quota that looks only at what is held while entered."""
    return replaced(Books, "allows", _allows)
