"""INV6 bill: one row per task, attempt, member and kind; nothing negative; work is run time times price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evenflow.core.lifecycle.event_types import EntryKind, EventType
from evenflow.core.units import MILLI, MS_PER_HOUR, divide_half_even
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen

#: Kinds that are stretches of an attempt's time on its node.
_STRETCHES: Final = (EntryKind.WORK, EntryKind.START, EntryKind.STOP, EntryKind.FAILED_START, EntryKind.LOST)
#: Receipts round each stretch to a millisecond.
_ROUNDING_MS: Final = 10


class Bills:
    """Checked at every entry of the ledger; that nothing is missing, at the end."""

    name = "INV6"

    def __init__(self) -> None:
        self._entries: dict[str, None] = {}
        self._stretches: dict[tuple[str, int, int], int] = {}

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """The new entry is the only one of its kind, not negative, and priced by its use."""
        if record.type != EventType.CHARGE_RECORDED:
            return
        body = record.body
        entry = str(body.get("entry", ""))
        if entry in self._entries:
            yield f"ledger entry {entry} was recorded twice"
            return
        self._entries[entry] = None
        for figure in ("amount_micro", "duration_ms", "device_milli_ms", "bytes"):
            if int(body.get(figure, 0)) < 0:
                yield f"ledger entry {entry} has {figure} {body.get(figure)}"
        if body.get("kind") in _STRETCHES:
            yield from self._stretch(model, body)
        if body.get("kind") == EntryKind.WORK:
            yield from self._price(model, body, entry)

    def _stretch(self, model: Observation, body: Mapping[str, Any]) -> Iterator[str]:
        task = model.tasks.get((str(body.get("tenant")), str(body.get("task"))))
        attempt = None if task is None else task.attempts.get(int(body.get("attempt", 0)))
        if task is None or attempt is None:
            yield f"ledger entry {body.get('entry')} is about an attempt that was never given a node"
            return
        key = (task.shown, attempt.number, int(body.get("member", 0)))
        self._stretches[key] = self._stretches.get(key, 0) + int(body.get("duration_ms", 0))
        elapsed_ms = model.now_ms - attempt.assigned_ms
        if self._stretches[key] > elapsed_ms + _ROUNDING_MS:
            yield f"{'/'.join(map(str, key))} is billed {self._stretches[key]} ms of {elapsed_ms} ms that passed"

    @staticmethod
    def _price(model: Observation, body: Mapping[str, Any], entry: str) -> Iterator[str]:
        usage = model.usage_entries.get(entry)
        charge = (model.policy.get("billing") or {}).get("charge") or {}
        if usage is None or "work" in charge:
            return
        if usage.get("device_milli"):
            product = int(usage["device_milli_ms"]) * int(usage.get("price_per_hour_micro", 0))
        else:
            held_ms = int(usage.get("cpu_milli", 0)) * int(usage.get("duration_ms", 0))
            product = held_ms * int(usage.get("cpu_price_per_hour_micro", 0))
        wanted = divide_half_even(product, MILLI * MS_PER_HOUR)
        if int(body.get("amount_micro", 0)) != wanted:
            yield f"ledger entry {entry} says {body.get('amount_micro')}, its use times price is {wanted}"

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """Every attempt that did its work and ended is billed."""
        if not settled:
            return
        for task in model.tasks.values():
            for attempt in task.attempts.values():
                for member in attempt.members.values():
                    entry = f"{task.tenant}/{task.id}/{attempt.number}/{member.number}/work"
                    if attempt.end == "succeeded" and entry not in self._entries:
                        yield f"{entry} was never billed"
