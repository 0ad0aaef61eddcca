"""Power over datasets and checkpoints as they lie in the stores, beside what the catalogue says."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from evenflow.core.errors import FieldRefused

if TYPE_CHECKING:
    from evenflow.sim.world.world import World

MANIFEST: Final = "manifest.json"
_OTHER_BYTES: Final = b"\x00damaged\x00"


class DataPowers:
    """Copies that are gone, parts with other bytes, checkpoints of stale processes."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: (dataset, site) of copies that are really gone, whatever the catalogue says.
        self._gone: dict[tuple[str, str], None] = {}

    def is_there(self, dataset: str, site: str) -> bool:
        """Whether a copy that the catalogue names is really there."""
        return (dataset, site) not in self._gone

    def arrived(self, dataset: str, site: str) -> None:
        """A transfer brought a copy."""
        self._gone.pop((dataset, site), None)

    async def drop_dataset(self, dataset: str, site: str, *, silently: bool) -> None:
        """A copy is gone; unless silently, its holder says so."""
        self._gone[dataset, site] = None
        if not silently:
            await self._world.door.drop_dataset(dataset, site)

    async def add_dataset(self, written: Mapping[str, Any]) -> None:
        """A dataset appears."""
        for copy in written.get("copies", ()):
            if isinstance(copy, Mapping):
                self.arrived(str(written.get("id")), str(copy.get("site")))
        await self._world.door.add_dataset(written)

    async def damage_checkpoint(self, task: str, part: int, *, truncate: bool) -> None:
        """Other bytes in a part of the newest checkpoint, or its last part cut. Part numbers start at 1."""
        folder = await self._newest(task)
        objects = self._world.objects
        parts = [path for path in await objects.paths(folder) if not path.endswith(MANIFEST)]
        if not parts or part > len(parts):
            raise FieldRefused("checkpoint.damage", f"the newest checkpoint of {task} has {len(parts)} parts")
        path = parts[-1] if truncate else parts[part - 1]
        data = await objects.get(path)
        objects.damage(path, data[: len(data) // 2] if truncate else _OTHER_BYTES + data)

    async def _newest(self, task: str) -> str:
        tenant, _, name = task.rpartition("/")
        prefix = f"checkpoints/{tenant or 'default'}/{name}/"
        found: dict[tuple[int, int], str] = {}
        for path in await self._world.objects.paths(prefix):
            generation, number = path.removeprefix(prefix).split("/")[:2]
            found[int(generation.lstrip("g")), int(number.lstrip("c"))] = f"{prefix}{generation}/{number}/"
        if not found:
            raise FieldRefused("checkpoint.task", f"{task} has no checkpoint")
        return found[max(found)]

    async def write_checkpoint(self, task: str, generation: int, progress_ms: int) -> None:
        """A complete checkpoint under the usual name, as a stale process would write it."""
        tenant, _, name = task.rpartition("/")
        view = self._world.model.named(task)
        number = 1 + max((entry for who, entry in self._world.model.checkpoints if who == task), default=0)
        folder = f"checkpoints/{tenant or 'default'}/{name}/g{generation}/c{number}/"
        data = json.dumps({"task": task, "progress_ms": progress_ms}).encode()
        part = {"name": "part-1", "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        manifest = {
            "task": f"{tenant or 'default'}/{name}",
            "generation": generation,
            "attempt": generation,
            "checkpoint": number,
            "progress_ms": progress_ms,
            "parts": [part],
        }
        await self._world.objects.put(f"{folder}part-1", data)
        await self._world.objects.put(f"{folder}{MANIFEST}", json.dumps(manifest).encode())
        attempt = None if view is None else view.attempts.get(generation)
        if attempt is not None:
            await self._world.receipts.checkpointed(task, generation, number, progress_ms, folder + MANIFEST)
