"""A collection that follows rows by their revision: what is newer than last written is written, in bounded batches.

The store may refuse a document for good; it is then tried alone from flush to flush, so that the others never wait for
it. Losing the collection costs nothing: whoever holds the rows notices and writes them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, Protocol, TypeVar

from evenflow.core.errors import Refused
from evenflow.platform.clock import Clock
from evenflow.platform.stores.ports import Document, Documents
from evenflow.platform.stores.views.marks import Mark

BATCH_COUNT: Final = 1_000

T = TypeVar("T")


class Row(Protocol):
    """A contract's body with a revision."""

    @property
    def revision(self) -> int: ...
    def model_dump(self, *, mode: str) -> Document: ...


class RevisionView:
    """One collection of documents. `log` is told once of each revision that the store refuses."""

    def __init__(self, documents: Documents, clock: Clock, log: Any, collection: str) -> None:
        self._documents = documents
        self._mark = Mark(documents, clock, collection)
        self._log = log
        self._collection = collection
        self._written: dict[str, int] = {}
        self._refused: dict[str, int] = {}

    async def flush(self, rows: Mapping[str, Row]) -> None:
        """Write the rows that changed, all when the store lost some. Raises Unavailable; the next flush goes on."""
        if await self._mark.lost():
            self._log.warning("view lost by its store", collection=self._collection, rows=len(rows))
            self._written.clear()
        changed = {name: row for name, row in rows.items() if self._written.get(name) != row.revision}
        alone = {name: row for name, row in changed.items() if name in self._refused}
        together = {name: row for name, row in changed.items() if name not in self._refused}
        for batch in batches(together, BATCH_COUNT):
            try:
                await self._write(batch)
            except Refused:
                await self._one_by_one(batch)
        await self._one_by_one(alone)

    async def _write(self, batch: Mapping[str, Row]) -> None:
        documents = {name: row.model_dump(mode="json") for name, row in batch.items()}
        await self._documents.put_many(self._collection, documents)
        for name, row in batch.items():
            self._written[name] = row.revision
            self._refused.pop(name, None)

    async def _one_by_one(self, batch: Mapping[str, Row]) -> None:
        for name, row in batch.items():
            try:
                await self._write({name: row})
            except Refused as refusal:
                if self._refused.get(name) != row.revision:
                    self._refused[name] = row.revision
                    self._log.error("document refused", collection=self._collection, id=name, problem=str(refusal))


def batches(rows: Mapping[str, T], count: int) -> Iterator[dict[str, T]]:
    """The rows in order, at most `count` at a time."""
    left = iter(rows.items())
    while batch := dict(islice(left, count)):
        yield batch
