"""What checkpoint needs of the object store."""

from __future__ import annotations

from typing import Protocol

from evenflow.events.contracts.checkpoint import CheckpointFact


class CheckpointStore(Protocol):
    """Reads and removes what agents wrote."""

    async def problem(self, fact: CheckpointFact) -> str:
        """What is wrong with a stored checkpoint; empty when manifest and every part are right and its own.

        Raises Unavailable when the store is away: then nothing is said about the checkpoint.
        """

    async def remove(self, fact: CheckpointFact) -> None:
        """Delete a checkpoint's own folder, manifest first, whatever path its receipt named."""
