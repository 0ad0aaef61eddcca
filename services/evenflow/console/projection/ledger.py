"""The ledger as billing states it: lines by queue and task, sums, and whether each queue's chain holds."""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any, Final

from evenflow.core.ledger.chain import GENESIS, line_hash
from evenflow.core.lifecycle.event_types import EntryKind
from evenflow.events.contracts.billing import BudgetChanged, CrossingSettled, LedgerEntry, QuotaReported
from evenflow.platform.broker.codec import Received

SETTLED_MAX: Final = 2_000


@dataclass(slots=True)
class Sums:
    """Totals of a set of lines."""

    line_count: int = 0
    amount_micro: int = 0
    device_milli_ms: int = 0
    bytes: int = 0
    by_kind: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, kind: str, amount_micro: int, device_milli_ms: int, count_bytes: int) -> None:
        """Count a line."""
        self.line_count += 1
        self.amount_micro += amount_micro
        self.device_milli_ms += device_milli_ms
        self.bytes += count_bytes
        part = self.by_kind.setdefault(kind, {"line_count": 0, "amount_micro": 0, "device_milli_ms": 0, "bytes": 0})
        part["line_count"] += 1
        part["amount_micro"] += amount_micro
        part["device_milli_ms"] += device_milli_ms
        part["bytes"] += count_bytes

    def row(self) -> dict[str, Any]:
        """The totals by name, kinds in order."""
        return {
            "line_count": self.line_count,
            "amount_micro": self.amount_micro,
            "device_milli_ms": self.device_milli_ms,
            "bytes": self.bytes,
            "by_kind": {kind: self.by_kind[kind] for kind in sorted(self.by_kind)},
        }


@dataclass(slots=True)
class QueueBook:
    """One queue's chain: the last line's number and hash, its sums, and the first line that breaks it."""

    queue: str
    currency: str = ""
    number: int = 0
    first_number: int = 0
    hash: str = ""
    balance_micro: int = 0
    broken_at: int = 0
    broken_why: str = ""
    sums: Sums = field(default_factory=Sums)
    budget_micro: int = 0
    used_devices_milli: int = 0
    used_cpu_milli: int = 0

    def row(self) -> dict[str, Any]:
        """The book as the API gives it."""
        return {
            "queue": self.queue,
            "currency": self.currency,
            "number": self.number,
            "balance_micro": self.balance_micro,
            "hash": self.hash,
            "verified": self.broken_at == 0,
            "verified_from": self.first_number,
            "broken_at": self.broken_at,
            "broken_why": self.broken_why,
            "budget_micro": self.budget_micro,
            **self.sums.row(),
        }


@dataclass(frozen=True, slots=True)
class Line:
    """One line, kept as its bytes."""

    queue: str
    task: str
    kind: str
    number: int
    value: bytes
    at_ms: int

    def row(self) -> dict[str, Any]:
        """The line's fields."""
        return {**json.loads(self.value), "recorded_ms": self.at_ms}


class Ledger:
    """Books by queue, and the newest lines."""

    def __init__(self, line_max: int) -> None:
        self._line_max = line_max
        self.books: dict[str, QueueBook] = {}
        self.settled: deque[dict[str, Any]] = deque(maxlen=SETTLED_MAX)
        self._lines: deque[Line] = deque()
        self._of_task: OrderedDict[str, tuple[Sums, list[Line]]] = OrderedDict()
        self.dropped_count = 0

    # folding ----------------------------------------------------------------------------------------------------------

    def apply(self, received: Received) -> None:
        """One of billing's facts."""
        body = received.body
        if isinstance(body, LedgerEntry):
            self._line(body, received)
        elif isinstance(body, CrossingSettled):
            self.settled.append({**body.model_dump(mode="json"), "at_ms": received.timestamp_ms})
        elif isinstance(body, BudgetChanged):
            self._book(body.queue).budget_micro = body.budget_micro
        elif isinstance(body, QuotaReported):
            book = self._book(body.queue)
            book.used_devices_milli, book.used_cpu_milli = body.used_devices_milli, body.used_cpu_milli

    def _book(self, queue: str) -> QueueBook:
        return self.books.setdefault(queue, QueueBook(queue))

    def _line(self, body: LedgerEntry, received: Received) -> None:
        book = self._book(body.queue)
        if not self._follows(book, body, received.value):
            return
        kind = str(EntryKind(body.kind))
        book.currency, book.number, book.hash, book.balance_micro = (
            body.currency,
            body.number,
            body.hash,
            body.balance_micro,
        )
        line = Line(body.queue, f"{body.tenant}/{body.task}", kind, body.number, received.value, received.timestamp_ms)
        book.sums.add(kind, body.amount_micro, body.device_milli_ms, body.bytes)
        sums, lines = self._of_task.setdefault(line.task, (Sums(), []))
        sums.add(kind, body.amount_micro, body.device_milli_ms, body.bytes)
        lines.append(line)
        self._lines.append(line)
        if len(self._lines) > self._line_max:
            old = self._lines.popleft()
            self.dropped_count += 1
            kept = self._of_task.get(old.task)
            if kept is not None and kept[1] and kept[1][0] is old:
                del kept[1][0]
        while len(self._of_task) > self._line_max:
            self._of_task.popitem(last=False)

    def _follows(self, book: QueueBook, body: LedgerEntry, value: bytes) -> bool:
        """Check a line against the chain. False for a line that was read already."""
        if book.number and body.number <= book.number:
            if body.number == book.number and body.hash != book.hash:
                _break(book, body.number, "two lines carry this number")
            return False
        if book.number == 0:
            book.first_number = body.number
        elif body.number != book.number + 1:
            _break(book, body.number, f"line {book.number + 1} is missing")
        elif body.previous != book.hash:
            _break(book, body.number, "it does not name the hash of the line before it")
        elif body.balance_micro != book.balance_micro + body.amount_micro:
            _break(book, body.number, "its balance is not the one before it plus its amount")
        if body.number == 1 and body.previous != GENESIS:
            _break(book, 1, "the first line must follow nothing")
        if line_hash(body.previous, json.loads(value)) != body.hash:
            _break(book, body.number, "its hash is not that of its fields")
        return True

    # reading ----------------------------------------------------------------------------------------------------------

    def cost_micro(self, key: str) -> int:
        """What a task cost so far."""
        kept = self._of_task.get(key)
        return kept[0].amount_micro if kept is not None else 0

    def of_task(self, key: str) -> tuple[Sums, list[Line]]:
        """A task's sums and its lines still in memory."""
        return self._of_task.get(key, (Sums(), []))

    def lines(self, queue: str, limit: int) -> list[Line]:
        """The newest lines, of one queue or of all, newest first."""
        found: list[Line] = []
        for line in reversed(self._lines):
            if not queue or line.queue == queue:
                found.append(line)
                if len(found) >= limit:
                    break
        return found


def _break(book: QueueBook, number: int, why: str) -> None:
    if book.broken_at == 0:
        book.broken_at, book.broken_why = number, why
