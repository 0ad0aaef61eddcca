"""What checkpoint needs of the object store."""

from __future__ import annotations

from collections.abc import Sequence
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

    async def sweep(self, tenant: str, task: str, generation: int, known: Sequence[int]) -> int:
        """Delete what a generation left behind beside its known checkpoints; returns the number of checkpoints."""
