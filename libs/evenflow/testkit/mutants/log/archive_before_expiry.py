"""Breaks rule 1: a record expires although the archive did not take it."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress

from evenflow.core.errors import EvenflowError
from evenflow.platform.broker.embedded.retention import Retention
from evenflow.platform.broker.embedded.topics import Partition
from evenflow.testkit.mutants.replacing import replaced

_archive = Retention._archive  # noqa: SLF001  the mutant works inside


async def _if_it_can(self: Retention, partition: Partition, end: int) -> None:
    with suppress(EvenflowError):
        await _archive(self, partition, end)


def without_archive_before_expiry() -> AbstractContextManager[None]:
    """Expiry that does not wait for the archive while entered."""
    return replaced(Retention, "_archive", _if_it_can)
