"""When a full site could hold a task, guessed from what is known to end there and from who else waits for it.

The first moment at which enough has ended, plus the work of those who already wait for the same site spread over all of
its devices (its cores, for tasks without a device). Whatever has no known end, or outlived it, is given an hour from
now.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from typing import Final

import numpy as np

from evenflow.core.fleet.columns import CPU, DEVICES, DISK, MEMORY, WHOLE
from evenflow.core.fleet.scratch import Scratch
from evenflow.core.fleet.snapshot import Snapshot
from evenflow.core.fleet.table import Integers
from evenflow.core.placement.classes import DemandClass, Scope
from evenflow.core.placement.plan import Demand, Place
from evenflow.core.pricing.estimate import UNKNOWN_RUN_MS, run_ms
from evenflow.core.queueing.quota import amount_asked
from evenflow.core.units import MILLI

#: Added to the last known end when even that frees too little: nodes are closed, or held by what is not known here.
UNKNOWN_WAIT_MS: Final = 3_600_000
#: Ends of one site that are looked at; what comes later counts as unknown.
ENDS_MAX: Final = 512


class _Ends:
    """What ends at one site, earliest first, and as arrays what each end gives back."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, str, int, Place]] = []
        self._arrays: tuple[Integers, Integers, Integers] | None = None

    def add(self, end_ms: int, place: Place) -> None:
        """One more place that ends."""
        insort(self.entries, (end_ms, place.node, len(self.entries), place), key=_by_end)
        self._arrays = None

    def __len__(self) -> int:
        return min(len(self.entries), ENDS_MAX)

    def arrays(self, row_of: dict[str, int]) -> tuple[Integers, Integers, Integers]:
        """Row and amounts of each end (4, n); device parts (5, m) as end, row, index, milli, bytes; when (n)."""
        if self._arrays is None:
            ends = self.entries[:ENDS_MAX]
            amounts = [
                (row_of[place.node], place.cpu_milli, place.memory_bytes, place.disk_bytes) for *_, place in ends
            ]
            devices = [
                (number, row_of[place.node], index, milli, place.device_memory_bytes)
                for number, (*_, place) in enumerate(ends)
                for index, milli in place.devices
            ]
            self._arrays = (
                np.array(amounts, dtype=np.int64).reshape(-1, 4).T,
                np.array(devices, dtype=np.int64).reshape(-1, 5).T,
                np.array([end for end, *_ in ends], dtype=np.int64),
            )
        return self._arrays


def _by_end(entry: tuple[int, str, int, Place]) -> tuple[int, str, int]:
    return entry[:3]


class Forecast:
    """Guesses for one round."""

    def __init__(self, scope: Scope, snapshot: Snapshot, now_ms: int) -> None:
        self._scope = scope
        self._snapshot = snapshot
        self._now_ms = now_ms
        self._ends: dict[str, _Ends] | None = None
        self._first: dict[tuple[object, ...], int | None] = {}
        self._ahead: dict[str, tuple[int, int]] = {}
        self._sites: dict[str, tuple[int, int]] = {}

    def begins(self, demand: Demand, places: Iterable[Place]) -> None:
        """The round itself placed a task: it will end, too."""
        duration = run_ms(demand, "")
        end = self._now_ms + (UNKNOWN_RUN_MS if duration is None else duration)
        by_site = self._by_site()
        for place in places:
            by_site.setdefault(place.site, _Ends()).add(end, place)

    def waits(self, demand: Demand, site: str) -> None:
        """A task goes on waiting for a site: those after it come later."""
        amount = amount_asked(demand.task)
        duration = run_ms(demand, "")
        work = UNKNOWN_RUN_MS if duration is None else duration
        devices, cores = self._ahead.get(site, (0, 0))
        if amount.devices_milli:
            devices += amount.devices_milli * work
        else:
            cores += amount.cpu_milli * work
        self._ahead[site] = (devices, cores)

    def wait_ms(self, demand: Demand, classes: tuple[DemandClass, ...], site: str) -> int | None:
        """How long until the site could hold the task on nodes that it does not avoid; None when it never could."""
        key = (site, len(classes), demand.task.one_per_node, demand.avoid, *dict.fromkeys(classes))
        if key not in self._first:
            self._first[key] = self._first_room_ms(demand, classes, site)
        first = self._first[key]
        if first is None:
            return None
        devices, cores = self._ahead.get(site, (0, 0))
        all_devices, all_cores = self._capacity(site)
        if amount_asked(demand.task).devices_milli:
            return first + (devices // all_devices if all_devices else 0)
        return first + (cores // all_cores if all_cores else 0)

    def _capacity(self, site: str) -> tuple[int, int]:
        found = self._sites.get(site)
        if found is None:
            table = self._scope.scratch.table
            rows = table.rows_of_site(site)
            found = (int(table.device_count[rows].sum()) * MILLI, int(table.cpu_milli[rows].sum()))
            self._sites[site] = found
        return found

    def _first_room_ms(self, demand: Demand, classes: tuple[DemandClass, ...], site: str) -> int | None:
        table = self._scope.scratch.table
        rows = table.rows_of_site(site)
        if demand.avoid:
            rows = rows[~np.isin(rows, [table.row_of[node] for node in demand.avoid if node in table.row_of])]
        if not self._holds(self._scope.empty, demand, classes, rows):
            return None
        ends = self._by_site().get(site) or _Ends()
        low, high = 0, len(ends)
        _, _, at_ms = ends.arrays(table.row_of)
        if not self._holds(self._after(ends, high), demand, classes, rows):
            last = int(at_ms[-1]) if high else self._now_ms
            return max(last - self._now_ms, 0) + UNKNOWN_WAIT_MS
        while low < high:
            middle = (low + high) // 2
            if self._holds(self._after(ends, middle), demand, classes, rows):
                high = middle
            else:
                low = middle + 1
        return max(int(at_ms[low - 1]) - self._now_ms, 0) if low else 0

    def _holds(self, scratch: Scratch, demand: Demand, classes: tuple[DemandClass, ...], rows: Integers) -> bool:
        """Whether the rows have room for every kind of member, kind by kind."""
        kinds = dict.fromkeys(classes)
        for kind in kinds:
            slots = kind.slots(scratch)[rows]
            if demand.task.one_per_node:
                slots = np.minimum(slots, 1)
            if int(slots.sum()) < sum(member is kind for member in classes):
                return False
        return True

    def _after(self, ends: _Ends, count: int) -> Scratch:
        """The scratch as it would be once the first `count` places have ended. What is closed now stays closed."""
        now = self._scope.scratch
        later = Scratch.__new__(Scratch)
        later.table = now.table
        later.amounts, later.devices, later.device_memory = (
            now.amounts.copy(),
            now.devices.copy(),
            now.device_memory.copy(),
        )
        amounts, devices, _ = ends.arrays(now.table.row_of)
        rows = amounts[0, :count]
        for amount, given in zip((CPU, MEMORY, DISK), amounts[1:, :count], strict=True):
            np.add.at(later.amounts[amount], rows, given)
        part = devices[:, devices[0] < count]
        part = part[:, part[2] < len(later.devices)]
        np.add.at(later.devices, (part[2], part[1]), part[3])
        np.add.at(later.device_memory, (part[2], part[1]), part[4])
        later.amounts[WHOLE] = (later.devices == MILLI).sum(axis=0)
        later.amounts[DEVICES] = later.devices.sum(axis=0)
        return later

    def _by_site(self) -> dict[str, _Ends]:
        if self._ends is None:
            self._ends = {}
            row_of = self._scope.scratch.table.row_of
            for running in self._snapshot.running:
                end = running.expected_end_ms
                if end is None or end <= self._now_ms:
                    end = self._now_ms + UNKNOWN_RUN_MS
                for place in running.places:
                    if place.node in row_of:
                        self._ends.setdefault(place.site, _Ends()).add(end, place)
        return self._ends
