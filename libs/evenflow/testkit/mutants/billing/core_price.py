"""Breaks the price of cores: a member without devices costs nothing."""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.billing import account
from evenflow.core.lifecycle.event_types import EntryKind
from evenflow.core.placement.policy import Charges
from evenflow.core.pricing.charge import Use, charge_micro
from evenflow.testkit.mutants.replacing import replaced


def _devices_alone(use: Use, charges: Charges) -> int:
    if use.kind is not EntryKind.TRANSFER and not use.device_milli:
        return 0
    return charge_micro(use, charges)


def without_core_price() -> AbstractContextManager[None]:
    """Cores for nothing while entered."""
    return replaced(account, "charge_micro", _devices_alone)
