"""Checkpoints in the object store."""

from __future__ import annotations

from evenflow.core.checkpointing.manifest import MANIFEST_NAME, folder, problem_of, read_manifest
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
        where = folder(fact.tenant, fact.task, fact.generation, fact.checkpoint)
        await self._objects.delete(where + MANIFEST_NAME)
        for path in await self._objects.paths(where):
            await self._objects.delete(path)
