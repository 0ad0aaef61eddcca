"""A decider's working copy of the fleet: what is free while a round gives places out, without touching its input.

A scratch is kept from round to round and brought up to the newest view by copying only the rows that changed since,
in the fleet or in the scratch itself. `log` tells its users which rows to look at again.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from evenflow.core.fleet.columns import AMOUNTS, CPU, DEVICES, DISK, MEMORY, OPEN, WHOLE, FleetView
from evenflow.core.fleet.table import Integers, NodeTable, Shares
from evenflow.core.fleet.touched import TouchLog
from evenflow.core.units import MILLI

#: Room as one number: cores in the lower bits, milli-devices in the 22 above.
CPU_BITS: Final = 28
ROOM_BITS: Final = CPU_BITS + 22
CPU_MAX: Final = (1 << CPU_BITS) - 1


class Scratch:
    """The arrays of a view, as columns that may be changed. `closed` says why a row takes no work.

    `room` is kept beside them: what `room_of` gives for each node.
    """

    __slots__ = (
        "_fleet_log",
        "_taken",
        "_version",
        "amounts",
        "closed",
        "device_memory",
        "devices",
        "is_skewed",
        "log",
        "room",
        "table",
    )

    def __init__(self, view: FleetView) -> None:
        self.table: NodeTable = view.table
        self.amounts: Integers = view.amounts.copy()
        self.devices: Shares = view.devices.copy()
        self.device_memory: Integers = view.device_memory.copy()
        self.closed: dict[int, str] = view.closed
        self.is_skewed = view.is_skewed
        self.log = TouchLog()
        self._fleet_log = view.log
        self._version = view.version
        self._taken: list[int] = []
        self.room: Integers = room_of(self.amounts)

    def follow(self, view: FleetView) -> bool:
        """Become a copy of `view` again; False when that takes a new scratch (another table, or too far away)."""
        if view.table is not self.table or view.log is not self._fleet_log or view.version < self._version:
            return False
        changed = view.log.since(self._version, view.version)
        if changed is None:
            return False
        rows = np.unique(np.concatenate([changed, np.array(self._taken, dtype=np.int64)]))
        self.amounts[:, rows] = view.amounts[:, rows]
        self.room[rows] = room_of(self.amounts[:, rows])
        self.devices[:, rows] = view.devices[:, rows]
        self.device_memory[:, rows] = view.device_memory[:, rows]
        self.closed = view.closed
        self.is_skewed = self.is_skewed or view.is_skewed
        self.log.extend(rows)
        self._version = view.version
        self._taken = []
        return True

    def take(
        self, row: int, amounts: tuple[int, int, int], devices: tuple[tuple[int, int], ...], device_memory: int
    ) -> None:
        """Take cores, memory and disk, and of each device (index, milli) with `device_memory` bytes, from one node."""
        self._taken.append(row)
        columns = self.amounts
        columns[CPU, row] -= amounts[0]
        columns[MEMORY, row] -= amounts[1]
        columns[DISK, row] -= amounts[2]
        if devices:
            milli_column, memory_column = self.devices[:, row], self.device_memory[:, row]
            whole = total = 0
            for index, milli in devices:
                before = int(milli_column[index])
                whole += before == MILLI
                total += milli
                milli_column[index] = before - milli
                memory_column[index] -= device_memory
            columns[WHOLE, row] -= whole
            columns[DEVICES, row] -= total
        self.room[row] = (int(columns[DEVICES, row]) << CPU_BITS) + min(int(columns[CPU, row]), CPU_MAX)
        self.log.add(row)


def room_of(amounts: Integers) -> Integers:
    """How much is free on each node as one number: milli-devices first, then cores."""
    room: Integers = (amounts[DEVICES] << CPU_BITS) + np.minimum(amounts[CPU], CPU_MAX)
    return room


def empty_view(view: FleetView) -> FleetView:
    """The same nodes with nothing on them, all open and all devices usable: what could ever be held."""
    table = view.table
    empty = FleetView.__new__(FleetView)
    empty.table = table
    empty.amounts = np.zeros((AMOUNTS, len(table)), dtype=np.int64)
    empty.amounts[CPU] = table.cpu_milli
    empty.amounts[MEMORY] = table.memory_bytes
    empty.amounts[DISK] = table.disk_bytes
    empty.amounts[WHOLE] = table.device_count
    empty.amounts[DEVICES] = table.device_count * MILLI
    empty.amounts[OPEN] = 1
    slots = np.arange(table.device_slots)[:, None] < table.device_count[None, :]
    empty.devices = slots * np.int32(MILLI)
    empty.device_memory = slots * table.device_memory_bytes[None, :]
    empty.closed = {}
    empty.is_skewed = False
    empty.log = TouchLog()
    empty.version = 0
    empty.memo = view.memo
    return empty
