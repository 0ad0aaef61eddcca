"""Checkpoints in the object store."""

from __future__ import annotations

from collections.abc import Sequence

from evenflow.core.checkpointing.manifest import (
    MANIFEST_NAME,
    folder,
    generation_folder,
    problem_of,
    read_manifest,
)
from evenflow.core.errors import FieldRefused
from evenflow.events.contracts.checkpoint import CheckpointFact
from evenflow.platform.runtime import Runtime


class ObjectCheckpoints:
    """The checkpoint store on the objects port."""

    def __init__(self, runtime: Runtime) -> None:
        self._objects = runtime.objects

    async def problem(self, fact: CheckpointFact) -> str:
        """What is wrong with a stored checkpoint; empty when nothing is. Another task's is not followed."""
        where = folder(fact.tenant, fact.task, fact.generation, fact.checkpoint)
        if fact.manifest != where + MANIFEST_NAME:
            return "its manifest is not where this checkpoint is kept"
        try:
            manifest = read_manifest(await self._objects.get(fact.manifest))
        except KeyError:
            return "the manifest is missing"
        except FieldRefused as refusal:
            return refusal.message
        said = (manifest.tenant, manifest.task, manifest.generation, manifest.checkpoint, manifest.progress_ms)
        if said != (fact.tenant, fact.task, fact.generation, fact.checkpoint, fact.progress_ms):
            return "the manifest is that of another checkpoint"
        for part in manifest.parts:
            try:
                data: bytes | None = await self._objects.get(where + part.name)
            except KeyError:
                data = None
            if problem := problem_of(part, data):
                return problem
        return ""

    async def remove(self, fact: CheckpointFact) -> None:
        """Delete a checkpoint's own folder, manifest first, so that a half-removed one is never complete."""
        await self._clear(folder(fact.tenant, fact.task, fact.generation, fact.checkpoint))

    async def sweep(self, tenant: str, task: str, generation: int, known: Sequence[int]) -> int:
        """Delete what a generation left behind beside its known checkpoints."""
        where = generation_folder(tenant, task, generation)
        kept = tuple(folder(tenant, task, generation, number) for number in known)
        torn = [path for path in await self._objects.paths(where) if not path.startswith(kept)]
        folders = dict.fromkeys(path[: path.rindex("/") + 1] for path in torn)
        for torn_folder in folders:
            await self._clear(torn_folder)
        return len(folders)

    async def _clear(self, where: str) -> None:
        await self._objects.delete(where + MANIFEST_NAME)
        for path in await self._objects.paths(where):
            await self._objects.delete(path)
