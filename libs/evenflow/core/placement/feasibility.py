"""Which nodes can hold one member: every hard rule as one bit per node, so that each can be counted and named.

Two families. Rules (and sizes) follow from the node's description and the task alone and are worked out once per class
of demand and table. Shortages follow from what is free now. A node can take the member when no bit is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from evenflow.core.demand.task import Devices, Resources, Task, Where
from evenflow.core.fleet.columns import CPU, DISK, MEMORY, WHOLE
from evenflow.core.fleet.description import SiteDescription
from evenflow.core.fleet.scratch import Scratch
from evenflow.core.fleet.table import Bits, Integers, Mask, NodeTable
from evenflow.core.lifecycle.reasons import Reason
from evenflow.core.units import MILLI

# Rules: the node is not one the task may use.
PINNED: Final = 1 << 0
SITE: Final = 1 << 1
RESIDENCY: Final = 1 << 2
LABEL: Final = 1 << 3
MODEL: Final = 1 << 4
PRECISION: Final = 1 << 5
DEVICE_MEMORY: Final = 1 << 6
# Sizes: the node could not hold the member even when empty.
SIZE_CPU: Final = 1 << 7
SIZE_MEMORY: Final = 1 << 8
SIZE_DISK: Final = 1 << 9
SIZE_DEVICES: Final = 1 << 10
SIZES: Final = SIZE_CPU | SIZE_MEMORY | SIZE_DISK | SIZE_DEVICES
# Shortages: it could, but not now.
SHORT_CPU: Final = 1 << 11
SHORT_MEMORY: Final = 1 << 12
SHORT_DISK: Final = 1 << 13
SHORT_COUNT: Final = 1 << 14
SHORT_SHARE: Final = 1 << 15
SHORT_DEVICE_MEMORY: Final = 1 << 16
# Circumstances of one demand.
FAILED_HERE: Final = 1 << 17
APART: Final = 1 << 18
BUDGET: Final = 1 << 19
PATH: Final = 1 << 20
CROSSING: Final = 1 << 21
STAGED_DISK: Final = 1 << 22
# Why a node takes no work, by the reason its owner gives.
CLOSED: Final[dict[str, int]] = {
    reason.value: 1 << (23 + index)
    for index, reason in enumerate(
        (
            Reason.NODE_STATE,
            Reason.WINDOW,
            Reason.RECLAIM_PENDING,
            Reason.OBSERVER_BLIND,
            Reason.PERMISSION,
            Reason.HEADROOM,
            Reason.QUOTA_EXPIRY,
        )
    )
}


class Regions:
    """The region of every node, from what is described of sites; a site nobody described is a region of its own."""

    def __init__(self, table: NodeTable, sites: Sequence[SiteDescription]) -> None:
        self.sites = tuple(sites)
        described = {site.id: site for site in sites}
        self._of_site = {
            site: (described[site] if site in described else SiteDescription(site)).region_id
            for site in (*table.site_names, *described)
        }
        self._table = table
        self.upload_bits = {site.id: site.upload_bits for site in sites}
        names = sorted({self._of_site[site] for site in table.site_names})
        of_name = {name: index for index, name in enumerate(names)}
        by_site = np.array([of_name[self._of_site[site]] for site in table.site_names], dtype=np.int64)
        self.region: Integers = by_site[table.site] if len(table) else np.zeros(0, dtype=np.int64)
        self.names = tuple(names)

    def inside(self, regions: Sequence[str]) -> Mask:
        """Which nodes lie in one of the regions."""
        return np.isin(self.region, [index for index, name in enumerate(self.names) if name in regions])


_SHORT_OF: Final = {
    SIZE_CPU: SHORT_CPU,
    SIZE_MEMORY: SHORT_MEMORY,
    SIZE_DISK: SHORT_DISK,
    SIZE_DEVICES: SHORT_COUNT | SHORT_SHARE | SHORT_DEVICE_MEMORY,
}


def rules(table: NodeTable, regions: Regions, asked: Resources, where: Where) -> Integers:
    """Bits of every rule and size that forbids each node to hold one member asking for `asked`."""
    bits: Integers = np.zeros(len(table), dtype=np.int64)
    if where.nodes:
        named = [table.row_of[node] for node in where.nodes if node in table.row_of]
        allowed = np.zeros(len(table), dtype=np.bool_)
        allowed[named] = True
        bits[~allowed] |= PINNED
    if where.not_nodes:
        bits[[table.row_of[node] for node in where.not_nodes if node in table.row_of]] |= PINNED
    if where.sites:
        inside = [index for index, name in enumerate(table.site_names) if name in where.sites]
        bits[~np.isin(table.site, inside)] |= SITE
    if where.racks:
        inside = [index for index, (_, rack) in enumerate(table.rack_names) if rack in where.racks]
        bits[~np.isin(table.rack, inside)] |= SITE
    if where.regions:
        bits[~regions.inside(where.regions)] |= SITE
    if where.residency:
        bits[~regions.inside(where.residency)] |= RESIDENCY
    for key, value in where.labels:
        bits[~table.labelled(key, value)] |= LABEL
    bits[table.cpu_milli < asked.cpu_milli] |= SIZE_CPU
    bits[table.memory_bytes < asked.memory_bytes] |= SIZE_MEMORY
    bits[table.disk_bytes < asked.disk_bytes] |= SIZE_DISK
    devices = asked.devices
    if asks_device(devices):
        bits[table.device_count < max(devices.count, 1)] |= SIZE_DEVICES
        _device_rules(bits, table, devices)
    return bits


def _device_rules(bits: Integers, table: NodeTable, devices: Devices) -> None:
    """Rules about the kind of device, on the nodes that have any."""
    equipped = table.device_count > 0
    if devices.models:
        wanted = [index for index, name in enumerate(table.model_names) if name in devices.models]
        bits[equipped & ~np.isin(table.model, wanted)] |= MODEL
    if devices.precision is not None:
        bits[equipped & ~table.precise(devices.precision)] |= PRECISION
    bits[equipped & (table.device_memory_bytes < devices.memory_bytes)] |= DEVICE_MEMORY


def asks_device(devices: Devices) -> bool:
    """Whether any device is asked for at all; memory alone asks for a share of one."""
    return bool(devices.count or devices.share_milli or devices.memory_bytes)


def kept_apart(task: Task, other: Task) -> bool:
    """Whether `task` refuses to share a node with `other`, by id or by label."""
    where = task.where
    if other.tenant == task.tenant and other.id in where.apart_from:
        return True
    return any(label in other.labels for label in where.not_with)


def share_named(devices: Devices) -> int:
    """The share that is asked for, in milli-devices; 0 when it follows from the memory, or no share is asked for."""
    return 0 if devices.any_share else devices.share_milli


def share_asked(table: NodeTable, devices: Devices, rows: Integers | slice) -> tuple[Integers, Integers]:
    """What a member that shares a device takes on each of `rows`: milli-devices and bytes of device memory.

    Memory asked alone takes the share of the device that it fills, rounded up; a share asked alone takes its part of
    the memory, rounded down. Where the node's device is too small or absent the share is more than any device has.
    """
    memory = table.device_memory_bytes[rows]
    asked: Integers = np.full(len(memory), devices.memory_bytes, dtype=np.int64)
    named = share_named(devices)
    if named:
        share: Integers = np.full(len(memory), named, dtype=np.int64)
        if devices.memory_bytes:
            return share, asked
        return share, memory // MILLI * named + memory % MILLI * named // MILLI
    large_enough = np.maximum(memory, 1)
    whole, rest = devices.memory_bytes // large_enough, devices.memory_bytes % large_enough
    # Split so that bytes × 1,000 can't leave 64 bits: memory is at most 2**53 and the product below 2**63.
    share = np.maximum(whole * MILLI + -(-(rest * MILLI) // large_enough), 1)
    share[memory < devices.memory_bytes] = MILLI + 1
    return share, asked


def shortages(scratch: Scratch, known: Bits, asked: Resources) -> Bits:
    """`known` rules with the bits of everything that is short now on each node, and of nodes that take no work.

    A dimension in which the node is too small altogether is not also called short.
    """
    amounts, sizes = scratch.amounts, known & np.int32(SIZES)
    bits: Bits = known | _where(amounts[CPU] < asked.cpu_milli, SHORT_CPU)
    bits |= _where(amounts[MEMORY] < asked.memory_bytes, SHORT_MEMORY)
    bits |= _where(amounts[DISK] < asked.disk_bytes, SHORT_DISK)
    if asked.devices.count:
        bits |= _where(amounts[WHOLE] < asked.devices.count, SHORT_COUNT)
    elif asks_device(asked.devices):
        share, memory = share_asked(scratch.table, asked.devices, slice(None))
        fits = scratch.devices >= np.minimum(share, MILLI)
        some: Mask = np.logical_or.reduce(fits)
        both: Mask = np.logical_or.reduce(fits & (scratch.device_memory >= memory))
        bits |= _where(~some, SHORT_SHARE)
        bits |= _where(some & ~both & np.logical_not(known & np.int32(DEVICE_MEMORY)), SHORT_DEVICE_MEMORY)
    if sizes.any():
        for size, short in _SHORT_OF.items():
            bits &= ~_where((sizes & size).astype(np.bool_), short)
    for row, reason in sorted(scratch.closed.items()):
        bits[row] |= CLOSED.get(reason, CLOSED[Reason.NODE_STATE])
    return bits


def _where(condition: Mask, bit: int) -> Bits:
    return condition * np.int32(bit)
