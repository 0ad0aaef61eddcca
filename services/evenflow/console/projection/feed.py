"""The newest events of all streams as a numbered tail: readers hold one number, and share what is encoded once.

A reader that was away longer than the tail reaches back, or that comes from before a restart, is told to start anew.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from evenflow.console.projection.papers import HIDDEN
from evenflow.events.contracts.console import DocumentPublished
from evenflow.events.contracts.tasks import TaskSubmitted
from evenflow.platform.broker.codec import Received


@dataclass(slots=True)
class Event:
    """One record of the tail. `row` is what readers get, made when the first one asks."""

    number: int
    received: Received
    encoded: dict[str, Any] | None = field(default=None)

    def row(self, epoch: str) -> dict[str, Any]:
        """The record as JSON."""
        if self.encoded is None:
            self.encoded = event_row(self.received, f"{epoch}-{self.number}")
        return self.encoded


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events a reader wants; an empty text means any. With `tenant` only those of its tasks."""

    topic: str = ""
    type: str = ""
    task: str = ""
    node: str = ""
    queue: str = ""
    tenant: str = ""

    def fits(self, received: Received) -> bool:
        """Whether an event is wanted. `type` may end in `*`; `task` is a task's id or tenant/task."""
        if self.topic and received.topic != self.topic:
            return False
        if self.type and not _matches(self.type, received.envelope.type):
            return False
        body: Any = received.body
        if self.tenant and self.tenant != _task_key(received, body).partition("/")[0]:
            return False
        if self.task and self.task not in (str(getattr(body, "task", "")), _task_key(received, body)):
            return False
        if self.node and self.node not in (str(getattr(body, "node", "")), _place_node(body)):
            return False
        return not self.queue or self.queue == str(getattr(body, "queue", ""))


def _matches(pattern: str, text: str) -> bool:
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern


def _task_key(received: Received, body: Any) -> str:
    if isinstance(body, TaskSubmitted):
        return received.key
    return f"{getattr(body, 'tenant', '')}/{getattr(body, 'task', '')}"


def _place_node(body: Any) -> str:
    place = getattr(body, "place", None)
    return str(place.node) if place is not None else ""


def event_row(received: Received, cursor: str) -> dict[str, Any]:
    """A record with its envelope and body, as the API and the command line show it."""
    envelope = received.envelope
    return {
        "cursor": cursor,
        "topic": received.topic,
        "partition": received.partition,
        "offset": received.offset,
        "time_ms": received.timestamp_ms,
        "id": envelope.id,
        "type": envelope.type,
        "source": envelope.source,
        "key": received.key,
        "cause": envelope.causation_id,
        "correlation": envelope.correlation_id,
        "body": body_of(received),
    }


def body_of(received: Received) -> Any:
    """The body as JSON values; a tombstone is null, an unreadable submission its text. Who has access is left out."""
    body = received.body
    if isinstance(body, TaskSubmitted):
        try:
            return json.loads(body.raw)
        except (ValueError, RecursionError):
            return body.raw.decode("utf-8", "replace")
    if isinstance(body, DocumentPublished) and body.kind == HIDDEN:
        return body.model_dump(mode="json", exclude={"document"})
    return None if body is None else body.model_dump(mode="json")


class Feed:
    """The tail and who waits for it."""

    def __init__(self, epoch: str, limit: int) -> None:
        self.epoch = epoch
        self.number = 0
        self.closed = False
        self.reader_count = 0
        self._events: deque[Event] = deque(maxlen=limit)
        self._tick: asyncio.Event | None = None

    def put(self, received: Received) -> None:
        """Append and wake the readers."""
        self.number += 1
        self._events.append(Event(self.number, received))
        self.wake()

    def wake(self) -> None:
        """Let everyone who waits look again."""
        if self._tick is not None:
            self._tick.set()
            self._tick = None

    def close(self) -> None:
        """End every open stream; called before the server stops."""
        self.closed = True
        self.wake()

    def tick(self) -> asyncio.Event:
        """Set at the next change. Take it before looking, wait for it after."""
        if self._tick is None:
            self._tick = asyncio.Event()
        return self._tick

    @property
    def cursor(self) -> str:
        """The present end."""
        return f"{self.epoch}-{self.number}"

    def position(self, cursor: str) -> int | None:
        """The number behind a cursor; None when it is from another life or no longer reached back to."""
        epoch, _, number = cursor.rpartition("-")
        if epoch != self.epoch or not number.isascii() or not number.isdigit() or len(number) > 18:
            return None
        oldest = self._events[0].number if self._events else self.number + 1
        position = int(number)
        return position if oldest - 1 <= position <= self.number else None

    def after(self, position: int, wanted: Wanted, limit: int) -> tuple[int, list[dict[str, Any]]]:
        """Up to `limit` wanted events behind a position, oldest first, and the position reached."""
        if not self._events:
            return position, []
        start = max(0, position + 1 - self._events[0].number)
        rows: list[dict[str, Any]] = []
        for event in islice(self._events, start, None):
            position = event.number
            if wanted.fits(event.received):
                rows.append(event.row(self.epoch))
                if len(rows) >= limit:
                    break
        return position, rows

    def newest(self, wanted: Wanted, limit: int) -> list[dict[str, Any]]:
        """The newest wanted events, oldest first."""
        rows: list[dict[str, Any]] = []
        for event in reversed(self._events):
            if wanted.fits(event.received):
                rows.append(event.row(self.epoch))
                if len(rows) >= limit:
                    break
        return rows[::-1]
