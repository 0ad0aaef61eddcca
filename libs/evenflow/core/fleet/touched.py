"""A bounded record of which rows changed, so that what was worked out from them is renewed row by row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenflow.core.fleet.table import Integers

#: How many changes are remembered; whoever is further behind starts anew.
REMEMBERED = 65_536


class TouchLog:
    """Row numbers in the order in which they changed. `end` counts all changes ever and so names a version."""

    __slots__ = ("_base", "_rows", "end")

    def __init__(self) -> None:
        self._rows = np.zeros(1_024, dtype=np.int64)
        self._base = 0
        self.end = 0

    def add(self, row: int) -> None:
        """Note that one row changed."""
        at = self.end - self._base
        if at == len(self._rows):
            self._make_room(1)
            at = self.end - self._base
        self._rows[at] = row
        self.end += 1

    def extend(self, rows: npt.NDArray[np.int64]) -> None:
        """Note that several rows changed; more than are remembered only move the end."""
        if len(rows) > REMEMBERED // 2:
            self.end += len(rows)
            self._base = self.end
            return
        self._make_room(len(rows))
        at = self.end - self._base
        self._rows[at : at + len(rows)] = rows
        self.end += len(rows)

    def since(self, version: int, until: int | None = None) -> Integers | None:
        """Rows changed from `version` up to `until` (the end when None); None when that is no longer remembered."""
        if version < self._base:
            return None
        stop = self.end if until is None else until
        return self._rows[version - self._base : stop - self._base]

    def _make_room(self, count: int) -> None:
        used = self.end - self._base
        if used + count <= len(self._rows):
            return
        if used + count <= REMEMBERED:
            self._rows = np.concatenate([self._rows, np.zeros(max(len(self._rows), count), dtype=np.int64)])
            return
        keep = min(used, REMEMBERED // 2)
        rows = np.zeros(max(len(self._rows), keep + count), dtype=np.int64)
        rows[:keep] = self._rows[used - keep : used]
        self._rows, self._base = rows, self.end - keep
