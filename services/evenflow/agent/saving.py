"""Writing a checkpoint: every part, then the manifest, then the receipt; a crash in between leaves nothing usable."""

from __future__ import annotations

from evenflow.agent.journal import Held
from evenflow.agent.ports import Saved, Surroundings
from evenflow.agent.staging import Staging
from evenflow.core.checkpointing.manifest import MANIFEST_NAME, Manifest, ManifestPart, folder, part_of, write_manifest
from evenflow.core.errors import Refused, Unavailable


class Saving:
    """Writes checkpoints of members to the store."""

    def __init__(self, around: Surroundings, staging: Staging) -> None:
        self._around = around
        self._staging = staging

    def next_number(self, held: Held) -> int:
        """One above every checkpoint this task is known to have, so that newer always means higher."""
        return max([held.checkpoint, *(point.checkpoint for point in held.desired.resume)]) + 1

    async def write(self, held: Held, saved: Saved) -> tuple[int, str] | None:
        """Write one; its number and manifest's path, or None when the store would not take it (the run goes on)."""
        desired, around = held.desired, self._around
        number = self.next_number(held)
        place = folder(desired.tenant, desired.task, desired.generation, number)
        parts: list[ManifestPart] = []
        try:
            for index in range(saved.part_count):
                if saved.pace_ms:
                    await around.clock.sleep(saved.pace_ms / 1000)
                data = saved.part(index)
                await self._put(f"{place}part-{index + 1}", data)
                parts.append(part_of(f"part-{index + 1}", data))
            manifest = Manifest(
                tenant=desired.tenant,
                task=desired.task,
                attempt=desired.attempt,
                generation=desired.generation,
                checkpoint=number,
                progress_ms=saved.progress_ms,
                size_bytes=saved.size_bytes,
                parts=tuple(parts),
            )
            await self._put(place + MANIFEST_NAME, write_manifest(manifest))
        except (Unavailable, Refused, OSError) as error:
            around.log.warning("checkpoint not written", run=held.key, checkpoint=number, problem=str(error))
            return None
        return number, place + MANIFEST_NAME

    async def _put(self, path: str, data: bytes) -> None:
        await self._around.point("agent.before-object")
        await self._staging.patiently(lambda: self._around.objects.put(path, data))
        await self._around.point("agent.after-object")
