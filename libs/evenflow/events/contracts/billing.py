"""What billing states: usage re-keyed by queue, then the ledger. Only billing states charges."""

from __future__ import annotations

from typing import ClassVar

from evenflow.core.lifecycle.event_types import EntryKind, EventType
from evenflow.events.contract import Contract, Count, Id, Signed, Text
from evenflow.events.contracts.placement import CrossingTerms


class UsageMeasured(Contract):
    """What one member of one attempt used, of one kind; `entry` = tenant/task/attempt/member/kind and is unique.

    `device_milli_ms` = milli-devices × milliseconds. Prices are per hour; `cost_micro` is the list price of a transfer.
    `crossing` comes with the work of a crossing's first member, `crossing_wait_ms` is how long that attempt waited.
    """

    TYPE: ClassVar = EventType.USAGE_MEASURED
    entry: Text
    kind: EntryKind
    tenant: Id
    task: Id
    attempt: Count
    member: Count
    queue: Text
    node: Text
    site: Text
    duration_ms: Count = 0
    device_milli: Count = 0
    cpu_milli: Count = 0
    device_milli_ms: Count = 0
    bytes: Count = 0
    price_per_hour_micro: Count = 0
    cpu_price_per_hour_micro: Count = 0
    cost_micro: Count = 0
    at_ms: Count
    crossing: CrossingTerms | None = None
    crossing_wait_ms: Count = 0


class LedgerEntry(Contract):
    """One line of a queue's ledger. `previous` and `hash` chain the lines of a queue; `balance_micro` sums them.

    hash = SHA-256 over the previous hash and the canonical JSON of every other field.
    """

    entry: Text
    queue: Text
    number: Count
    kind: EntryKind
    tenant: Id
    task: Id
    attempt: Count
    member: Count
    node: Text
    site: Text
    currency: Text
    amount_micro: Signed
    balance_micro: Signed
    duration_ms: Count = 0
    device_milli_ms: Count = 0
    bytes: Count = 0
    at_ms: Count
    rate_version: Text = ""
    note: Text = ""
    previous: Text
    hash: Text


class ChargeRecorded(LedgerEntry):
    """A charge."""

    TYPE: ClassVar = EventType.CHARGE_RECORDED


class ChargeCorrected(LedgerEntry):
    """A correction of an earlier entry, named in `note`."""

    TYPE: ClassVar = EventType.CHARGE_CORRECTED


class CrossingSettled(Contract):
    """A crossing's prediction beside its facts. Keyed by queue."""

    TYPE: ClassVar = EventType.CROSSING_SETTLED
    entry: Text
    queue: Text
    tenant: Id
    task: Id
    attempt: Count
    predicted: CrossingTerms
    bytes: Count
    transfer_in_ms: Count
    wait_ms: Count
    run_ms: Count
    cost_micro: Count
    gain_ms: Signed
    gain_micro: Signed


class BudgetChanged(Contract):
    """A queue's spending against its budget."""

    TYPE: ClassVar = EventType.BUDGET_CHANGED
    queue: Text
    spent_micro: Signed
    budget_micro: Count


class QuotaReported(Contract):
    """A queue's use against its limits at a moment."""

    TYPE: ClassVar = EventType.QUOTA_REPORTED
    queue: Text
    at_ms: Count
    used_devices_milli: Count
    used_cpu_milli: Count
