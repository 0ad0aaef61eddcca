"""The scenario verb `deliver`: duplicates, drops, holds and reorders between a sender and the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from evenflow.platform.broker.embedded.records import LogRecord
from evenflow.sim.stage import DeliveryRule

#: Names in `match` that stand for a header of the envelope.
_HEADERS: Final[dict[str, str]] = {"type": "ce_type", "id": "ce_id", "source": "ce_source", "subject": "ce_subject"}
Later = Callable[[int, Callable[[], None]], None]
Append = Callable[[LogRecord], None]


@dataclass(slots=True)
class _Active:
    """A rule at work: how many records it may still touch, and those that it keeps back."""

    rule: DeliveryRule
    left: int | None
    kept: list[LogRecord] = field(default_factory=list)


class Interception:
    """The hook between senders and the log. `later` runs something of the world's after milliseconds."""

    def __init__(self, now_ms: Callable[[], int], later: Later, append: Append) -> None:
        self._now_ms = now_ms
        self._later = later
        self._append = append
        self._active: list[_Active] = []
        #: How often each action was taken.
        self.taken: dict[str, int] = {}

    def add(self, rule: DeliveryRule) -> None:
        """Start a rule; it ends by count, by time or by `end_all`."""
        active = _Active(rule, rule.times)
        self._active.append(active)
        if rule.ends_ms is not None:
            self._later(rule.ends_ms - self._now_ms(), lambda: self._end(active))

    def end_all(self) -> None:
        """End every rule and let go of what is kept back."""
        for active in list(self._active):
            self._end(active)

    def __call__(self, records: list[LogRecord]) -> list[LogRecord]:
        """The log's hook: records on their way in, records to append out."""
        if not self._active:
            return records
        passed: list[LogRecord] = []
        for record in records:
            active = next((entry for entry in self._active if entry.left != 0 and matches(entry.rule, record)), None)
            passed.extend([record] if active is None else self._treat(active, record))
        return passed

    def _treat(self, active: _Active, record: LogRecord) -> list[LogRecord]:
        rule = active.rule
        if active.left is not None:
            active.left -= 1
        self.taken[rule.action] = self.taken.get(rule.action, 0) + 1
        match rule.action:
            case "duplicate":
                copies = [record.detached() for _ in range(rule.copies)]
                if not rule.after_ms:
                    return [record, *copies]
                for copy in copies:
                    self._later(rule.after_ms, lambda copy=copy: self._append(copy))  # type: ignore[misc]  # bound per turn
                return [record]
            case "drop":
                return []
            case "hold":
                active.kept.append(record.detached())
                if rule.after_ms is not None:
                    self._later(rule.after_ms, lambda: self._release(active, 1))
                return []
            case _:
                active.kept.append(record.detached())
                if active.left == 0:
                    active.kept.reverse()
                    self._release(active, len(active.kept))
                return []

    def _release(self, active: _Active, count: int) -> None:
        released, active.kept = active.kept[:count], active.kept[count:]
        for record in released:
            self._later(0, lambda record=record: self._append(record))  # type: ignore[misc]  # bound per turn

    def _end(self, active: _Active) -> None:
        if active in self._active:
            self._active.remove(active)
            if active.rule.action == "reorder":
                active.kept.reverse()
            self._release(active, len(active.kept))


def matches(rule: DeliveryRule, record: LogRecord) -> bool:
    """Whether a record is one that the rule is about: its topic, headers and top-level fields."""
    if record.topic != rule.topic:
        return False
    if not rule.match:
        return True
    headers = {name: value.decode("utf-8", "replace") for name, value in record.headers if value is not None}
    body = _body(record)
    for name, wanted in rule.match.items():
        header = headers.get(_HEADERS.get(name, name))
        value = body.get("id") if name == "task" and "task" not in body else body.get(name)
        if header != str(wanted) and value != wanted:
            return False
    return True


def _body(record: LogRecord) -> Mapping[str, Any]:
    try:
        body = json.loads(record.value or b"")
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, Mapping) else {}
