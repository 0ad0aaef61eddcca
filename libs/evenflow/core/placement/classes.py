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
from evenflow.core.fleet.table import Integers, Mask
from evenflow.core.placement.feasibility import Regions, asks_device, rules, share_asked
from evenflow.core.placement.scoring import INFEASIBLE, RANK_MAX, scores
from evenflow.core.units import MILLI

#: Bytes of scores kept from round to round; beyond it the classes that were asked for longest ago are forgotten.
KEPT_BYTES_MAX: Final = 48 * 2**20
#: Arrays of one entry per node that a class keeps, about.
ARRAYS_PER_CLASS: Final = 5

ANYWHERE: Final = Where()


class ClassKey(NamedTuple):
    """What makes two members the same to the engine. `order` are costs per rate of nodes, when they decide."""

    asked: Resources
    where: Where
    order: tuple[int, ...] = ()


class DemandClass:
    """One class: where a member may go (`score` below INFEASIBLE) and how well it fits there (lower is better)."""

    __slots__ = (
        "asked",
        "blocked",
        "known",
        "memory",
        "never",
        "position",
        "possible",
        "price_rank",
        "scope",
        "score",
        "share",
        "vector",
    )

    def __init__(self, key: ClassKey, scope: Scope) -> None:
        table, asked = scope.scratch.table, key.asked
        self.scope = scope
        self.asked = asked
        self.known: Integers = rules(table, scope.regions, asked, key.where)
        self.possible = self.known == 0
        self.share: Integers | None = None
        self.memory: Integers | None = None
        if asks_device(asked.devices) and not asked.devices.count:
            self.share, self.memory = share_asked(table, asked.devices)
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
        elif self.share is not None and self.memory is not None:
            held = scratch.devices // self.share
            by_memory = scratch.device_memory // np.maximum(self.memory, 1)
            held = np.where(self.memory > 0, np.minimum(held, by_memory), held)
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
        if self.share is None or self.memory is None:
            return ()
        share, memory = int(self.share[row]), int(self.memory[row])
        free, room = scratch.devices[:, row].tolist(), scratch.device_memory[:, row].tolist()
        fitting = [(milli, index) for index, milli in enumerate(free) if milli >= share and room[index] >= memory]
        return ((min(fitting)[1], share),)

    def device_memory_at(self, row: int) -> int:
        """Bytes of device memory that a member holds on each of its devices there."""
        if self.memory is not None:
            return int(self.memory[row])
        return int(self.scope.scratch.table.device_memory_bytes[row]) if self.asked.devices.count else 0


class Scope:
    """All classes over one table and one description of sites, with the scratch they look at."""

    def __init__(self, view: FleetView, sites: Sequence[SiteDescription]) -> None:
        self.regions = Regions(view.table, sites)
        self.scratch = Scratch(view)
        self.empty = Scratch(empty_view(view))
        self.round_number = 0
        self._classes: dict[ClassKey, DemandClass] = {}
        bytes_each = 8 * ARRAYS_PER_CLASS * max(len(view.table), 1)
        self._classes_max = max(KEPT_BYTES_MAX // bytes_each, 16)

    def of(self, asked: Resources, where: Where, order: tuple[int, ...] = ()) -> DemandClass:
        """The class of members that ask for `asked` under the hard rules of `where`."""
        key = ClassKey(asked, where, order)
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = DemandClass(key, self)
        return found

    def forget_surplus(self) -> None:
        """Between rounds: drop the oldest classes beyond what may be kept."""
        surplus = len(self._classes) - self._classes_max
        if surplus > 0:
            for key in list(self._classes)[:surplus]:
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


def rules_of(where: Where) -> Where:
    """The part of `where` that rules out nodes by what they are; the rest depends on who else is there."""
    if not where.apart_from and not where.not_with:
        return where
    return Where(
        where.sites, where.regions, where.racks, where.nodes, where.not_nodes, (), (), where.labels, where.residency
    )
