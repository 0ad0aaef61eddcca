"""The ledger's history as documents, one an entry: a view of the billing topic that may be lost and rebuilt."""

from __future__ import annotations

from typing import Final

from evenflow.events.contracts.billing import CrossingSettled, LedgerEntry
from evenflow.platform.broker.codec import Received
from evenflow.platform.runtime import Runtime
from evenflow.platform.stores.ports import Document
from evenflow.platform.stores.revisions import BATCH_COUNT, batches

LEDGER: Final = "ledger"
CROSSINGS: Final = "crossings"
WAITING_MAX: Final = 20_000


class LedgerViews:
    """Collects what billing published and writes it in batches."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._waiting: dict[str, dict[str, Document]] = {LEDGER: {}, CROSSINGS: {}}
        self.skipped_count = 0

    def apply(self, received: Received) -> None:
        """Take one billing fact. While the store is away at most WAITING_MAX wait; a restart writes the rest."""
        body = received.body
        if isinstance(body, LedgerEntry | CrossingSettled):
            waiting = self._waiting[LEDGER if isinstance(body, LedgerEntry) else CROSSINGS]
            if len(waiting) >= WAITING_MAX:
                self.skipped_count += 1
                return
            waiting[body.entry.replace("/", ":")] = body.model_dump(mode="json")

    async def flush(self) -> None:
        """Write what waits; what could not be written goes on waiting."""
        for collection, waiting in self._waiting.items():
            for batch in batches(dict(waiting), BATCH_COUNT):
                await self._runtime.documents.put_many(collection, batch)
                for name, written in batch.items():
                    if waiting.get(name) is written:
                        del waiting[name]
