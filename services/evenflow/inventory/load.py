"""Live load in memory, and its packed frames: changed sites are flushed at most once a period."""

from __future__ import annotations

from typing import Final

import numpy as np

from evenflow.core.lifecycle.node import DeviceState
from evenflow.core.probing.load_frame import DEVICE_ROW, NODE_ROW, LoadFrame, pack
from evenflow.events.contracts.agent import NodeHeartbeat

STATE_NUMBER: Final = {state: number for number, state in enumerate(DeviceState)}


class SiteLoad:
    """One site's rows. A node gets its rows when first heard, or anew when its device count changes."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.index: dict[str, tuple[int, int, int]] = {}
        self.changed = False
        self._nodes = np.zeros(0, NODE_ROW)
        self._devices = np.zeros(0, DEVICE_ROW)
        self._take_columns()

    def put(self, beat: NodeHeartbeat, *, now_ms: int) -> None:
        """Take one heartbeat; `now_ms` is this process's wall clock, the row's time."""
        count = len(beat.device_states)
        place = self.index.get(beat.node)
        if place is None or place[2] != count:
            place = self._make_room(beat.node, count)
        row, first, _ = place
        self._nodes[row] = (now_ms, beat.cpu_used_milli, beat.memory_used_bytes, beat.running_count, first)
        if count:
            end = first + count
            self._memory[first:end] = beat.device_memory_used_bytes
            self._used[first:end] = beat.device_used_milli
            self._utilisation[first:end] = beat.device_utilisation_milli
            self._state[first:end] = [STATE_NUMBER[state] for state in beat.device_states]
        self.changed = True

    def _make_room(self, node: str, count: int) -> tuple[int, int, int]:
        """Rows for a node. Devices stand in the order of their nodes, so that one node ends where the next begins."""
        row, first, before = self.index.get(node, (len(self.names), len(self._devices), 0))
        if row == len(self.names):
            self.names.append(node)
            self._nodes = np.concatenate([self._nodes, np.zeros(1, NODE_ROW)])
        room = np.zeros(count, DEVICE_ROW)
        self._devices = np.concatenate([self._devices[:first], room, self._devices[first + before :]])
        self.index[node] = (row, first, count)
        for behind in self.names[row + 1 :]:
            its_row, its_first, its_count = self.index[behind]
            self.index[behind] = (its_row, its_first + count - before, its_count)
        self._nodes["first"][row + 1 :] += count - before
        self._take_columns()
        return self.index[node]

    def _take_columns(self) -> None:
        self._memory = self._devices["memory_used_bytes"]
        self._used = self._devices["used_milli"]
        self._utilisation = self._devices["utilisation_milli"]
        self._state = self._devices["state"]

    def packed(self) -> bytes:
        """The frame of all rows."""
        return pack(LoadFrame(tuple(self.names), self._nodes, self._devices))


class LiveRows:
    """The load of every site."""

    def __init__(self) -> None:
        self.sites: dict[str, SiteLoad] = {}

    def put(self, site: str, beat: NodeHeartbeat, *, now_ms: int) -> None:
        """Take one heartbeat of a node at a site."""
        load = self.sites.get(site)
        if load is None:
            load = self.sites[site] = SiteLoad()
        load.put(beat, now_ms=now_ms)

    def take_changed(self) -> list[tuple[str, bytes]]:
        """(site, frame) of every site that changed since the last call, in order of site."""
        out: list[tuple[str, bytes]] = []
        for site in sorted(self.sites):
            load = self.sites[site]
            if load.changed:
                load.changed = False
                out.append((site, load.packed()))
        return out

    def mark_all_changed(self) -> None:
        """Write every frame again: the store may have lost them."""
        for load in self.sites.values():
            load.changed = True
