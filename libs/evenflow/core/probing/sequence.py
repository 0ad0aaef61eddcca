"""Replay refusal: a sliding window over the sequence numbers of one session, as one reader hears them.

The same number with the same bytes is a repeat and changes nothing; with other bytes it is a conflict worth an alert; a
number below everything that a full window still knows is too old to tell, and refused. An agent's numbers only grow, so
a reader of one partition hears them in order; numbers of several partitions belong in a window each.
"""

from __future__ import annotations

from enum import StrEnum
from hashlib import blake2b
from typing import Final

WINDOW: Final = 1_024


class Freshness(StrEnum):
    """What a sequence number says of its record."""

    FRESH = "fresh"
    REPEAT = "repeat"
    CONFLICT = "conflict"
    TOO_OLD = "too-old"


class SequenceWindow:
    """The last `count` sequence numbers heard, with a digest of what came under each."""

    __slots__ = ("_count", "_seen")

    def __init__(self, count: int = WINDOW) -> None:
        self._count = count
        self._seen: dict[int, bytes] = {}

    def judge(self, sequence: int, value: bytes) -> Freshness:
        """Judge one record, and remember it when it is fresh."""
        seen = self._seen
        digest = blake2b(value, digest_size=8).digest()
        known = seen.get(sequence)
        if known is not None:
            return Freshness.REPEAT if known == digest else Freshness.CONFLICT
        if len(seen) >= self._count:
            oldest = next(iter(seen))
            if sequence < oldest:
                return Freshness.TOO_OLD
            del seen[oldest]
        seen[sequence] = digest
        return Freshness.FRESH
