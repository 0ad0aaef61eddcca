"""Breaks rule 5: each decider has transactional ids of its own, so that nobody shuts out the one before."""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.platform.broker.transactions import Transactions
from evenflow.platform.runtime import Runtime
from evenflow.testkit.mutants.replacing import replaced

_init = Transactions.__init__


def _own_ids(self: Transactions, runtime: Runtime, name: str, *, round_limit_s: float, fence_limit_s: float) -> None:
    own = f"{name}.{runtime.instance}"
    _init(self, runtime, own, round_limit_s=round_limit_s, fence_limit_s=fence_limit_s)


def without_fence() -> AbstractContextManager[None]:
    """Deciders that do not fence each other while entered."""
    return replaced(Transactions, "__init__", _own_ids)
