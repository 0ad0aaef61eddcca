"""One placement round: from what is there, who waits and what the policy says, to a plan. Pure.

    order → feasibility and score per class of demand → choosing, gangs, crossing → explanations

Nothing it is given changes. What it works out about a fleet is kept beside that fleet and only saves time: the same
input gives the same plan, kept or not. The cost follows the demands given and the rows that changed, not the size of
the fleet times the demands; a caller with very many that wait gives them in slices.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from evenflow.core.fleet.snapshot import Snapshot
from evenflow.core.lifecycle.reasons import Blocker, Reason
from evenflow.core.placement.choosing import take_place, take_seats
from evenflow.core.placement.classes import DemandClass, scope_of
from evenflow.core.placement.gang import gave_up, relaxes_ms
from evenflow.core.placement.plan import Demand, Place, Placement, Plan, Rejection, Wait
from evenflow.core.placement.policy import Policy
from evenflow.core.placement.seeking import NOTHING_FOUND, Found, Seeker
from evenflow.core.queueing.order import Line, in_order
from evenflow.core.queueing.quota import Amount, Books, QueueView, amount_asked


class QueueBooks(Protocol):
    """What a round needs of the queues: `Queues`, or a snapshot of them."""

    def get(self, queue_id: str) -> QueueView | None:
        """The queue with its limit and use, or None when it is not known."""
        ...


def round(  # noqa: A001  the name of the one entry of this package, fixed by its callers
    snapshot: Snapshot, queues: QueueBooks, demands: Iterable[Demand], policy: Policy, now_ms: int
) -> Plan:
    """Decide about every demand: placed, waiting with its reasons, or rejected. `now_ms` by the decider's clock."""
    return _Round(snapshot, queues, policy, now_ms).plan(demands)


def could_seat(snapshot: Snapshot, demand: Demand, policy: Policy, now_ms: int) -> bool:
    """Whether nodes that take work now could hold the task if they were empty: whether it has anywhere to go at all."""
    seeker = Seeker(scope_of(snapshot.fleet, snapshot.sites), snapshot, policy, now_ms)
    return seeker.could_seat(demand, seeker.classes_of(demand))


class _Round:
    """The working state of one round."""

    def __init__(self, snapshot: Snapshot, queues: QueueBooks, policy: Policy, now_ms: int) -> None:
        self._scope = scope_of(snapshot.fleet, snapshot.sites)
        self._seeker = Seeker(self._scope, snapshot, policy, now_ms)
        self._queues = queues
        self._now_ms = now_ms
        self._books: dict[str, tuple[Books, Line] | None] = {}
        self._placements: list[Placement] = []
        self._waiting: list[_Waiting] = []
        self._rejections: list[Rejection] = []
        self._wakes_ms: list[int] = []

    def plan(self, demands: Iterable[Demand]) -> Plan:
        ordered = in_order(demands)
        self._seeker.expect(ordered)
        for demand in ordered:
            self._consider(demand)
        waits = tuple(waiting.explained(self._seeker, self._now_ms) for waiting in self._waiting)
        wake_ms = min(self._wakes_ms, default=None)
        return Plan(tuple(self._placements), waits, tuple(self._rejections), (), wake_ms)

    def _consider(self, demand: Demand) -> None:
        task = demand.task
        queue = self._queue(task.queue)
        if queue is None:
            blocker = Blocker(Reason.QUEUE_UNKNOWN, dimension="queue", needed=task.queue, available="no such queue")
            self._rejections.append(Rejection(demand, blocker))
            return
        books, line = queue
        asked = amount_asked(task) if books.is_limited else None
        if asked is not None:
            above = books.never_allows(asked)
            if above is not None:
                self._rejections.append(Rejection(demand, above))
                return
        classes = self._seeker.classes_of(demand)
        order = line.blocker
        backs_off = demand.not_before_ms > self._now_ms
        found = NOTHING_FOUND
        is_allowed = asked is None or books.allows(asked)
        if order is None and not backs_off and is_allowed:
            row = self._seeker.plain_row(demand, classes[0], books) if len(classes) == 1 else None
            if row is not None and row >= 0:
                self._place_plainly(demand, classes, row, books)
                return
            if row is None:
                found = self._seeker.find(demand, classes, books)
            if found.seating is not None:
                self._place(demand, classes, found, books)
                return
        expired = gave_up(task, self._now_ms - demand.queued_ms)
        if expired is not None and order is None and not backs_off and is_allowed:
            self._rejections.append(Rejection(demand, expired))
            return
        if backs_off:
            self._wakes_ms.append(demand.not_before_ms)
        relaxes = relaxes_ms(task.adjacency, demand.queued_ms, self._now_ms) if task.members > 1 else None
        if relaxes is not None:
            self._wakes_ms.append(relaxes)
        if found.review_ms is not None:
            self._wakes_ms.append(found.review_ms)
        never = self._seeker.never_fits(demand, classes)
        position = line.waits(demand, own_affair=never or backs_off or found.is_own_affair)
        self._seeker.goes_on_waiting(demand, found)
        self._waiting.append(_Waiting(demand, classes, found, books, order, position, never=never))

    def _place_plainly(self, demand: Demand, classes: tuple[DemandClass, ...], row: int, books: Books) -> None:
        place = take_place(self._scope, classes[0], row, 0)
        places = (place,)
        if books.is_limited:
            books.take(places)
        estimate = self._seeker.placed(demand, classes, (row,), places)
        self._placements.append(Placement(demand, places, estimate_micro=estimate))

    def _place(self, demand: Demand, classes: tuple[DemandClass, ...], found: Found, books: Books) -> None:
        seating = found.seating
        places: tuple[Place, ...]
        if seating is None:
            return
        if len(classes) == 1:
            devices = None
            places = (take_place(self._scope, classes[0], seating.rows[0], 0, devices, found.staged_bytes),)
        else:
            places = take_seats(self._scope, classes, seating, found.staged_bytes)
        if books.is_limited:
            books.take(places)
        estimate = self._seeker.placed(demand, classes, seating.rows, places, found)
        crossing = found.crossing
        refused = None
        if crossing is not None and not crossing.taken:
            crossing, refused = None, crossing
        level = seating.level if len(classes) > 1 else ""
        self._placements.append(Placement(demand, places, found.reads, crossing, estimate, level, refused))

    def _queue(self, queue_id: str) -> tuple[Books, Line] | None:
        if queue_id not in self._books:
            view = self._queues.get(queue_id)
            self._books[queue_id] = None if view is None else (Books(view), Line(view.description))
        return self._books[queue_id]


class _Waiting:
    """One that goes on waiting; explained at the end of the round, when it is known what is left."""

    __slots__ = ("_books", "_classes", "_demand", "_found", "_never", "_order", "_position")

    def __init__(
        self,
        demand: Demand,
        classes: tuple[DemandClass, ...],
        found: Found,
        books: Books,
        order: Blocker | None,
        position: int,
        *,
        never: bool,
    ) -> None:
        self._demand = demand
        self._classes = classes
        self._found = found
        self._books = books
        self._order = order
        self._position = position
        self._never = never

    def explained(self, seeker: Seeker, now_ms: int) -> Wait:
        demand = self._demand
        blockers: list[Blocker] = []
        if self._never:
            blockers.append(Blocker(Reason.NEVER_FITS, nodes=seeker.node_count))
        if self._books.is_limited:
            blockers += self._books.blockers(self._asked(seeker))
        if self._order is not None:
            blockers.append(self._order)
        if demand.not_before_ms > now_ms:
            rest = -(-(demand.not_before_ms - now_ms) // 1_000)
            blockers.append(Blocker(Reason.BACKING_OFF, "time", f"{rest} s more"))
        blockers += seeker.explain(demand, self._classes, self._found)
        crossing = self._found.crossing
        return Wait(demand, tuple(blockers), self._position, crossing, self._never)

    def _asked(self, seeker: Seeker) -> Amount:
        """What it would have counted with, shares by memory included."""
        asked = amount_asked(self._demand.task)
        least = seeker.least_devices_milli(self._classes)
        return Amount(
            asked.cpu_milli,
            asked.memory_bytes,
            asked.disk_bytes + self._found.staged_bytes,
            asked.devices_milli + max(self._found.devices_milli, least),
        )
