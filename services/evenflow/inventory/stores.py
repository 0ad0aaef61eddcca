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
        self._written: dict[str, int] = {}

    async def flush_documents(self) -> None:
        """Write node and dataset documents with a newer revision than last written."""
        nodes = {
            name: (e.status.revision, e.status.model_dump(mode="json")) for name, e in self._registry.nodes.items()
        }
        datasets = {
            name: (body.revision, body.model_dump(mode="json")) for name, body in self._registry.datasets.items()
        }
        for collection, rows in ((NODES, nodes), (DATASETS, datasets)):
            changed: dict[str, Document] = {
                name: body
                for name, (revision, body) in rows.items()
                if self._written.get(f"{collection}/{name}") != revision
            }
            if changed:
                await self._runtime.documents.put_many(collection, changed)
                for name in changed:
                    self._written[f"{collection}/{name}"] = rows[name][0]

    async def flush_load(self) -> None:
        """Write the frames of changed sites; a failed write is made up for by the next flush."""
        now_ms = self._runtime.clock.now_ms()
        try:
            for site, frame in self._load.take_changed():
                await self._runtime.live.put_frame(site, frame, written_ms=now_ms)
        except Exception:
            self._load.mark_all_changed()
            raise
