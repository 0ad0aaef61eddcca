"""What a measured use costs: exact integers, rounded half to even once per ledger entry.

Devices are priced per hour of a whole device, shares pro rata; a member without devices is priced per core-hour; a
transfer by the list price of what was counted. The policy says which share of that price each kind is charged.
"""

from __future__ import annotations

from dataclasses import dataclass

from evenflow.core.lifecycle.event_types import EntryKind
from evenflow.core.placement.policy import Charges
from evenflow.core.units import MICRO, MILLI, MS_PER_HOUR, divide_half_even


@dataclass(frozen=True, slots=True)
class Use:
    """One measured use: see events.contracts.billing.UsageMeasured."""

    kind: EntryKind
    duration_ms: int = 0
    device_milli: int = 0
    cpu_milli: int = 0
    price_per_hour_micro: int = 0
    cpu_price_per_hour_micro: int = 0
    cost_micro: int = 0


def charge_micro(use: Use, charges: Charges) -> int:
    """The amount of one entry in micro-units of the ledger's currency."""
    share_ppm: int = getattr(charges, use.kind.value)
    if use.kind is EntryKind.TRANSFER:
        return divide_half_even(use.cost_micro * share_ppm, MICRO)
    if use.device_milli:
        held, price = use.device_milli, use.price_per_hour_micro
    else:
        held, price = use.cpu_milli, use.cpu_price_per_hour_micro
    return divide_half_even(held * use.duration_ms * price * share_ppm, MILLI * MS_PER_HOUR * MICRO)


def transfer_cost_micro(*, counted_bytes: int, bytes_per_read: int, price_micro: int) -> int:
    """List price of what was counted, from the price of one whole read of `bytes_per_read`."""
    if not bytes_per_read:
        return 0
    return divide_half_even(counted_bytes * price_micro, bytes_per_read)
