"""The course of one task: every event of it in order, each with its cause.

Entries are small; bodies stay on the log and are read from there when asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from evenflow.core.lifecycle.event_types import EventType
from evenflow.platform.broker.codec import Received

#: How many of the first entries survive when a course is cut.
FIRST_KEPT: Final = 50
_REPEATED: Final = EventType.ATTEMPT_PROGRESSED


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of a task. `attempt` and `member` are -1 where the event speaks of none."""

    time_ms: int
    type: str
    id: str
    cause: str
    topic: str
    partition: int
    offset: int
    attempt: int = -1
    member: int = -1
    node: str = ""

    def row(self) -> dict[str, Any]:
        """The entry as the API gives it."""
        shown: dict[str, Any] = {
            "time_ms": self.time_ms,
            "type": self.type,
            "id": self.id,
            "cause": self.cause,
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
        }
        if self.attempt >= 0:
            shown["attempt"] = self.attempt
        if self.member >= 0:
            shown["member"] = self.member
        if self.node:
            shown["node"] = self.node
        return shown


def entry_of(received: Received) -> Entry:
    """What a course keeps of a record."""
    body: Any = received.body
    place = getattr(body, "place", None)
    attempt = getattr(body, "attempt", None)
    member = getattr(body, "member", None)
    if attempt is None and getattr(body, "use", None) is not None:
        attempt = body.use.attempt
    if member is None and place is not None:
        member = place.member
    return Entry(
        time_ms=received.timestamp_ms,
        type=str(received.envelope.type),
        id=received.envelope.id,
        cause=received.envelope.causation_id,
        topic=received.topic,
        partition=received.partition,
        offset=received.offset,
        attempt=-1 if attempt is None else attempt,
        member=-1 if member is None else member,
        node=str(getattr(body, "node", "") or (place.node if place is not None else "")),
    )


class Course:
    """Entries of one task by their place on the log, at most `limit`; of progress only the newest report is kept."""

    __slots__ = ("_entries", "dropped_count")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self.dropped_count = 0

    def add(self, entry: Entry, limit: int) -> None:
        """Take an entry; a progress report replaces the one before it of the same member."""
        entries = self._entries
        if entry.type == _REPEATED:
            for index in range(len(entries) - 1, max(-1, len(entries) - 20), -1):
                old = entries[index]
                if old.type == _REPEATED and (old.attempt, old.member) == (entry.attempt, entry.member):
                    del entries[index]
                    self.dropped_count += 1
                    break
        entries.append(entry)
        if len(entries) > limit:
            del entries[min(FIRST_KEPT, limit // 2)]
            self.dropped_count += 1

    def ordered(self) -> list[Entry]:
        """By time, and each effect after its cause."""
        return in_order(self._entries)


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Sort by the log's time, a cause always before what follows from it; a fact written twice is listed once."""
    by_time = sorted(entries, key=lambda entry: (entry.time_ms, entry.topic, entry.partition, entry.offset))
    known = {entry.id: entry for entry in reversed(by_time)}
    done: dict[str, None] = {}
    result: list[Entry] = []
    for entry in by_time:
        chain: dict[str, Entry] = {}
        link: Entry | None = entry
        while link is not None and link.id not in done and link.id not in chain:
            chain[link.id] = link
            link = known.get(link.cause)
        for one in reversed(chain.values()):
            done[one.id] = None
            result.append(one)
    return result
