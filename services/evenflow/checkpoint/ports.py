"""What checkpoint needs of the object store."""

from __future__ import annotations

from typing import Protocol


class CheckpointStore(Protocol):
    """Reads and removes what agents wrote."""

    async def problem(self, manifest_path: str) -> str:
        """What is wrong with a stored checkpoint; empty when manifest and every part are right.

        Raises Unavailable when the store is away: then nothing is said about the checkpoint.
        """

    async def remove(self, manifest_path: str) -> None:
        """Delete a checkpoint's folder, manifest first."""
