"""Live load in memory, and its packed frames: changed sites are flushed at most once a period."""

from __future__ import annotations

import numpy as np

from evenflow.core.lifecycle.node import DeviceState
from evenflow.core.probing.load_frame import DEVICE_ROW, NODE_ROW, LoadFrame, pack
from evenflow.events.contracts.agent import NodeHeartbeat

STATE_NUMBER = {state: number for number, state in enumerate(DeviceState)}


class SiteLoad:
    """One site's rows. A node gets its rows when first heard, or anew when its device count changes."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.index: dict[str, int] = {}
        self.nodes = np.zeros(0, NODE_ROW)
        self.devices = np.zeros(0, DEVICE_ROW)
        self.counts: list[int] = []
        self.changed = False

    def put(self, beat: NodeHeartbeat, *, now_ms: int) -> None:
        """Take one heartbeat; `now_ms` is this process's wall clock, the row's time."""
        count = len(beat.devices)
        row = self.index.get(beat.node)
        if row is None or self.counts[row] != count:
            row = self._make_room(beat.node, count)
        first = int(self.nodes["first"][row])
        self.nodes[row] = (now_ms, beat.cpu_used_milli, beat.memory_used_bytes, beat.running_count, first)
        if count:
            self.devices[first : first + count] = [
                (d.memory_used_bytes, d.used_milli, d.utilisation_milli, STATE_NUMBER[d.state]) for d in beat.devices
            ]
        self.changed = True

    def _make_room(self, node: str, count: int) -> int:
        known = self.index.get(node)
        if known is None:
            known = self.index[node] = len(self.names)
            self.names.append(node)
            self.counts.append(count)
            self.nodes = np.concatenate([self.nodes, np.zeros(1, NODE_ROW)])
        self.counts[known] = count
        self.nodes["first"][known] = len(self.devices)
        self.devices = np.concatenate([self.devices, np.zeros(count, DEVICE_ROW)])
        return known

    def packed(self) -> bytes:
        """The frame of all rows."""
        return pack(LoadFrame(tuple(self.names), self.nodes, self.devices))


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
