"""Noticing that a store lost what was written to a collection: it was emptied, or put back to an older state.

A document of the collection, the mark, is written again every few seconds, so its version grows for as long as the
store keeps what it was given. Whoever finds a lower version than was there before writes everything anew.
"""

from __future__ import annotations

from typing import Final

from evenflow.core.errors import Conflict
from evenflow.platform.clock import Clock
from evenflow.platform.stores.ports import Documents

#: No row goes by that name: ids of nodes, links, datasets and entries hold no such character.
MARK_ID: Final = "~mark"
#: Writes of the last moments before a backup was taken, after which the store was lost at once, may stay unnoticed.
PERIOD_MS: Final = 5_000


class Mark:
    """The mark of one collection, shared by all copies that write it."""

    def __init__(self, documents: Documents, clock: Clock, collection: str) -> None:
        self._documents = documents
        self._clock = clock
        self._collection = collection
        self._seen = 0
        self._due_ms = 0

    async def lost(self) -> bool:
        """Whether the collection lost something since the last look; looks once in PERIOD_MS. Raises Unavailable."""
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._due_ms:
            return False
        stored = await self._documents.get(self._collection, MARK_ID)
        found = 0 if stored is None else stored.version
        lost = found < self._seen
        try:
            self._seen = await self._documents.put(self._collection, MARK_ID, {}, expect=found)
        except Conflict:  # another copy was quicker
            self._seen = found
        self._due_ms = now_ms + PERIOD_MS
        return lost
