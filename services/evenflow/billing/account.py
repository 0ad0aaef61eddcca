"""One partition of the ledger as plain state: fold usage into entries, fold the own state rows back into state.

The same `apply` serves restoring and going on: a batch is folded into rows and facts, written in one transaction, and
only then applied to memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenflow.core.ledger.chain import GENESIS, line_hash
from evenflow.core.lifecycle.event_types import EntryKind
from evenflow.core.placement.policy import Policy
from evenflow.core.pricing.charge import Use, charge_micro
from evenflow.events.contract import Contract
from evenflow.events.contracts.billing import ChargeRecorded, CrossingSettled, UsageMeasured
from evenflow.events.contracts.placement import CrossingTerms

STATE_VERSION = 1
#: Entries forgotten with one batch at most.
FORGOTTEN_MAX = 1_000
Row = dict[str, Any]


@dataclass(slots=True)
class Folded:
    """The result of a batch: facts in order, rows by key (None = forget), problems by the index of what is refused.

    `causes` holds, for each fact, the index of the use that it follows from.
    """

    facts: list[Contract] = field(default_factory=list)
    causes: list[int] = field(default_factory=list)
    rows: dict[str, Row | None] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)


class Account:
    """State of the queues of one usage partition.

    Rows: `queue/<queue>` {number, balance_micro, hash}; `entry/<entry>` {at_ms} for every entry made;
    `crossing/<attempt>` what is known of a crossing that is not settled yet; `offset` {next}.
    """

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self._entries: deque[tuple[int, str]] = deque()

    def apply(self, key: str, row: Row | None, now_ms: int = 0) -> None:
        """Take one row. An entry without its time, as older builds wrote it, counts as made `now_ms`."""
        if row is None:
            self.rows.pop(key, None)
            return
        if key.startswith("entry/") and key not in self.rows:
            row = row or {"at_ms": now_ms}
            self._entries.append((int(row["at_ms"]), key))
        self.rows[key] = row

    def forget(self, made_before_ms: int, out: Folded) -> None:
        """Let the oldest entries go, a bounded number at a time: nothing can bring their use again."""
        for _ in range(min(FORGOTTEN_MAX, len(self._entries))):
            at_ms, key = self._entries[0]
            if at_ms >= made_before_ms:
                break
            self._entries.popleft()
            if key in self.rows and key not in out.rows:
                out.rows[key] = None

    @property
    def next_offset(self) -> int | None:
        """Where to go on reading usage; None on a new ledger."""
        row = self.rows.get("offset")
        return int(row["next"]) if row is not None else None

    def fold(
        self, usage: Sequence[UsageMeasured], policy: Policy, policy_hash: str, *, next_offset: int, now_ms: int
    ) -> Folded:
        """Entries for a batch of usage. Usage whose entry exists already is a repeat and changes nothing.

        Usage whose figures lead beyond what an entry or a balance can hold changes nothing either: it is in `refused`.
        """
        out = Folded()
        for index, one in enumerate(usage):
            step = Folded()

            def row_of(key: str, step: Folded = step) -> Row | None:
                return next((rows[key] for rows in (step.rows, out.rows, self.rows) if key in rows), None)

            if row_of(f"entry/{one.entry}") is not None:
                continue
            try:
                _enter(one, policy, policy_hash, row_of, step, now_ms)
            except (ValueError, ArithmeticError) as error:
                out.refused[index] = " ".join(str(error).split())
            else:
                out.facts += step.facts
                out.causes += [index] * len(step.facts)
                out.rows |= step.rows
        out.rows["offset"] = {"next": next_offset}
        return out


def checked(key: str, row: Row) -> Row:
    """A row as it was written here. Raises ValueError for one that no ledger wrote: money is not guessed."""
    wanted: dict[str, type] = {}
    if key == "offset":
        wanted = {"next": int}
    elif key.startswith("entry/") and row:
        wanted = {"at_ms": int}
    elif key.startswith("queue/"):
        wanted = {"number": int, "balance_micro": int, "hash": str}
    for name, kind in wanted.items():
        if type(row.get(name)) is not kind:
            raise ValueError(f"{name} is {row.get(name)!r:.80}")
    return row


def _enter(
    one: UsageMeasured,
    policy: Policy,
    policy_hash: str,
    row_of: Callable[[str], Row | None],
    out: Folded,
    now_ms: int,
) -> None:
    """One use of the pool: its entry, its queue's new balance, and what it says of a crossing."""
    out.rows[f"entry/{one.entry}"] = {"at_ms": now_ms}
    entry = _charge(one, row_of(f"queue/{one.queue}"), policy, policy_hash, now_ms=now_ms)
    out.facts.append(entry)
    out.rows[f"queue/{one.queue}"] = {
        "number": entry.number,
        "balance_micro": entry.balance_micro,
        "hash": entry.hash,
    }
    _settle(one, entry.amount_micro, row_of, out)


def _charge(one: UsageMeasured, last: Row | None, policy: Policy, policy_hash: str, *, now_ms: int) -> ChargeRecorded:
    use = Use(
        kind=one.kind,
        duration_ms=one.duration_ms,
        device_milli=one.device_milli,
        cpu_milli=one.cpu_milli,
        price_per_hour_micro=one.price_per_hour_micro,
        cpu_price_per_hour_micro=one.cpu_price_per_hour_micro,
        cost_micro=one.cost_micro,
    )
    amount = charge_micro(use, policy.billing.charge_ppm)
    previous = str(last["hash"]) if last else GENESIS
    fields: dict[str, Any] = {
        "entry": one.entry,
        "queue": one.queue,
        "number": (int(last["number"]) if last else 0) + 1,
        "kind": str(one.kind),
        "tenant": one.tenant,
        "task": one.task,
        "attempt": one.attempt,
        "member": one.member,
        "node": one.node,
        "site": one.site,
        "currency": policy.billing.currency,
        "amount_micro": amount,
        "balance_micro": (int(last["balance_micro"]) if last else 0) + amount,
        "duration_ms": one.duration_ms,
        "device_milli_ms": one.device_milli_ms,
        "bytes": one.bytes,
        "at_ms": now_ms,
        "rate_version": policy_hash,
        "note": "",
    }
    return ChargeRecorded(**fields, previous=previous, hash=line_hash(previous, fields))


def _settle(one: UsageMeasured, amount_micro: int, row_of: Callable[[str], Row | None], out: Folded) -> None:
    """Bring a crossing's two halves together, in whatever order they come: its transfers, and the work it was for."""
    key = f"crossing/{one.tenant}/{one.task}/{one.attempt}"
    known = row_of(key) or {}
    if one.kind is EntryKind.TRANSFER:
        known = known | {
            "bytes": known.get("bytes", 0) + one.bytes,
            "took_ms": max(known.get("took_ms", 0), one.duration_ms),
            "transfer_micro": known.get("transfer_micro", 0) + amount_micro,
        }
    elif one.crossing is not None and one.crossing.taken:
        known = known | {
            "predicted": one.crossing.model_dump(mode="json"),
            "wait_ms": one.crossing_wait_ms,
            "run_ms": one.duration_ms,
            "work_micro": amount_micro,
        }
    else:
        return
    if "predicted" not in known or "bytes" not in known:
        out.rows[key] = known
        return
    out.rows[key] = None
    predicted = CrossingTerms.model_validate(known["predicted"])
    spent_ms = max(known["took_ms"], 0) + known["run_ms"]
    cost = known["work_micro"] + known["transfer_micro"]
    out.facts.append(
        CrossingSettled(
            entry=f"{one.tenant}/{one.task}/{one.attempt}/crossing",
            queue=one.queue,
            tenant=one.tenant,
            task=one.task,
            attempt=one.attempt,
            predicted=predicted,
            bytes=known["bytes"],
            transfer_in_ms=known["took_ms"],
            wait_ms=known["wait_ms"],
            run_ms=known["run_ms"],
            cost_micro=cost,
            gain_ms=predicted.stay_wait_ms + predicted.stay_run_ms - spent_ms,
            gain_micro=predicted.stay_cost_micro - cost,
        )
    )
