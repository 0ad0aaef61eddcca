"""Breaks R22 in the ledger: usage that is read again is charged again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from evenflow.billing.account import Account, Folded
from evenflow.core.placement.policy import Policy
from evenflow.events.contracts.billing import UsageMeasured
from evenflow.testkit.mutants.replacing import replaced

_fold = Account.fold


def _forgetful(
    self: Account,
    usage: Sequence[UsageMeasured],
    policy: Policy,
    policy_hash: str,
    *,
    next_offset: int,
    now_ms: int,
) -> Folded:
    forgot = Account()
    forgot.rows = {key: row for key, row in self.rows.items() if not key.startswith("entry/")}
    return _fold(forgot, usage, policy, policy_hash, next_offset=next_offset, now_ms=now_ms)


def with_double_charge() -> AbstractContextManager[None]:
    """Entries that do not know of each other while entered."""
    return replaced(Account, "fold", _forgetful)
