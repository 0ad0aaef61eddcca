"""Checkpoints in the object store."""

from __future__ import annotations

from evenflow.core.checkpointing.manifest import MANIFEST_NAME, problem_of, read_manifest
from evenflow.core.errors import FieldRefused
from evenflow.platform.runtime import Runtime


class ObjectCheckpoints:
    """The checkpoint store on the objects port."""

    def __init__(self, runtime: Runtime) -> None:
        self._objects = runtime.objects

    async def problem(self, manifest_path: str) -> str:
        """What is wrong with a stored checkpoint; empty when nothing is."""
        folder = manifest_path.removesuffix(MANIFEST_NAME)
        if not folder.startswith("checkpoints/") or folder == manifest_path or "/../" in folder:
            return "its manifest is not where checkpoints are kept"
        try:
            manifest = read_manifest(await self._objects.get(manifest_path))
        except KeyError:
            return "the manifest is missing"
        except FieldRefused as refusal:
            return refusal.message
        for part in manifest.parts:
            try:
                data: bytes | None = await self._objects.get(folder + part.name)
            except KeyError:
                data = None
            if problem := problem_of(part, data):
                return problem
        return ""

    async def remove(self, manifest_path: str) -> None:
        """Delete a checkpoint's folder, manifest first, so that a half-removed one is never complete."""
        folder = manifest_path.removesuffix(MANIFEST_NAME)
        await self._objects.delete(manifest_path)
        for path in await self._objects.paths(folder):
            await self._objects.delete(path)
