"""Power over datasets and checkpoints as they lie in the stores, beside what the catalogue says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from evenflow.core.checkpointing.manifest import (
    MANIFEST_NAME,
    Manifest,
    folder,
    part_of,
    task_folder,
    write_manifest,
)
from evenflow.core.errors import FieldRefused
from evenflow.core.lifecycle.task import TERMINAL

if TYPE_CHECKING:
    from evenflow.sim.world.world import World

#: First parts of the paths that the product writes.
_KINDS: Final = frozenset({"archive", "checkpoints", "outputs", "placement", "policies", "runs"})
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
        objects = self._world.objects
        parts = [path for path in objects.contents(self._newest(task)) if not path.endswith(MANIFEST_NAME)]
        if not parts or part > len(parts):
            raise FieldRefused("checkpoint.damage", f"the newest checkpoint of {task} has {len(parts)} parts")
        path = parts[-1] if truncate else parts[part - 1]
        data = objects.contents(path)[path]
        objects.lay(path, data[: len(data) // 2] if truncate else _OTHER_BYTES + data)

    def _newest(self, task: str) -> str:
        tenant, _, name = task.rpartition("/")
        prefix = task_folder(tenant or "default", name)
        found: dict[tuple[int, int], str] = {}
        for path in self._world.objects.contents(prefix):
            generation, number = path.removeprefix(prefix).split("/")[:2]
            found[int(generation.lstrip("g")), int(number.lstrip("c"))] = f"{prefix}{generation}/{number}/"
        if not found:
            raise FieldRefused("checkpoint.task", f"{task} has no checkpoint")
        return found[max(found)]

    def remains(self, ended_before_ms: int) -> list[str]:
        """What should not be in the store: objects at odd places, checkpoints of tasks that ended before a moment."""
        found: dict[tuple[str, str], int] = {}
        lines = []
        for path in self._world.objects.contents(""):
            kind, *rest = path.split("/")
            if kind not in _KINDS or not {"", ".", ".."}.isdisjoint(rest):
                lines.append(f"object {path} lies where nothing of the product belongs")
            elif kind == "checkpoints":
                found[rest[0], rest[1]] = found.get((rest[0], rest[1]), 0) + 1
        for key, count in found.items():
            view = self._world.model.tasks.get(key)
            last = view.history.last_ms if view is not None and view.state in TERMINAL else None
            if last is not None and last < ended_before_ms:
                lines.append(f"{count} objects of checkpoints of {'/'.join(key)} are left, which ended at {last} ms")
        return lines

    async def write_checkpoint(
        self, task: str, generation: int, progress_ms: int, *, part_count: int, there_count: int
    ) -> None:
        """A checkpoint under the usual name, as a stale process would write it: whole, or its manifest ahead of it."""
        tenant, _, name = task.rpartition("/")
        view = self._world.model.named(task)
        number = 1 + max((entry for who, _, entry in self._world.model.checkpoints if who == task), default=0)
        where = folder(tenant or "default", name, generation, number)
        parts = {
            f"part-{index}": json.dumps({"task": task, "progress_ms": progress_ms, "part": index}).encode()
            for index in range(1, part_count + 1)
        }
        manifest = Manifest(
            tenant=tenant or "default",
            task=name,
            attempt=generation,
            generation=generation,
            checkpoint=number,
            progress_ms=progress_ms,
            size_bytes=0,
            parts=tuple(part_of(part, data) for part, data in parts.items()),
        )
        for part, data in list(parts.items())[:there_count]:
            self._world.objects.forge(where + part, data)
        self._world.objects.forge(where + MANIFEST_NAME, write_manifest(manifest))
        attempt = None if view is None else view.attempts.get(generation)
        if attempt is not None:
            await self._world.receipts.checkpointed(task, generation, number, progress_ms, where + MANIFEST_NAME)
