"""Inventory's views outside the log: node and dataset documents, live-load frames. Losing them costs nothing."""

from __future__ import annotations

from typing import Final

from evenflow.inventory.load import LiveRows
from evenflow.inventory.registry import Registry
from evenflow.platform.runtime import Runtime
from evenflow.platform.stores.ports import Document

NODES: Final = "nodes"
DATASETS: Final = "datasets"


class Views:
    """Writes what changed since the last flush."""

    def __init__(self, runtime: Runtime, registry: Registry, load: LiveRows) -> None:
        self._runtime = runtime
        self._registry = registry
        self._load = load
        self._written: dict[str, dict[str, int]] = {NODES: {}, DATASETS: {}}

    async def flush_documents(self) -> None:
        """Write node and dataset documents with a newer revision than last written."""
        nodes = {name: entry.status for name, entry in self._registry.nodes.items()}
        for collection, rows in ((NODES, nodes), (DATASETS, self._registry.datasets)):
            written = self._written[collection]
            changed = {name: body for name, body in rows.items() if written.get(name) != body.revision}
            if changed:
                documents: dict[str, Document] = {name: body.model_dump(mode="json") for name, body in changed.items()}
                await self._runtime.documents.put_many(collection, documents)
                written |= {name: body.revision for name, body in changed.items()}

    async def flush_load(self) -> None:
        """Write the frames of changed sites; a failed write is made up for by the next flush."""
        now_ms = self._runtime.clock.now_ms()
        try:
            for site, frame in self._load.take_changed():
                await self._runtime.live.put_frame(site, frame, written_ms=now_ms)
        except Exception:
            self._load.mark_all_changed()
            raise
