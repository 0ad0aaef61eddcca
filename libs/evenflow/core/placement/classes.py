"""Classes of demand: members that ask alike share one pass of feasibility and score over the nodes.

A class is worked out once for all nodes and afterwards only where something changed. It is kept between rounds, as long
as the table of nodes stays the same; a result never depends on what was kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from evenflow.core.demand.task import Resources, Where
from evenflow.core.fleet.columns import CPU, OPEN, WHOLE, FleetView
from evenflow.core.fleet.description import SiteDescription
from evenflow.core.fleet.scratch import Scratch, empty_view
from evenflow.core.fleet.table import Bits, Integers, Mask
from evenflow.core.placement.feasibility import Regions, asks_device, rules, share_asked, share_named
from evenflow.core.placement.scoring import INFEASIBLE, RANK_MAX, scores
from evenflow.core.units import MILLI

#: Bytes of scores kept from round to round; beyond it the classes that were asked for longest ago are forgotten.
KEPT_BYTES_MAX: Final = 48 * 2**20
#: Bytes that a class keeps for each node, about.
BYTES_PER_NODE: Final = 16

EVERY: Final = slice(None)


class ClassKey(NamedTuple):
    """What makes two members the same to the engine. `order` are costs per rate of nodes, when they decide."""

    asked: Resources
    where: Where
    order: tuple[int, ...] = ()


def flat(asked: Resources, where: Where, order: tuple[int, ...]) -> tuple[object, ...]:
    """The same as one flat tuple, which is much quicker to look up than nested records."""
    devices = asked.devices
    return (
        asked.cpu_milli,
        asked.memory_bytes,
        asked.disk_bytes,
        devices.count,
        devices.share_milli,
        devices.any_share,
        devices.memory_bytes,
        devices.models,
        devices.precision,
        where.sites,
        where.regions,
        where.racks,
        where.nodes,
        where.not_nodes,
        where.labels,
        where.residency,
        order,
    )


class DemandClass:
    """One class: where a member may go (`score` below INFEASIBLE) and how well it fits there (lower is better)."""

    __slots__ = (
        "_key",
        "_known",
        "asked",
        "blocked",
        "checks_memory",
        "fits_its_memory",
        "never",
        "position",
        "possible",
        "price_rank",
        "scope",
        "score",
        "shares_device",
        "used_round",
        "vector",
    )

    def __init__(self, key: ClassKey, scope: Scope) -> None:
        table, asked = scope.scratch.table, key.asked
        self.scope = scope
        self.asked = asked
        self._key = key
        self._known: Bits | None = None
        self.possible = rules(table, scope.regions, asked, key.where) == 0
        self.shares_device = asks_device(asked.devices) and not asked.devices.count
        self.fits_its_memory = self.shares_device and not share_named(asked.devices)
        # A share that takes its part of the memory finds it wherever it finds the share, unless others took more.
        self.checks_memory = bool(asked.devices.memory_bytes)
        least = (asked.cpu_milli, asked.memory_bytes, asked.disk_bytes, asked.devices.count, 0, 1)
        self.vector: Integers = np.array(least, dtype=np.int64)[:, None]
        self.price_rank: Integers | None = None
        if key.order:
            ranks = {cost: rank for rank, cost in enumerate(sorted(set(key.order)))}
            by_rate = np.array([min(ranks[cost], RANK_MAX) for cost in key.order], dtype=np.int64)
            self.price_rank = by_rate[table.rate]
        self.score: Integers = np.empty(len(table), dtype=np.int64)
        self.position = -1
        self.blocked = -1
        self.never: dict[object, bool] = {}
        self.used_round = scope.round_number

    @property
    def known(self) -> Bits:
        """Rules and sizes that forbid each node: bits of `feasibility`."""
        if self._known is None:
            found = rules(self.scope.scratch.table, self.scope.regions, self.asked, self._key.where)
            self._known = found.astype(np.int32)
        return self._known

    def share_on(self, rows: Integers | slice = EVERY) -> tuple[Integers, Integers]:
        """Milli-devices and bytes of device memory that a sharing member takes on each of `rows`."""
        return share_asked(self.scope.scratch.table, self.asked.devices, rows)

    def share_at(self, row: int) -> tuple[int, int]:
        """The same on one node."""
        devices, memory = self.asked.devices, self.scope.scratch.table.device_memories_bytes[row]
        if not self.fits_its_memory:
            return devices.share_milli, devices.memory_bytes or memory * devices.share_milli // MILLI
        if memory < devices.memory_bytes:
            return MILLI + 1, devices.memory_bytes
        return max(-(-devices.memory_bytes * MILLI // max(memory, 1)), 1), devices.memory_bytes

    def refresh(self) -> Integers:
        """The scores as of now: looks again at the rows that changed since they were last asked for."""
        log = self.scope.scratch.log
        if self.position != log.end:
            rows = log.since(self.position) if self.position >= 0 else None
            if rows is None or len(rows) > len(self.score):
                self.score = scores(self.scope.scratch, self, None)
            else:
                self.score[rows] = scores(self.scope.scratch, self, rows)
            self.position = log.end
        return self.score

    def best(self, barred: Mask | None = None) -> int:
        """The row where a member fits best, -1 if none. Equal scores: the node whose name comes first."""
        score = self.refresh()
        if barred is not None:
            score = np.where(barred, INFEASIBLE, score)
        if not len(score):
            return -1
        row = int(score.argmin())
        return row if score[row] != INFEASIBLE else -1

    def slots(self, scratch: Scratch) -> Integers:
        """How many such members each node can hold at once, exactly."""
        amounts, asked, devices = scratch.amounts, self.asked, self.asked.devices
        count: Integers = np.full(len(scratch.table), np.iinfo(np.int32).max, dtype=np.int64)
        for row, need in enumerate((asked.cpu_milli, asked.memory_bytes, asked.disk_bytes)):
            if need:
                np.minimum(count, amounts[CPU + row] // need, out=count)
        if devices.count:
            np.minimum(count, amounts[WHOLE] // devices.count, out=count)
        elif self.shares_device:
            share, memory = self.share_on()
            held = scratch.devices // share
            by_memory = scratch.device_memory // np.maximum(memory, 1)
            held = np.where(memory > 0, np.minimum(held, by_memory), held)
            np.minimum(count, np.maximum(held, 0).sum(axis=0), out=count)
        count[~self.possible | (amounts[OPEN] == 0)] = 0
        return np.maximum(count, 0)

    def devices_for(self, scratch: Scratch, row: int) -> tuple[tuple[int, int], ...]:
        """The devices a member gets on a node that can hold it: lowest whole ones, or the fullest that still fits."""
        count = self.asked.devices.count
        if count:
            free = scratch.devices[:, row].tolist()
            whole = [index for index, milli in enumerate(free) if milli == MILLI]
            return tuple((index, MILLI) for index in whole[:count])
        if not self.shares_device:
            return ()
        share, memory = self.share_at(row)
        free = scratch.devices[:, row].tolist()
        if self.checks_memory or scratch.is_skewed:
            room = scratch.device_memory[:, row].tolist()
            free = [milli if held >= memory else -1 for milli, held in zip(free, room, strict=True)]
        return ((free.index(min([milli for milli in free if milli >= share])), share),)

    def device_memory_at(self, row: int) -> int:
        """Bytes of device memory that a member holds on each of its devices there."""
        if self.shares_device:
            return self.share_at(row)[1]
        return self.scope.scratch.table.device_memories_bytes[row] if self.asked.devices.count else 0


class Scope:
    """All classes over one table and one description of sites, with the scratch they look at."""

    def __init__(self, view: FleetView, sites: Sequence[SiteDescription]) -> None:
        self.regions = Regions(view.table, sites)
        self.scratch = Scratch(view)
        self.empty = Scratch(empty_view(view))
        self.round_number = 0
        self._classes: dict[tuple[object, ...], DemandClass] = {}
        bytes_each = BYTES_PER_NODE * max(len(view.table), 1)
        self._classes_max = max(KEPT_BYTES_MAX // bytes_each, 16)

    def of(self, asked: Resources, where: Where, order: tuple[int, ...] = ()) -> DemandClass:
        """The class of members that ask for `asked` under the hard rules of `where` about what nodes are.

        Rules about who else is on a node (`apart_from`, `not_with`) make no class: they change with every placement.
        """
        key = flat(asked, where, order)
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = DemandClass(ClassKey(asked, where, order), self)
        found.used_round = self.round_number
        return found

    def forget_surplus(self) -> None:
        """Between rounds: drop the classes that were used longest ago beyond what may be kept."""
        if len(self._classes) > self._classes_max:
            keys = sorted(self._classes, key=lambda key: self._classes[key].used_round)
            for key in keys[: len(keys) - self._classes_max // 2]:
                del self._classes[key]


def scope_of(view: FleetView, sites: Sequence[SiteDescription]) -> Scope:
    """The scope kept from earlier rounds of the same fleet, brought up to the view, or a new one."""
    kept = view.memo.content
    if isinstance(kept, Scope) and kept.regions.sites == tuple(sites) and kept.scratch.follow(view):
        kept.forget_surplus()
        kept.round_number += 1
        return kept
    scope = Scope(view, sites)
    view.memo.content = scope
    return scope
