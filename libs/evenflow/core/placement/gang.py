"""Gangs: all members or none, in the smallest domain of the topology that holds them.

Members that ask alike are counted: how many each node can hold is exact, so a domain holds the gang when its nodes'
counts add up. Members that ask differently are packed by a bounded search that tries the tightest seat first. Nothing
is taken until every member has a seat, so two gangs can never each hold half.

Levels from the closest: node, rack, site, region, and "" for the whole pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evenflow.core.demand.task import Adjacency, Task
from evenflow.core.fleet.columns import CPU, DEVICES, DISK, MEMORY, OPEN
from evenflow.core.fleet.scratch import Scratch
from evenflow.core.fleet.table import Integers, Mask
from evenflow.core.lifecycle.reasons import Blocker, Reason
from evenflow.core.placement.classes import DemandClass, Scope
from evenflow.core.placement.scoring import INFEASIBLE
from evenflow.core.units import MILLI

LEVELS: Final = ("node", "rack", "site", "region", "")
#: Seats tried for one gang of unlike members before the search gives up.
STEPS_MAX: Final = 2_000
#: Domains of one level in which unlike members are tried.
DOMAINS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class Seating:
    """The row of each member, and the level of the domain that holds them all.

    `devices` are the device indexes of each member where they were part of the search, else None.
    """

    rows: tuple[int, ...]
    level: str = ""
    devices: tuple[tuple[int, ...], ...] | None = None


def levels_allowed(adjacency: Adjacency | None, waited_ms: int, widest: str = "") -> tuple[str, ...]:
    """Levels a gang may spread over now, closest first; each `wait_ms` waited relaxes `relax` by one level."""
    last = LEVELS.index(widest)
    if adjacency is not None:
        own = LEVELS.index(adjacency.level)
        if adjacency.then == "relax":
            own += waited_ms // adjacency.wait_ms if adjacency.wait_ms > 0 else len(LEVELS)
        last = min(last, own)
    return LEVELS[: last + 1]


def relaxes_ms(adjacency: Adjacency | None, queued_ms: int, now_ms: int) -> int | None:
    """When waiting alone changes what the gang may do next; None = never."""
    if adjacency is None or adjacency.then == "wait" or adjacency.wait_ms <= 0:
        return None
    if adjacency.then == "fail":
        due = queued_ms + adjacency.wait_ms
        return due if due > now_ms else None
    steps = (now_ms - queued_ms) // adjacency.wait_ms + 1
    if LEVELS.index(adjacency.level) + steps >= len(LEVELS):
        return None
    return queued_ms + steps * adjacency.wait_ms


def gave_up(task: Task, waited_ms: int) -> Blocker | None:
    """Whether a gang has waited for closeness as long as it would, and asks to fail then."""
    adjacency = task.adjacency
    if task.members == 1 or adjacency is None or adjacency.then != "fail" or waited_ms < adjacency.wait_ms:
        return None
    waited = f"not within {adjacency.wait_ms // 1_000} s"
    return Blocker(Reason.ADJACENCY, adjacency.level, f"all members in one {adjacency.level}", waited)


def domain_of(scope: Scope, level: str) -> Integers:
    """The domain of each node at a level, as indexes whose order is the order of names."""
    table = scope.scratch.table
    if level == "rack":
        return table.rack
    if level == "site":
        return table.site
    if level == "region":
        return scope.regions.region
    return np.arange(len(table), dtype=np.int64) if level == "node" else np.zeros(len(table), dtype=np.int64)


def sums_of(domain: Integers, values: Integers) -> Integers:
    """Sum of `values` per domain."""
    sums: Integers = np.zeros(int(domain.max(initial=-1)) + 1, dtype=np.int64)
    np.add.at(sums, domain, values)
    return sums


def slots_of(demand: DemandClass, scratch: Scratch, task: Task, barred: Mask | None) -> Integers:
    """Members of one class that each node can take, under `one_per_node` and the demand's own exclusions."""
    slots = demand.slots(scratch)
    if task.one_per_node:
        np.minimum(slots, 1, out=slots)
    if barred is not None:
        slots[barred] = 0
    return slots


def seat_alike(
    scope: Scope,
    demand: DemandClass,
    task: Task,
    levels: Sequence[str],
    barred: Mask | None = None,
    scratch: Scratch | None = None,
) -> Seating | None:
    """Seats for `task.members` alike members, in the tightest domain of the closest level that has enough."""
    where = scratch or scope.scratch
    slots = slots_of(demand, where, task, barred)
    members = task.members
    for level in levels:
        domain = domain_of(scope, level)
        sums = sums_of(domain, slots)
        enough = sums >= members
        if not enough.any():
            continue
        chosen = int(np.where(enough, sums, INFEASIBLE).argmin())
        rows = np.flatnonzero((domain == chosen) & (slots > 0))
        seats = _fill(scope, demand, rows, slots[rows], members, one_per_node=task.one_per_node)
        return Seating(seats, level)
    return None


def _fill(
    scope: Scope, demand: DemandClass, rows: Integers, slots: Integers, members: int, *, one_per_node: bool
) -> tuple[int, ...]:
    """The fewest nodes: the roomiest first, and for the last members the node that they fill best."""
    if one_per_node:
        order = np.lexsort((rows, demand.refresh()[rows]))[:members]
        chosen = [(int(row), 1) for row in rows[order]]
    else:
        chosen = []
        for roomiest in np.lexsort((rows, -slots)):
            just = np.flatnonzero(slots >= members)
            at = just[np.lexsort((rows[just], slots[just]))[0]] if len(just) else roomiest
            count = min(int(slots[at]), members)
            chosen.append((int(rows[at]), count))
            members -= count
            slots[at] = 0
            if not members:
                break
    table = scope.scratch.table
    chosen.sort(key=lambda seat: (int(table.site[seat[0]]), int(table.rack[seat[0]]), seat[0]))
    return tuple(row for row, count in chosen for _ in range(count))


def seat_unlike(
    scope: Scope,
    demands: Sequence[DemandClass],
    task: Task,
    levels: Sequence[str],
    barred: Mask | None = None,
    scratch: Scratch | None = None,
) -> Seating | None:
    """Seats for members that ask differently; `demands` has the class of each."""
    where = scratch or scope.scratch
    usable = where.amounts[OPEN] > 0
    if barred is not None:
        usable &= ~barred
    for level in levels:
        domain = domain_of(scope, level)
        for candidate in _roomy_domains(where, demands, domain, usable):
            rows = np.flatnonzero((domain == candidate) & usable)
            seats = _Search(where, demands, rows.tolist(), one_per_node=task.one_per_node).seats()
            if seats is not None:
                return Seating(tuple(row for row, _ in seats), level, tuple(devices for _, devices in seats))
    return None


def never_seats(
    scope: Scope,
    classes: tuple[DemandClass, ...],
    task: Task,
    forbidden: Sequence[str],
    closed: Mask | None = None,
    widest: str = "",
) -> bool:
    """Whether no node, or none together, could hold the task even if all were empty.

    Sites that are `forbidden` and nodes that are `closed` are left out; a gang stays within one domain of `widest`.
    """
    table = scope.scratch.table
    barred: Mask = np.isin(table.site, [table.site_names.index(site) for site in forbidden])
    if closed is not None:
        barred |= closed
    if len(classes) == 1:
        return not bool((classes[0].possible & ~barred).any())
    adjacency = task.adjacency if task.adjacency and task.adjacency.then == "wait" else None
    levels = levels_allowed(adjacency, 0, widest)
    if task.member_resources:
        return seat_unlike(scope, classes, task, levels, barred, scope.empty) is None
    return seat_alike(scope, classes[0], task, levels, barred, scope.empty) is None


def _roomy_domains(scratch: Scratch, demands: Sequence[DemandClass], domain: Integers, usable: Mask) -> list[int]:
    """Domains whose nodes together have what all members need, the tightest first."""
    able: Mask | None = None
    for amount, need in (
        (CPU, sum(demand.asked.cpu_milli for demand in demands)),
        (MEMORY, sum(demand.asked.memory_bytes for demand in demands)),
        (DISK, sum(demand.asked.disk_bytes for demand in demands)),
        (DEVICES, sum(demand.asked.devices.total_milli for demand in demands)),
    ):
        free = sums_of(domain, np.where(usable, np.maximum(scratch.amounts[amount], 0), 0))
        able = (free >= need) if able is None else able & (free >= need)
    if able is None:
        return []
    room = sums_of(domain, np.where(usable, scratch.amounts[DEVICES] + scratch.amounts[CPU], 0))
    found = np.flatnonzero(able)
    return [int(index) for index in found[np.lexsort((found, room[found]))][:DOMAINS_MAX]]


class _Search:
    """Depth first, largest member first, fullest node first, at most STEPS_MAX seats tried."""

    def __init__(
        self, scratch: Scratch, demands: Sequence[DemandClass], rows: Sequence[int], *, one_per_node: bool
    ) -> None:
        self._demands = demands
        self._one_per_node = one_per_node
        self._rows = rows
        self._steps = 0
        self._amounts = {row: scratch.amounts[: DISK + 1, row].tolist() for row in rows}
        self._devices = {row: scratch.devices[:, row].tolist() for row in rows}
        self._memory = {row: scratch.device_memory[:, row].tolist() for row in rows}
        kinds = list(dict.fromkeys(demands))
        memory = scratch.table.device_memory_bytes
        self._kind_of = {row: (int(memory[row]), *(bool(kind.possible[row]) for kind in kinds)) for row in rows}
        self._seats: dict[int, tuple[int, tuple[int, ...]]] = {}
        self._order = sorted(range(len(demands)), key=lambda member: (_bulk(demands[member]), -member), reverse=True)

    def seats(self) -> tuple[tuple[int, tuple[int, ...]], ...] | None:
        """Row and devices of each member in order, or None when nothing was found."""
        if not self._seat(0):
            return None
        return tuple(self._seats[member] for member in range(len(self._demands)))

    def _seat(self, depth: int) -> bool:
        if depth == len(self._order):
            return True
        member = self._order[depth]
        demand = self._demands[member]
        for row, devices in self._choices(demand):
            self._steps += 1
            if self._steps > STEPS_MAX:
                return False
            self._move(demand, row, devices, -1)
            self._seats[member] = (row, devices)
            if self._seat(depth + 1):
                return True
            del self._seats[member]
            self._move(demand, row, devices, 1)
        return False

    def _choices(self, demand: DemandClass) -> list[tuple[int, tuple[int, ...]]]:
        """Where a member could sit: row and devices, tightest first; nodes in the same state count once."""
        asked = demand.asked
        found: list[tuple[tuple[int, ...], int, tuple[int, ...]]] = []
        seen: dict[object, None] = {}
        taken = dict.fromkeys(row for row, _ in self._seats.values()) if self._one_per_node else {}
        for row in self._rows:
            cpu, memory, disk = self._amounts[row]
            if row in taken or not demand.possible[row]:
                continue
            if cpu < asked.cpu_milli or memory < asked.memory_bytes or disk < asked.disk_bytes:
                continue
            for devices in self._device_choices(demand, row):
                free = self._devices[row]
                state = (self._kind_of[row], cpu, memory, disk, tuple(free), tuple(self._memory[row]), devices)
                if state in seen:
                    continue
                seen[state] = None
                left = sum(free[index] for index in devices)
                found.append(((left, sum(free), cpu, row), row, devices))
        return [(row, devices) for _, row, devices in sorted(found)]

    def _device_choices(self, demand: DemandClass, row: int) -> list[tuple[int, ...]]:
        free, room = self._devices[row], self._memory[row]
        count = demand.asked.devices.count
        if count:
            whole = [index for index, milli in enumerate(free) if milli == MILLI]
            return [tuple(whole[:count])] if len(whole) >= count else []
        if not demand.shares_device:
            return [()]
        share, memory = demand.share_at(row)
        distinct: dict[tuple[int, int], int] = {}
        for index, milli in enumerate(free):
            if milli >= share and room[index] >= memory:
                distinct.setdefault((milli, room[index]), index)
        return [(index,) for _, index in sorted(distinct.items())]

    def _move(self, demand: DemandClass, row: int, devices: tuple[int, ...], sign: int) -> None:
        asked = demand.asked
        amounts = self._amounts[row]
        amounts[CPU] += sign * asked.cpu_milli
        amounts[MEMORY] += sign * asked.memory_bytes
        amounts[DISK] += sign * asked.disk_bytes
        share = demand.share_at(row)[0] if demand.shares_device else MILLI
        for index in devices:
            self._devices[row][index] += sign * share
            self._memory[row][index] += sign * demand.device_memory_at(row)


def _bulk(demand: DemandClass) -> tuple[int, int, int, int]:
    asked = demand.asked
    return (asked.devices.total_milli, asked.cpu_milli, asked.memory_bytes, asked.disk_bytes)
