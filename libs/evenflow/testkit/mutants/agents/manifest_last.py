"""Breaks the order of a checkpoint's writes: its manifest is visible before its parts are there."""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.agent.journal import Held
from evenflow.agent.ports import Saved
from evenflow.agent.saving import Saving
from evenflow.core.checkpointing.manifest import MANIFEST_NAME, Manifest, folder, part_of, write_manifest
from evenflow.core.errors import Refused, Unavailable
from evenflow.testkit.mutants.replacing import replaced


async def _manifest_first(self: Saving, held: Held, saved: Saved) -> tuple[int, str] | None:
    desired, number = held.desired, self.next_number(held)
    place = folder(desired.tenant, desired.task, desired.generation, number)
    parts = {f"part-{index + 1}": saved.part(index) for index in range(saved.part_count)}
    manifest = Manifest(
        tenant=desired.tenant,
        task=desired.task,
        attempt=desired.attempt,
        generation=desired.generation,
        checkpoint=number,
        progress_ms=saved.progress_ms,
        size_bytes=saved.size_bytes,
        parts=tuple(part_of(name, data) for name, data in parts.items()),
    )
    try:
        await self._put(place + MANIFEST_NAME, write_manifest(manifest))
        for name, data in parts.items():
            await self._put(place + name, data)
    except (Unavailable, Refused, OSError):
        return None
    return number, place + MANIFEST_NAME


def without_manifest_last() -> AbstractContextManager[None]:
    """Manifests that come first while entered."""
    return replaced(Saving, "write", _manifest_first)
