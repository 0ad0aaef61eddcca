"""Replay refusal: a sliding window over an agent session's sequence numbers.

Records of one session reach a reader over several partitions, so numbers come out of order within a window. The same
number with the same bytes is a repeat and changes nothing; with other bytes it is a conflict worth an alert; a number
older than the window is refused.
"""

from __future__ import annotations

from enum import Enum
from hashlib import blake2b
from typing import Final

WINDOW: Final = 1_024


class Freshness(Enum):
    """What a sequence number says of its record."""

    FRESH = "fresh"
    REPEAT = "repeat"
    CONFLICT = "conflict"
    TOO_OLD = "too-old"


class SequenceWindow:
    """The last `WINDOW` sequence numbers of one (node, session)."""

    __slots__ = ("_highest", "_seen")

    def __init__(self) -> None:
        self._highest = 0
        self._seen: dict[int, bytes] = {}

    def judge(self, sequence: int, value: bytes) -> Freshness:
        """Judge and remember one record."""
        if sequence <= self._highest - WINDOW:
            return Freshness.TOO_OLD
        digest = blake2b(value, digest_size=8).digest()
        known = self._seen.get(sequence)
        if known is not None:
            return Freshness.REPEAT if known == digest else Freshness.CONFLICT
        self._seen[sequence] = digest
        if sequence > self._highest:
            self._highest = sequence
            if len(self._seen) > 2 * WINDOW:
                self._seen = {n: d for n, d in self._seen.items() if n > sequence - WINDOW}
        return Freshness.FRESH
