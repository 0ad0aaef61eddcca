"""The fleet as columns: what is free on every node and device, exact, and who holds the rest.

Three arrays carry all of it, one column per node in the order of the table (by name, so that the order in which nodes
registered never shows):

    amounts        (6, N)  free cores, memory, disk, whole devices, milli-devices; 1 if open
    devices        (D, N)  milli-devices free on each device; 0 when it is held back, broken or absent
    device_memory  (D, N)  bytes free on each device

Free means proven free: a device kept back by a leftover process or broken is not offered, and giving a place back twice
changes nothing. The books of holders are the truth; the arrays follow them.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from evenflow.core.errors import Conflict
from evenflow.core.fleet.holder import Holder
from evenflow.core.fleet.table import Integers, NodeTable, Shares, device_memory_of
from evenflow.core.fleet.touched import TouchLog
from evenflow.core.fleet.views import NodeView
from evenflow.core.lifecycle.node import DeviceState
from evenflow.core.placement.plan import Place
from evenflow.core.units import MILLI

Number = TypeVar("Number", bound=np.generic)

CPU: Final = 0
MEMORY: Final = 1
DISK: Final = 2
WHOLE: Final = 3
DEVICES: Final = 4
OPEN: Final = 5
AMOUNTS: Final = 6


@dataclass(frozen=True, slots=True)
class Room:
    """An amount of everything a node has; devices count if usable, `whole_devices` if nobody holds a part."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    devices_milli: int = 0
    whole_devices: int = 0
    nodes: int = 0


class Memo:
    """A place where a decider keeps what it worked out from a fleet's views; it only ever saves time."""

    __slots__ = ("content",)

    def __init__(self) -> None:
        self.content: object = None


class FleetView:
    """The fleet at one moment, never to change: the arrays above, read-only, and `closed` (row → why it takes no work).

    `version` counts changes of one fleet; `log` tells which rows changed between two versions of the same table.
    `is_skewed`: some device may have less memory free than its free share suggests.
    """

    __slots__ = (
        "__weakref__",
        "amounts",
        "closed",
        "device_memory",
        "devices",
        "is_skewed",
        "log",
        "memo",
        "table",
        "version",
    )

    def __init__(self, fleet: Fleet) -> None:
        self.table: NodeTable = fleet.table
        self.amounts = _read_only(fleet.amounts)
        self.devices = _read_only(fleet.devices)
        self.device_memory = _read_only(fleet.device_memory)
        self.closed = dict(fleet.closed)
        self.is_skewed = fleet.is_skewed
        self.log = fleet.log
        self.version = fleet.log.end
        self.memo = fleet.memo


class Fleet:
    """All nodes of a pool and who holds what on them."""

    def __init__(self) -> None:
        self.table = NodeTable(())
        self.amounts: Integers = np.zeros((AMOUNTS, 0), dtype=np.int64)
        self.devices: Shares = np.zeros((1, 0), dtype=np.int32)
        self.device_memory: Integers = np.zeros((1, 0), dtype=np.int64)
        self.closed: dict[int, str] = {}
        self.is_skewed = False
        self.log = TouchLog()
        self.memo = Memo()
        self._nodes: dict[str, NodeView] = {}
        self._holds: dict[Holder, Place] = {}
        self._by_node: dict[str, dict[Holder, Place]] = {}
        self._unsettled: dict[str, None] = {}
        self._irregular: dict[str, None] = {}
        self._stale = False
        self._view: weakref.ref[FleetView] | None = None

    def upsert(self, node: NodeView) -> None:
        """A node joined, or is open, closed, described or equipped otherwise than before."""
        node_id = node.description.id
        before = self._nodes.get(node_id)
        if before == node:
            return
        self._nodes[node_id] = node
        if all(state is DeviceState.OK for state in node.devices):
            self._irregular.pop(node_id, None)
        else:
            self._irregular[node_id] = None
        if before is None or before.description != node.description:
            self._stale = True
            self.is_skewed = self.is_skewed or node_id in self._by_node
        self._settle(node_id)

    def remove(self, node_id: str) -> None:
        """A node left. What is held there stays in the books until it is given back: it could return."""
        if self._nodes.pop(node_id, None) is not None:
            self._stale = True

    def hold(self, holder: Holder, place: Place) -> bool:
        """Take a place for a holder; False if it has it already. Raises Conflict if it holds another place.

        The books follow what was decided: a place on a node that is not known yet counts as soon as the node joins.
        """
        held = self._holds.get(holder)
        if held is not None:
            if held == place:
                return False
            raise Conflict("the member holds another place; give that back first", task=holder.task_key)
        self._holds[holder] = place
        self._by_node.setdefault(place.node, {})[holder] = place
        if not self.is_skewed:
            self.is_skewed = self._skews(place)
        self._apply(place, -1)
        return True

    def free(self, holder: Holder) -> bool:
        """Give back what a holder has; False if it has nothing (any more), which changes nothing."""
        place = self._holds.pop(holder, None)
        if place is None:
            return False
        holders = self._by_node[place.node]
        del holders[holder]
        if not holders:
            del self._by_node[place.node]
        self._apply(place, 1)
        return True

    def place_of(self, holder: Holder) -> Place | None:
        """What a holder has."""
        return self._holds.get(holder)

    def held_by(self, node_id: str) -> dict[Holder, Place]:
        """Who holds what on a node, in order of holding."""
        return dict(self._by_node.get(node_id, {}))

    def node(self, node_id: str) -> NodeView | None:
        """The node as it was last told, or None."""
        return self._nodes.get(node_id)

    def free_of(self, node_id: str) -> Room:
        """What is free on a node, open or not; nothing for an unknown one."""
        node = self._nodes.get(node_id)
        if node is None:
            return Room()
        amounts, devices, _ = self._count(node)
        return Room(amounts[CPU], amounts[MEMORY], amounts[DISK], sum(devices), amounts[WHOLE], 1)

    def totals(self) -> Room:
        """What all registered nodes have, held or free."""
        nodes = [node.description for node in self._nodes.values()]
        return Room(
            sum(node.cpu_milli for node in nodes),
            sum(node.memory_bytes for node in nodes),
            sum(node.disk_bytes for node in nodes),
            sum(node.devices_milli for node in nodes),
            sum(node.device_count for node in nodes),
            len(nodes),
        )

    def snapshot(self) -> FleetView:
        """The fleet at this moment. Arrays are copied only when the fleet changes while a view is still in use."""
        if self._stale:
            self._rebuild()
        view = self._view() if self._view is not None else None
        if view is None or view.version != self.log.end or view.table is not self.table:
            view = FleetView(self)
            self._view = weakref.ref(view)
        return view

    def _apply(self, place: Place, sign: int) -> None:
        node = self._nodes.get(place.node)
        if node is None:
            return
        if self._stale or place.node in self._irregular or _exceeds(node, place):
            self._settle(place.node)
            return
        self._own()
        row = self.table.row_of[place.node]
        amounts, devices, memory = self.amounts, self.devices, self.device_memory
        amounts[CPU, row] += sign * place.cpu_milli
        amounts[MEMORY, row] += sign * place.memory_bytes
        amounts[DISK, row] += sign * place.disk_bytes
        for index, milli in place.devices:
            before = int(devices[index, row])
            after = before + sign * milli
            devices[index, row] = after
            memory[index, row] += sign * place.device_memory_bytes
            amounts[WHOLE, row] += (after == MILLI) - (before == MILLI)
            amounts[DEVICES, row] += sign * milli
        self.log.add(row)

    def _skews(self, place: Place) -> bool:
        """Whether a place holds more of its devices' memory than of the devices, as far as is known."""
        if not place.devices or not place.device_memory_bytes:
            return False
        node = self._nodes.get(place.node)
        memory = device_memory_of(node.description) if node is not None else 0
        return any(place.device_memory_bytes * MILLI > milli * memory for _, milli in place.devices)

    def _settle(self, node_id: str) -> None:
        """Count one node anew from the books, now or when the arrays are rebuilt."""
        if self._stale:
            self._unsettled[node_id] = None
            return
        self._own()
        row = self.table.row_of[node_id]
        self._write(row, self._nodes[node_id])
        self.log.add(row)

    def _write(self, row: int, node: NodeView) -> None:
        amounts, devices, memory = self._count(node)
        self.amounts[:, row] = amounts
        self.devices[:, row] = 0
        self.devices[: len(devices), row] = devices
        self.device_memory[:, row] = 0
        self.device_memory[: len(memory), row] = memory
        if node.open:
            self.closed.pop(row, None)
        else:
            self.closed[row] = node.reason_closed

    def _count(self, node: NodeView) -> tuple[list[int], list[int], list[int]]:
        """What is free on a node, from its description less everything held there."""
        description = node.description
        count = description.device_count
        amounts = [description.cpu_milli, description.memory_bytes, description.disk_bytes, 0, 0, int(node.open)]
        devices = [MILLI] * count
        memory = [device_memory_of(description)] * count
        for place in self._by_node.get(description.id, {}).values():
            amounts[CPU] -= place.cpu_milli
            amounts[MEMORY] -= place.memory_bytes
            amounts[DISK] -= place.disk_bytes
            for index, milli in place.devices:
                if index < count:
                    devices[index] -= milli
                    memory[index] -= place.device_memory_bytes
        for index in range(count):
            if _state(node, index) is not DeviceState.OK:
                devices[index] = 0
        amounts[WHOLE] = sum(free == MILLI for free in devices)
        amounts[DEVICES] = sum(devices)
        return amounts, devices, memory

    def _rebuild(self) -> None:
        """Make a new table and carry over the columns of every node that stayed as it was."""
        old, old_amounts, old_devices, old_memory = self.table, self.amounts, self.devices, self.device_memory
        table = NodeTable(node.description for node in self._nodes.values())
        self.table = table
        self.amounts = np.zeros((AMOUNTS, len(table)), dtype=np.int64)
        self.devices = np.zeros((table.device_slots, len(table)), dtype=np.int32)
        self.device_memory = np.zeros((table.device_slots, len(table)), dtype=np.int64)
        kept = [node_id for node_id in table.ids if node_id in old.row_of and node_id not in self._unsettled]
        into = np.array([table.row_of[node_id] for node_id in kept], dtype=np.int64)
        come = np.array([old.row_of[node_id] for node_id in kept], dtype=np.int64)
        slots = min(len(self.devices), len(old_devices))
        self.amounts[:, into] = old_amounts[:, come]
        self.devices[:slots, into] = old_devices[:slots, come]
        self.device_memory[:slots, into] = old_memory[:slots, come]
        self.closed = {
            row: self._nodes[node_id].reason_closed
            for row, node_id in enumerate(table.ids)
            if not self._nodes[node_id].open
        }
        for row, node_id in enumerate(table.ids):
            if node_id not in old.row_of or node_id in self._unsettled:
                self._write(row, self._nodes[node_id])
        self._unsettled = {}
        self._stale = False
        self.log = TouchLog()

    def _own(self) -> None:
        """Before a change: leave the arrays to a view that is still in use, and go on with copies."""
        if self._view is not None and self._view() is not None:
            self.amounts = self.amounts.copy()
            self.devices = self.devices.copy()
            self.device_memory = self.device_memory.copy()
        self._view = None


def _state(node: NodeView, index: int) -> DeviceState:
    return node.devices[index] if index < len(node.devices) else DeviceState.OK


def _exceeds(node: NodeView, place: Place) -> bool:
    """Whether a place names a device that the node no longer has."""
    return any(index >= node.description.device_count for index, _ in place.devices)


def _read_only(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
    view = array.view()
    view.flags.writeable = False
    return view
