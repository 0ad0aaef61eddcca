"""Power over the stores and the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenflow.platform.stores.faults import Faults
from evenflow.platform.stores.memory import MemoryDocuments, MemoryLiveLoad, MemoryObjects
from evenflow.sim.stage import StoreName
from evenflow.sim.world.records.storage import FaultyStorage


class StorePowers:
    """Switches of documents, live load, objects and the log's storage."""

    def __init__(
        self, documents: MemoryDocuments, live: MemoryLiveLoad, objects: MemoryObjects, storage: FaultyStorage
    ) -> None:
        self._stores: dict[StoreName, MemoryDocuments | MemoryLiveLoad | MemoryObjects] = {
            "documents": documents,
            "live": live,
            "objects": objects,
        }
        self._storage = storage

    def _faults(self, store: StoreName) -> Faults:
        return self._stores[store].faults

    async def wipe(self, store: StoreName) -> None:
        """Everything in it is gone."""
        self._stores[store].wipe()

    async def down(self, store: StoreName) -> None:
        """It does not answer."""
        if store == "log":
            self._storage.away = True
        else:
            self._faults(store).down()

    async def up(self, store: StoreName) -> None:
        """It answers again."""
        if store == "log":
            self._storage.away = False
        else:
            self._faults(store).up()

    async def read_only(self, store: StoreName) -> None:
        """It refuses every write."""
        if store == "log":
            self._storage.away = True
        else:
            self._faults(store).read_only()

    async def refuse(self, store: StoreName, match: Mapping[str, Any], times: int) -> None:
        """It refuses matching writes."""
        self._faults(store).refuse(match, times)

    async def lose_answers(self, store: StoreName, times: int) -> None:
        """It applies and does not answer."""
        self._faults(store).lose_answers(times)

    async def swallow(self, store: StoreName, times: int) -> None:
        """It answers and does not keep."""
        self._faults(store).swallow(times)

    def end_all(self) -> None:
        """Everything answers again."""
        self._storage.away = False
        for name in self._stores:
            self._faults(name).end()
