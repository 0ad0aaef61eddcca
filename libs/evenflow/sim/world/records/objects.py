"""The object store, watched: a manifest is never there without its parts, and what was written is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from evenflow.core.checkpointing.manifest import MANIFEST_NAME
from evenflow.core.errors import Unavailable
from evenflow.platform.stores.faults import Gap
from evenflow.platform.stores.memory import MemoryObjects

_ENDING: Final = f"/{MANIFEST_NAME}"


class WatchedObjects(MemoryObjects):
    """Counts what the store acknowledged, whether it kept it or not; `broken` hears what must never be."""

    def __init__(self, gap: Gap, broken: Callable[[str], None]) -> None:
        super().__init__(gap)
        self._broken = broken
        self._written: dict[str, None] = {}

    def written(self, prefix: str) -> list[str]:
        """Paths under a prefix that were written and not removed, in order of writing."""
        return [path for path in self._written if path.startswith(prefix)]

    def forge(self, path: str, data: bytes) -> None:
        """Write as somebody outside of the product would: nothing is expected of him, and no fault stops him."""
        self.lay(path, data)
        self._written[path] = None

    async def _write(self, path: str, data: bytes, *, create: bool) -> None:
        if path.endswith(_ENDING):
            self._check(path, data)
        try:
            await super()._write(path, data, create=create)
        except Unavailable:
            if self.contents(path).get(path) == data:  # done, though its answer was lost
                self._written[path] = None
            raise
        self._written[path] = None

    async def _remove(self, path: str) -> None:
        manifest = path.rpartition("/")[0] + _ENDING
        if path != manifest and manifest in self._written and path in self._written:
            self._broken(f"{path} is removed while {manifest} still names it")
        self._written.pop(path, None)
        await super()._remove(path)

    def _check(self, path: str, data: bytes) -> None:
        where = path.removesuffix(MANIFEST_NAME)
        names = [str(part.get("name")) for part in json.loads(data).get("parts", ())]
        missing = [name for name in names if where + name not in self._written]
        if missing:
            self._broken(f"{path} is written before {', '.join(missing)}")
