"""The ledger's history as documents, one an entry: a view of the billing topic that may be lost and rebuilt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from evenflow.core.errors import Refused, Unavailable
from evenflow.events.contracts.billing import CrossingSettled, LedgerEntry
from evenflow.platform.broker.codec import Received
from evenflow.platform.runtime import Runtime
from evenflow.platform.stores.ports import Document
from evenflow.platform.stores.views.marks import Mark
from evenflow.platform.stores.views.revisions import BATCH_COUNT, batches

LEDGER: Final = "ledger"
CROSSINGS: Final = "crossings"
#: So many entries may wait for the store; then nothing more is read until some are written.
WAITING_MAX: Final = 20_000
PAUSE_S: Final = 1.0


class LedgerViews:
    """Collects what billing published and writes it in batches. What the store refuses for good is counted.

    `lost` is called when the store lost entries, for the topic to be read again.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.lost: Callable[[], None] = lambda: None
        self._marks = {name: Mark(runtime.documents, runtime.clock, name) for name in (LEDGER, CROSSINGS)}
        self._waiting: dict[str, dict[str, Document]] = {LEDGER: {}, CROSSINGS: {}}
        self._writing = asyncio.Lock()
        self.refused_count = 0

    @property
    def waiting_count(self) -> int:
        """How many entries are read and not yet written."""
        return sum(len(waiting) for waiting in self._waiting.values())

    def apply(self, received: Received) -> None:
        """Take one billing fact."""
        body = received.body
        if isinstance(body, LedgerEntry | CrossingSettled):
            waiting = self._waiting[LEDGER if isinstance(body, LedgerEntry) else CROSSINGS]
            waiting[body.entry.replace("/", ":")] = body.model_dump(mode="json")

    async def make_room(self) -> None:
        """Return when fewer than WAITING_MAX entries wait: whoever reads the topic waits for the store."""
        while self.waiting_count >= WAITING_MAX:
            try:
                await self.flush()
            except Unavailable as error:
                self._runtime.log.warning("view not written", problem=str(error))
                await self._runtime.clock.sleep(PAUSE_S)

    async def flush(self) -> None:
        """Write what waits. Raises Unavailable; what could not be written goes on waiting."""
        async with self._writing:
            for collection, waiting in self._waiting.items():
                if await self._marks[collection].lost():
                    self._runtime.log.warning("view lost by its store", collection=collection)
                    self.lost()
                for batch in batches(dict(waiting), BATCH_COUNT):
                    await self._write(collection, batch)
                    for name, written in batch.items():
                        if waiting.get(name) is written:
                            del waiting[name]

    async def _write(self, collection: str, batch: dict[str, Document]) -> None:
        """Write a batch; when the store refuses it, entry by entry, so that one costs no other."""
        try:
            await self._runtime.documents.put_many(collection, batch)
        except Refused:
            for name, body in batch.items():
                try:
                    await self._runtime.documents.put(collection, name, body)
                except Refused as refusal:
                    self.refused_count += 1
                    self._runtime.log.error("document refused", collection=collection, id=name, problem=str(refusal))
