"""Why a task waits: every blocker with what it needs, what there is and how many nodes it rules out. Nothing else.

For one member: each node has the set of what rules it out. A set that contains another node's whole set says nothing
more, so what is named are the smallest sets together: take all of it away and the task starts; and where one blocker
rules out every node, it alone would hold the task. Nodes too small for the task are not named while a larger one
exists.

For a gang: a shortage is named when by itself it leaves seats for too few members, and adjacency when only the
closeness that is asked for is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from evenflow.core.demand.task import Resources, Task
from evenflow.core.fleet.columns import CPU, DISK, MEMORY, OPEN, WHOLE
from evenflow.core.fleet.scratch import Scratch
from evenflow.core.fleet.table import Bits, Integers, Mask
from evenflow.core.lifecycle.reasons import Blocker, Reason
from evenflow.core.placement import feasibility as rule
from evenflow.core.placement.classes import DemandClass, Scope
from evenflow.core.placement.gang import domain_of, slots_of, sums_of
from evenflow.core.units import MILLI, cores_text, devices_text, milli_text, money_text, size_text

#: Different sets of blockers taken one by one before sorting is the quicker way.
DISTINCT_MAX: Final = 24


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What rules out nodes for this demand alone: rows it must avoid, and bits of sites by row (data, budget)."""

    failed_here: tuple[int, ...] = ()
    apart: tuple[int, ...] = ()
    by_row: Bits | None = None

    def on(self, bits: Bits) -> Bits:
        """`bits` with these added."""
        if self.failed_here or self.apart:
            bits = bits.copy()
            bits[list(self.failed_here)] |= rule.FAILED_HERE
            bits[list(self.apart)] |= rule.APART
        return bits if self.by_row is None else bits | self.by_row

    @property
    def barred(self) -> tuple[int, ...]:
        """All rows that are ruled out one by one."""
        return (*self.failed_here, *self.apart)


def blockers_of(
    scope: Scope, classes: tuple[DemandClass, ...], task: Task, around: Circumstances, level: str
) -> tuple[Blocker, ...]:
    """What keeps the task from every seating now; empty when there is one. `level`: the widest level allowed."""
    if len(classes) == 1:
        named, bits = _single(scope, classes[0], around)
        return _report(scope, classes[0].asked, task, named, bits, 1)
    kinds = dict.fromkeys(classes)
    found: dict[tuple[Reason, str], Blocker] = {}
    for kind in kinds:
        members = sum(demand is kind for demand in classes)
        named, bits = _gang(scope, kind, task, around, members)
        for blocker in _report(scope, kind.asked, task, named, bits, members):
            found.setdefault((blocker.reason, blocker.dimension), blocker)
    if not found:
        found[Reason.ADJACENCY, level] = _adjacency(scope, classes, task, around, level)
    return tuple(found.values())


def _row_bits(scope: Scope, demand: DemandClass, around: Circumstances) -> Bits:
    return around.on(rule.shortages(scope.scratch, demand.known, demand.asked))


def _single(scope: Scope, demand: DemandClass, around: Circumstances) -> tuple[int, Bits]:
    bits = _row_bits(scope, demand, around)
    return _smallest(bits), bits


def _smallest(bits: Bits) -> int:
    """The smallest sets of all nodes together; nodes that are too small count only if all are."""
    sets = _distinct(bits)
    if 0 in sets:
        return 0
    large = [value for value in sets if not value & rule.SIZES] or sets
    named = 0
    for value in large:
        if not any(other != value and other & value == other for other in large):
            named |= value
    return named


def _distinct(bits: Bits) -> list[int]:
    """The different values, ascending. There are few, which makes this quicker than sorting."""
    values: list[int] = []
    rest = bits
    while len(rest) and len(values) < DISTINCT_MAX:
        values.append(int(rest[0]))
        rest = rest[rest != rest[0]]
    return sorted(values) + [int(value) for value in np.unique(rest)]


def _gang(scope: Scope, demand: DemandClass, task: Task, around: Circumstances, members: int) -> tuple[int, Bits]:
    """Bits that by themselves leave too few seats; if none does but seats are short, what is scarcest on the nodes."""
    bits = _row_bits(scope, demand, around)
    named = 0
    for bit, seats in _seats_by_dimension(scope.scratch, demand, bits).items():
        if int((np.minimum(seats, 1) if task.one_per_node else seats).sum()) < members:
            named |= bit
    barred = np.zeros(len(bits), dtype=np.bool_)
    barred[list(around.barred)] = True
    if around.by_row is not None:
        barred |= around.by_row != 0
    if named or int(slots_of(demand, scope.scratch, task, barred).sum()) >= members:
        return named, bits
    ruled_out = bits[bits != 0]
    if len(ruled_out):
        return _smallest(ruled_out), bits
    scarcest = rule.SHORT_COUNT if demand.asked.devices.count else rule.SHORT_SHARE if demand.shares_device else 0
    return scarcest | rule.SHORT_CPU, bits


def _seats_by_dimension(scratch: Scratch, demand: DemandClass, bits: Bits) -> dict[int, Integers]:
    """Seats per node if only one dimension mattered."""
    amounts, asked = scratch.amounts, demand.asked
    plenty = np.iinfo(np.int32).max
    seats: dict[int, Integers] = {}
    sizes = {CPU: rule.SIZE_CPU, MEMORY: rule.SIZE_MEMORY, DISK: rule.SIZE_DISK}
    for amount, bit, need in (
        (CPU, rule.SHORT_CPU, asked.cpu_milli),
        (MEMORY, rule.SHORT_MEMORY, asked.memory_bytes),
        (DISK, rule.SHORT_DISK, asked.disk_bytes),
    ):
        if need:
            seats[bit] = np.maximum(amounts[amount], 0) // need
            seats[sizes[amount]] = np.where(bits & sizes[amount], 0, plenty)
    if asked.devices.count:
        seats[rule.SHORT_COUNT] = amounts[WHOLE] // asked.devices.count
    elif demand.shares_device:
        seats[rule.SHORT_SHARE] = np.maximum(scratch.devices // demand.share_on()[0], 0).sum(axis=0)
    short = rule.SHORT_CPU | rule.SHORT_MEMORY | rule.SHORT_DISK | rule.SHORT_COUNT | rule.SHORT_SHARE
    rest = int(np.bitwise_or.reduce(bits)) if len(bits) else 0
    for bit in _bits_in(rest & ~short):
        seats.setdefault(bit, np.where(bits & bit, 0, plenty))
    # A kind of device nobody has is short as well as too small; the size says more.
    if rest & rule.SIZE_DEVICES and not int(seats[rule.SIZE_DEVICES].sum()):
        seats.pop(rule.SHORT_COUNT, None)
        seats.pop(rule.SHORT_SHARE, None)
    return seats


def _bits_in(value: int) -> list[int]:
    return [1 << place for place in range(value.bit_length()) if value >> place & 1]


def _adjacency(
    scope: Scope, classes: tuple[DemandClass, ...], task: Task, around: Circumstances, level: str
) -> Blocker:
    """There are seats enough, only not close enough together."""
    barred = np.zeros(len(scope.scratch.table), dtype=np.bool_)
    barred[list(around.barred)] = True
    if around.by_row is not None:
        barred |= around.by_row != 0
    name = level or "pool"
    best = 0
    domains = 0
    for kind in dict.fromkeys(classes):
        sums = sums_of(domain_of(scope, level), slots_of(kind, scope.scratch, task, barred))
        best, domains = max(best, int(sums.max(initial=0))), len(sums)
    return Blocker(
        Reason.ADJACENCY,
        dimension=name,
        needed=f"{len(classes)} members in one {name}",
        available=f"{min(best, len(classes))} in the best of {domains}",
        nodes=len(scope.scratch.table),
    )


Text = Callable[[Scope, Resources, Task, Mask, int], tuple[str, str]]


def _free(amount: int, text: Callable[[int], str], need: Callable[[Resources], int]) -> Text:
    """Texts of a shortage: what all members need, and the most that is free on one usable node (all, for a gang)."""

    def texts(scope: Scope, asked: Resources, _task: Task, ruled: Mask, members: int) -> tuple[str, str]:
        amounts = scope.scratch.amounts
        free = np.maximum(amounts[amount], 0)[ruled | (amounts[OPEN] > 0)]
        there = int(free.max(initial=0)) if members == 1 else int(free.sum())
        return text(need(asked) * members), text(there)

    return texts


def _size(column: Callable[[Scope], Integers], text: Callable[[int], str], need: Callable[[Resources], int]) -> Text:
    """Texts of a size: what one member needs on one node, and the largest node."""

    def texts(scope: Scope, asked: Resources, _task: Task, _ruled: Mask, _members: int) -> tuple[str, str]:
        return text(need(asked)), text(int(column(scope).max(initial=0)))

    return texts


def _wanted(words: Callable[[Resources, Task], str], there: str) -> Text:
    """Texts of a rule: what it asks for, and that the node has something else."""

    def texts(_scope: Scope, asked: Resources, task: Task, _ruled: Mask, _members: int) -> tuple[str, str]:
        return words(asked, task), there

    return texts


def _share_texts(scope: Scope, asked: Resources, _task: Task, _ruled: Mask, members: int) -> tuple[str, str]:
    free = scope.scratch.devices
    devices = asked.devices
    share = devices_text(devices.share_milli) if rule.share_named(devices) else size_text(devices.memory_bytes)
    needed = share if members == 1 else f"{members} × {share}"
    return f"{needed} on one device", f"{milli_text(int(free.max(initial=0)))} on the freest"


def _budget_texts(_scope: Scope, _asked: Resources, task: Task, _ruled: Mask, _members: int) -> tuple[str, str]:
    return "more than the budget", money_text(task.budget_micro or 0)


def _largest_device(scope: Scope) -> Integers:
    return scope.scratch.table.device_memory_bytes


def _device_need(asked: Resources) -> int:
    return max(asked.devices.count, 1) * MILLI


#: Every bit: its reason, the dimension it is reported under, and its texts; in the order of reports.
_REPORTS: dict[int, tuple[Reason, str, Text]] = {
    rule.BUDGET: (Reason.BUDGET, "budget", _budget_texts),
    rule.SIZE_CPU: (
        Reason.NODE_SIZE,
        "cpu",
        _size(lambda scope: scope.scratch.table.cpu_milli, cores_text, lambda asked: asked.cpu_milli),
    ),
    rule.SIZE_MEMORY: (
        Reason.NODE_SIZE,
        "memory",
        _size(lambda scope: scope.scratch.table.memory_bytes, size_text, lambda asked: asked.memory_bytes),
    ),
    rule.SIZE_DISK: (
        Reason.NODE_SIZE,
        "disk",
        _size(lambda scope: scope.scratch.table.disk_bytes, size_text, lambda asked: asked.disk_bytes),
    ),
    rule.SIZE_DEVICES: (
        Reason.NODE_SIZE,
        "devices",
        _size(lambda scope: scope.scratch.table.device_count * MILLI, devices_text, _device_need),
    ),
    rule.MODEL: (
        Reason.DEVICE_MODEL,
        "devices.models",
        _wanted(lambda asked, _task: " or ".join(asked.devices.models), "other models"),
    ),
    rule.PRECISION: (
        Reason.PRECISION,
        "devices.precision",
        _wanted(lambda asked, _task: asked.devices.precision or "", "not known to be supported"),
    ),
    rule.DEVICE_MEMORY: (
        Reason.DEVICE_MEMORY,
        "devices.memory",
        _size(_largest_device, size_text, lambda asked: asked.devices.memory_bytes),
    ),
    rule.SHORT_COUNT: (
        Reason.DEVICE_COUNT,
        "devices",
        _free(WHOLE, lambda count: devices_text(count * MILLI), lambda asked: asked.devices.count),
    ),
    rule.SHORT_SHARE: (Reason.DEVICE_SHARE, "devices", _share_texts),
    rule.SHORT_DEVICE_MEMORY: (
        Reason.DEVICE_MEMORY,
        "devices.memory",
        _wanted(lambda asked, _task: size_text(asked.devices.memory_bytes), "less on every device with room"),
    ),
    rule.SHORT_CPU: (Reason.CPU, "cpu", _free(CPU, cores_text, lambda asked: asked.cpu_milli)),
    rule.SHORT_MEMORY: (Reason.MEMORY, "memory", _free(MEMORY, size_text, lambda asked: asked.memory_bytes)),
    rule.SHORT_DISK: (Reason.DISK, "disk", _free(DISK, size_text, lambda asked: asked.disk_bytes)),
    rule.STAGED_DISK: (Reason.DISK, "disk", _wanted(lambda _asked, _task: "room for staged data", "less")),
    rule.PINNED: (
        Reason.PINNED,
        "where.nodes",
        _wanted(
            lambda _asked, task: ", ".join(task.where.nodes or tuple(f"not {name}" for name in task.where.not_nodes)),
            "other nodes",
        ),
    ),
    rule.SITE: (
        Reason.SITE,
        "where",
        _wanted(
            lambda _asked, task: ", ".join((*task.where.sites, *task.where.regions, *task.where.racks)), "other sites"
        ),
    ),
    rule.RESIDENCY: (
        Reason.RESIDENCY,
        "residency",
        _wanted(
            lambda _asked, task: ", ".join(task.where.residency) or "a region where the data may be", "other regions"
        ),
    ),
    rule.LABEL: (
        Reason.LABEL,
        "where.labels",
        _wanted(lambda _asked, task: ", ".join(f"{key}={value}" for key, value in task.where.labels), "without"),
    ),
    rule.FAILED_HERE: (Reason.FAILED_HERE, "node", _wanted(lambda _asked, _task: "another node", "failed here")),
    rule.APART: (
        Reason.APART,
        "where.apart_from",
        _wanted(lambda _asked, _task: "a node without them", "they run here"),
    ),
    rule.PATH: (Reason.PATH, "links", _wanted(lambda _asked, _task: "a path for the data", "no link")),
    rule.CROSSING: (
        Reason.CROSSING,
        "crossing",
        _wanted(lambda _asked, _task: "a gain above the margin", "not worth it"),
    ),
    **{
        bit: (Reason(reason), "node", _wanted(lambda _asked, _task: "an open node", "closed"))
        for reason, bit in rule.CLOSED.items()
    },
}


def _report(scope: Scope, asked: Resources, task: Task, named: int, bits: Bits, members: int) -> tuple[Blocker, ...]:
    blockers = []
    for bit, (reason, dimension, texts) in _REPORTS.items():
        if named & bit:
            ruled = (bits & bit) != 0
            needed, available = texts(scope, asked, task, ruled, members)
            blockers.append(Blocker(reason, dimension, needed, available, int(ruled.sum())))
    return tuple(blockers)
