"""Inventory's views outside the log: node and dataset documents, live-load frames. Losing them costs nothing."""

from __future__ import annotations

from evenflow.inventory.load import LiveRows
from evenflow.inventory.registry import Registry
from evenflow.platform.runtime import Runtime
from evenflow.platform.stores.views.revisions import RevisionView


class Views:
    """Writes what changed since the last flush."""

    def __init__(self, runtime: Runtime, registry: Registry, load: LiveRows) -> None:
        self._runtime = runtime
        self._registry = registry
        self._load = load
        self._nodes = RevisionView(runtime.documents, runtime.clock, runtime.log, "nodes")
        self._datasets = RevisionView(runtime.documents, runtime.clock, runtime.log, "datasets")

    async def flush_documents(self) -> None:
        """Write node and dataset documents that changed."""
        await self._nodes.flush({name: entry.status for name, entry in self._registry.nodes.items()})
        await self._datasets.flush(self._registry.datasets)

    async def flush_load(self) -> None:
        """Write the frames of changed sites; a failed write is made up for by the next flush."""
        now_ms = self._runtime.clock.now_ms()
        try:
            for site, frame in self._load.take_changed():
                await self._runtime.live.put_frame(site, frame, written_ms=now_ms)
        except Exception:
            self._load.mark_all_changed()
            raise
