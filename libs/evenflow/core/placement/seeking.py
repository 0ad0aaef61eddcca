"""Finding where a demand can go now, by kind of demand: one member, a gang, a task with data; and why it can't.

Nothing is taken here but at the caller's word (`placed`): a search that ends with nothing leaves no trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evenflow.core.demand.task import Task
from evenflow.core.fleet.columns import DISK, OPEN
from evenflow.core.fleet.snapshot import Snapshot
from evenflow.core.fleet.table import Bits, Mask
from evenflow.core.lifecycle.reasons import Blocker, Reason
from evenflow.core.placement import feasibility as rule
from evenflow.core.placement.choosing import costs_by_rate, devices_milli_at, over_budget, work_cost_micro
from evenflow.core.placement.classes import DemandClass, Scope
from evenflow.core.placement.crossing import NEVER_MS, Choice, Crossings
from evenflow.core.placement.explain import Circumstances, blockers_of
from evenflow.core.placement.gang import Seating, levels_allowed, never_seats, seat_alike, seat_unlike
from evenflow.core.placement.plan import Crossing, Demand, Place, Read
from evenflow.core.placement.policy import Policy
from evenflow.core.placement.scoring import INFEASIBLE
from evenflow.core.queueing.quota import Books

_OBSTACLE_BITS = {
    Reason.RESIDENCY: rule.RESIDENCY,
    Reason.PATH: rule.PATH,
    Reason.CROSSING: rule.CROSSING,
    Reason.BUDGET: rule.BUDGET,
}


@dataclass(slots=True)
class Found:
    """What a search found: a seating or none, what moves, and what to remember for the explanation.

    `devices_milli` and `staged_bytes` count against the quota beyond what the task asks for. `is_own_affair`: no room
    in the world would start it now. `review_ms`: when time alone may change the answer.
    """

    seating: Seating | None = None
    reads: tuple[Read, ...] = ()
    staged_bytes: int = 0
    devices_milli: int = 0
    estimate_micro: int | None = None
    crossing: Crossing | None = None
    choice: Choice | None = None
    is_own_affair: bool = False
    review_ms: int | None = None


NOTHING_FOUND: Final = Found()


class Seeker:
    """The searches of one round over one scope."""

    def __init__(self, scope: Scope, snapshot: Snapshot, policy: Policy, now_ms: int) -> None:
        self._scope = scope
        self._policy = policy
        self._now_ms = now_ms
        self._snapshot = snapshot
        self._crossings: Crossings | None = None
        self._keeps_apart = False
        self._placed: list[tuple[Task, tuple[int, ...]]] = []
        self._explained: dict[tuple[object, ...], tuple[Blocker, ...]] = {}
        self._full: dict[tuple[object, ...], None] = {}

    @property
    def node_count(self) -> int:
        """How many nodes are registered."""
        return len(self._scope.scratch.table)

    @property
    def crossings(self) -> Crossings:
        """The arithmetic of data, made when the first task with data comes."""
        if self._crossings is None:
            self._crossings = Crossings(self._scope, self._snapshot, self._policy, self._now_ms)
        return self._crossings

    def expect(self, demands: Sequence[Demand]) -> None:
        """Look once at what is coming: whether any of it must be kept apart from another."""
        self._keeps_apart = any(demand.task.where.apart_from or demand.task.where.not_with for demand in demands)

    def classes_of(self, demand: Demand) -> tuple[DemandClass, ...]:
        """The class of each member."""
        task = demand.task
        where = task.where
        if task.members == 1:
            asked = task.resources_of(0)
            order = costs_by_rate(self._scope.scratch.table.rates, demand, asked) if task.objective == "cost" else ()
            return (self._scope.of(asked, where, order),)
        if not task.member_resources:
            return (self._scope.of(task.resources, where),) * task.members
        return tuple(self._scope.of(asked, where) for asked in task.member_resources)

    def plain_row(self, demand: Demand, kind: DemandClass, books: Books) -> int | None:
        """The row for the commonest kind of demand: one member that no rule sets apart from its class.

        -1 = no room; None = not of this kind, ask `find`.
        """
        task = demand.task
        if demand.avoid or demand.apart_nodes or self._placed or task.budget_micro is not None or _moves_data(demand):
            return None
        if books.is_limited and kind.fits_its_memory:
            return None
        if kind.blocked == self._scope.round_number:
            return -1
        row = kind.best()
        if row < 0:
            kind.blocked = self._scope.round_number
        return row

    def find(self, demand: Demand, classes: tuple[DemandClass, ...], books: Books) -> Found:
        """The best seating there is now, by the rules of its kind."""
        task = demand.task
        if _moves_data(demand):
            return self._find_with_data(demand, classes, books)
        barred = self._barred(demand, classes, books)
        if len(classes) == 1:
            kind = classes[0]
            if kind.blocked == self._scope.round_number:
                return NOTHING_FOUND
            row = kind.best(barred)
            if row >= 0:
                return Found(Seating((row,)))
            if barred is None:
                kind.blocked = self._scope.round_number
            return NOTHING_FOUND
        key = self._gang_key(demand, classes) if barred is None else None
        if key in self._full:
            return Found()
        seating = self._seat(demand, classes, barred)
        if seating is None:
            if key is not None:
                self._full[key] = None
            return Found()
        if task.budget_micro is not None:
            cost = work_cost_micro(self._scope, demand, classes, seating.rows, self._policy)
            if cost is not None and cost > task.budget_micro:
                return Found(choice=Choice(None, None, _everywhere(self._scope, Reason.BUDGET)), is_own_affair=True)
        return self._within_quota(Found(seating), classes, books, demand)

    def least_devices_milli(self, classes: tuple[DemandClass, ...]) -> int:
        """Milli-devices that members asking for device memory alone take at least, beyond what they say."""
        least = 0
        for kind in classes:
            if kind.fits_its_memory and kind.possible.any():
                least += int(kind.share_on()[0][kind.possible].min()) - kind.asked.devices.total_milli
        return least

    def never_fits(self, demand: Demand, classes: tuple[DemandClass, ...]) -> bool:
        """Whether no registered node, or none together, could hold the task even if all were empty and open."""
        task, forbidden = demand.task, self._forbidden_by_residency(demand)
        if len(classes) > 1:
            adjacency = task.adjacency if task.adjacency and task.adjacency.then == "wait" else None
            key: tuple[object, ...] = (forbidden, classes[1:], task.one_per_node, adjacency)
        else:
            key = (forbidden,)
        cache = classes[0].never
        found = cache.get(key)
        if found is None:
            found = cache[key] = never_seats(self._scope, classes, task, forbidden)
        return found

    def could_seat(self, demand: Demand, classes: tuple[DemandClass, ...]) -> bool:
        """Whether nodes that take work now could hold the task if they were empty."""
        closed = self._scope.scratch.amounts[OPEN] == 0
        closed[list(self._rows(demand.avoid))] = True
        widest, forbidden = "site" if _moves_data(demand) else "", self._forbidden_by_residency(demand)
        return not never_seats(self._scope, classes, demand.task, forbidden, closed, widest)

    def placed(
        self,
        demand: Demand,
        classes: tuple[DemandClass, ...],
        rows: tuple[int, ...],
        places: tuple[Place, ...],
        found: Found = NOTHING_FOUND,
    ) -> int:
        """The round took these rows: remember what later demands must know. Gives the estimate of their charge."""
        if self._keeps_apart:
            self._placed.append((demand.task, rows))
        if self._crossings is not None:
            self._crossings.forecast.begins(demand, places)
            if found.choice is not None and found.choice.option is not None:
                self._crossings.hauls.promise(found.choice.option.haul)
        if found.estimate_micro is not None:
            return found.estimate_micro
        first = places[0]
        if len(places) == 1 and not first.price_per_hour_micro and not first.cpu_price_per_hour_micro:
            return 0
        return work_cost_micro(self._scope, demand, classes, rows, self._policy) or 0

    def goes_on_waiting(self, demand: Demand, found: Found) -> None:
        """The round found nothing: those behind wait longer for the same site."""
        if found.choice is not None and found.choice.home is not None:
            self.crossings.forecast.waits(demand, found.choice.home)

    def explain(self, demand: Demand, classes: tuple[DemandClass, ...], found: Found) -> tuple[Blocker, ...]:
        """What keeps it from every node now, at the end of the round; worked out once for all that wait alike."""
        task = demand.task
        blockers: tuple[Blocker, ...] = ()
        if task.data:
            missing = self.crossings.hauls.missing(task.data)
            if missing is not None:
                blockers = (Blocker(Reason.DATASET, missing, "a copy at some site", "none", self.node_count),)
        moves = _moves_data(demand) and not blockers
        obstacles = self._obstacles(demand, found) if moves else found.choice.obstacles if found.choice else {}
        failed, apart = self._rows(demand.avoid), self._apart(demand)
        staged = self._staged(demand, classes[0]) if moves else ()
        has_budget = task.budget_micro is not None
        budget = (task.budget_micro, task.declared_ms, task.run, demand.progress_ms) if has_budget else None
        level = self._levels(demand, "site" if moves else "")[-1]
        key = (self._gang_key(demand, classes), tuple(sorted(obstacles.items())), failed, apart, staged, budget, level)
        known = self._explained.get(key)
        if known is None:
            by_row = self._bits_by_row(demand, classes, obstacles, staged)
            around = Circumstances(failed, apart, by_row)
            known = self._explained[key] = blockers_of(self._scope, classes, task, around, level)
        return blockers + known

    # ---- tasks with data ---------------------------------------------------------------------------------------------

    def _find_with_data(self, demand: Demand, classes: tuple[DemandClass, ...], books: Books) -> Found:
        crossings = self.crossings
        if demand.task.data and crossings.hauls.missing(demand.task.data) is not None:
            return Found(is_own_affair=True)
        barred = self._barred(demand, classes, books, with_budget=False)
        has_room = len(classes) > 1 or classes[0].best(barred) >= 0
        choice = crossings.choose(
            demand,
            classes,
            lambda site, staged: self._seat_at(demand, classes, barred, site, staged),
            has_room=has_room,
        )
        terms, option = choice.crossing, choice.option
        if option is None or option.seating is None:
            review = None
            if terms is not None and 0 < terms.stay_wait_ms < NEVER_MS:
                review = self._now_ms + terms.stay_wait_ms
            held = list(choice.obstacles.values())
            own = choice.home is None and any(reason in (Reason.PATH, Reason.BUDGET) for reason in held)
            return Found(crossing=terms, choice=choice, is_own_affair=own, review_ms=review)
        haul = option.haul
        found = Found(option.seating, haul.reads, haul.read_bytes, 0, option.cost_micro or 0, terms, choice)
        return self._within_quota(found, classes, books, demand)

    def _seat_at(
        self, demand: Demand, classes: tuple[DemandClass, ...], barred: Mask | None, site: str, staged_bytes: int
    ) -> Seating | None:
        """The best seating within one site, with room on disk for what is staged there."""
        scratch = self._scope.scratch
        rows = scratch.table.rows_of_site(site)
        disk = scratch.amounts[DISK]
        if len(classes) == 1:
            kind = classes[0]
            score = kind.refresh()[rows]
            if barred is not None:
                score = np.where(barred[rows], INFEASIBLE, score)
            if staged_bytes:
                score = np.where(disk[rows] < kind.asked.disk_bytes + staged_bytes, INFEASIBLE, score)
            at = int(score.argmin())
            return Seating((int(rows[at]),)) if score[at] != INFEASIBLE else None
        elsewhere: Mask = np.ones(len(scratch.table), dtype=np.bool_)
        elsewhere[rows] = False
        if barred is not None:
            elsewhere |= barred
        seating = self._seat(demand, classes, elsewhere, widest="site")
        if seating is None or not staged_bytes:
            return seating
        first = seating.rows[0]
        there = sum(kind.asked.disk_bytes for kind, row in zip(classes, seating.rows, strict=True) if row == first)
        return seating if int(disk[first]) >= there + staged_bytes else None

    def _obstacles(self, demand: Demand, found: Found) -> dict[str, Reason]:
        """Why each site is out of question: from the search, or, if there was none, from the data alone."""
        if found.choice is not None:
            return found.choice.obstacles
        hauls = [self.crossings.hauls.at(demand, site) for site in self._scope.scratch.table.site_names]
        return {haul.site: haul.obstacle for haul in hauls if haul.obstacle is not None}

    def _staged(self, demand: Demand, kind: DemandClass) -> tuple[tuple[str, int], ...]:
        """Sites where some node has disk for the task but not for what would be staged there, and those bytes."""
        scratch = self._scope.scratch
        found = []
        for site in scratch.table.site_names:
            staged_bytes = self.crossings.hauls.at(demand, site).read_bytes
            if staged_bytes and int(scratch.amounts[DISK, scratch.table.rows_of_site(site)].min()) < (
                kind.asked.disk_bytes + staged_bytes
            ):
                found.append((site, staged_bytes))
        return tuple(found)

    def _forbidden_by_residency(self, demand: Demand) -> tuple[str, ...]:
        """Sites where the data may never lie."""
        if not demand.task.data or (hauls := self.crossings.hauls).missing(demand.task.data) is not None:
            return ()
        sites = self._scope.scratch.table.site_names
        return tuple(site for site in sites if hauls.at(demand, site).obstacle is Reason.RESIDENCY)

    # ---- seats -------------------------------------------------------------------------------------------------------

    def _seat(
        self, demand: Demand, classes: tuple[DemandClass, ...], barred: Mask | None, widest: str = ""
    ) -> Seating | None:
        task, levels = demand.task, self._levels(demand, widest)
        if task.member_resources:
            return seat_unlike(self._scope, classes, task, levels, barred)
        return seat_alike(self._scope, classes[0], task, levels, barred)

    def _levels(self, demand: Demand, widest: str = "") -> tuple[str, ...]:
        return levels_allowed(demand.task.adjacency, max(self._now_ms - demand.queued_ms, 0), widest)

    def _gang_key(self, demand: Demand, classes: tuple[DemandClass, ...]) -> tuple[object, ...]:
        if len(classes) == 1:
            return (classes[0],)
        return (classes, demand.task.one_per_node, self._levels(demand)[-1], demand.task.budget_micro)

    def _within_quota(self, found: Found, classes: tuple[DemandClass, ...], books: Books, demand: Demand) -> Found:
        """Drop a seating whose staged data or shares by memory are more than the queue may hold."""
        seating = found.seating
        if seating is None or not books.is_limited:
            return found
        rows = zip(classes, seating.rows, strict=True)
        devices = sum(devices_milli_at(kind, row) - kind.asked.devices.total_milli for kind, row in rows)
        found.devices_milli = devices
        if (devices or found.staged_bytes) and not books.allows_more(demand.task, devices, found.staged_bytes):
            found.seating = None
        return found

    # ---- rows ruled out for one demand -------------------------------------------------------------------------------

    def _rows(self, nodes: Sequence[str]) -> tuple[int, ...]:
        row_of = self._scope.scratch.table.row_of
        return tuple(sorted(row_of[node] for node in nodes if node in row_of)) if nodes else ()

    def _apart(self, demand: Demand) -> tuple[int, ...]:
        """Rows of tasks it must not meet: those that run, and those placed in this round."""
        rows = list(self._rows(demand.apart_nodes)) if demand.apart_nodes else []
        for other, taken in self._placed:
            if rule.kept_apart(demand.task, other) or rule.kept_apart(other, demand.task):
                rows += taken
        return tuple(sorted(dict.fromkeys(rows))) if rows else ()

    def _barred(
        self, demand: Demand, classes: tuple[DemandClass, ...], books: Books, *, with_budget: bool = True
    ) -> Mask | None:
        """Nodes this demand may not use though others like it may; None if there are none."""
        is_free = not demand.avoid and not demand.apart_nodes and not self._placed
        if is_free and not books.is_limited and demand.task.budget_micro is None:
            return None
        rows = (*self._rows(demand.avoid), *self._apart(demand))
        single = classes[0] if len(classes) == 1 else None
        room = books.room_devices_milli() if books.is_limited else None
        has_own_share = single is not None and single.fits_its_memory
        has_budget = with_budget and single is not None and demand.task.budget_micro is not None
        if not rows and not has_budget and not (has_own_share and room is not None):
            return None
        barred: Mask = np.zeros(self.node_count, dtype=np.bool_)
        barred[list(rows)] = True
        if single is not None and has_own_share and room is not None:
            barred |= single.share_on()[0] > room
        if single is not None and has_budget:
            barred |= over_budget(self._scope, demand, single, self._policy)
        return barred

    def _bits_by_row(
        self,
        demand: Demand,
        classes: tuple[DemandClass, ...],
        obstacles: dict[str, Reason],
        staged: tuple[tuple[str, int], ...],
    ) -> Bits | None:
        scratch = self._scope.scratch
        bits: Bits = np.zeros(self.node_count, dtype=np.int32)
        for site, reason in obstacles.items():
            bits[scratch.table.rows_of_site(site)] |= _OBSTACLE_BITS[reason]
        for site, staged_bytes in staged:
            rows = scratch.table.rows_of_site(site)
            free, asked = scratch.amounts[DISK, rows], classes[0].asked.disk_bytes
            bits[rows[(free >= asked) & (free < asked + staged_bytes)]] |= rule.STAGED_DISK
        if len(classes) == 1 and demand.task.budget_micro is not None and not _moves_data(demand):
            bits[over_budget(self._scope, demand, classes[0], self._policy)] |= rule.BUDGET
        return bits if bits.any() else None


def _moves_data(demand: Demand) -> bool:
    task = demand.task
    return bool(task.data or demand.resume_bytes or (task.output is not None and task.output.site is not None))


def _everywhere(scope: Scope, reason: Reason) -> dict[str, Reason]:
    return dict.fromkeys(scope.scratch.table.site_names, reason)
