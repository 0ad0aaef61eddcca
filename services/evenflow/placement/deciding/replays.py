"""Refusing replayed receipts: the last sequence numbers of each node's session.

Same number and same bytes again is a repetition without effect. Same number with other bytes, or a number below the
window, is not the node speaking.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from enum import Enum
from typing import Final

SESSIONS_MAX: Final = 50_000


class Hearing(Enum):
    """What a stamped record is, by its sequence number."""

    NEW = "new"
    REPEATED = "repeated"
    FORGED = "forged"
    TOO_OLD = "too-old"


class Replays:
    """Windows of sequence numbers, in memory. A process that just took over starts with empty ones."""

    def __init__(self, window_count: int) -> None:
        self._window = window_count
        self._sessions: OrderedDict[tuple[str, str], dict[int, bytes]] = OrderedDict()

    def hear(self, node: str, session: str, sequence: int, value: bytes) -> Hearing:
        """Judge a record and remember it when it is new."""
        key = (node, session)
        seen = self._sessions.get(key)
        if seen is None:
            seen = self._sessions[key] = {}
            if len(self._sessions) > SESSIONS_MAX:
                self._sessions.popitem(last=False)
        else:
            self._sessions.move_to_end(key)
        digest = hashlib.blake2b(value, digest_size=16).digest()
        before = seen.get(sequence)
        if before is not None:
            return Hearing.REPEATED if before == digest else Hearing.FORGED
        if len(seen) >= self._window:
            oldest = min(seen)
            if sequence < oldest:
                return Hearing.TOO_OLD
            del seen[oldest]
        seen[sequence] = digest
        return Hearing.NEW
