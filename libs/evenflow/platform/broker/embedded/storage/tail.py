"""The newest records of a partition, in memory, ascending by offset."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenflow.platform.broker.embedded.records import LogRecord

_offset = attrgetter("offset")


class Tail:
    """A list that grows at its end and is cut at its front.

    Cut records leave their places for a while, so that cutting costs one step a record over time; never more of them
    are held than living ones, so that many quiet partitions do not add up.
    """

    __slots__ = ("_head", "_records")

    def __init__(self) -> None:
        self._records: list[LogRecord] = []
        self._head = 0

    def __len__(self) -> int:
        return len(self._records) - self._head

    def extend(self, records: Sequence[LogRecord]) -> None:
        """Add newer records."""
        self._records.extend(records)

    def first_offset(self) -> int | None:
        """The oldest offset held, None when empty."""
        return self._records[self._head].offset if self._head < len(self._records) else None

    def index(self, offset: int) -> int:
        """The place of the first record at or after `offset`."""
        records, head = self._records, self._head
        if head >= len(records):
            return head
        guess = head + offset - records[head].offset
        if head <= guess < len(records) and records[guess].offset == offset:
            return guess
        return bisect_left(records, offset, lo=head, key=_offset)

    def slice(self, start: int, end: int, limit: int) -> list[LogRecord]:
        """At most `limit` records with start ≤ offset < end."""
        first = self.index(start)
        found = self._records[first : first + limit]
        if found and found[-1].offset >= end:
            del found[bisect_left(found, end, key=_offset) :]
        return found

    def cut_before(self, offset: int) -> None:
        """Let go of records below `offset`."""
        self.cut(self.index(offset) - self._head)

    def cut(self, count: int) -> None:
        """Let go of the `count` oldest records."""
        self._head = min(self._head + count, len(self._records))
        if self._head * 2 >= len(self._records):
            del self._records[: self._head]
            self._head = 0

    def remove(self, offsets: set[int]) -> None:
        """Let go of single records, as compaction does."""
        self._records = [r for r in self._records[self._head :] if r.offset not in offsets]
        self._head = 0

    def all(self) -> list[LogRecord]:
        """Every record held."""
        return self._records[self._head :]
