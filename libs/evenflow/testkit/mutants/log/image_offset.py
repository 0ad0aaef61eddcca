"""Breaks the state's images: the offset is taken when the rows are written, not before they are looked at."""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.core.errors import EvenflowError
from evenflow.placement.leading import Leader
from evenflow.testkit.mutants.replacing import replaced


async def _offset_last(self: Leader) -> None:
    rows = dict(self.model.rows())
    try:
        await self._images._prune()  # noqa: SLF001  makes room first, which takes its time
        offset = self._state_end
        await self._images.write(offset, list(rows), rows.get)
    except (EvenflowError, OSError):
        return
    self._image_end = offset


def with_image_newer_than_its_offset() -> AbstractContextManager[None]:
    """Images that skip what happened while they were made, while entered."""
    return replaced(Leader, "_write_image", _offset_last)
