"""Quota: exact books of what each queue holds, and the test that a request must pass.

The test includes the request, so a limit met exactly is allowed and one milli more is not. Limits of a queue are flat:
each queue answers for itself. The tree of parents is kept, for the rules that share a parent's room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from evenflow.core.demand.task import Task
from evenflow.core.errors import Conflict
from evenflow.core.fleet.holder import Holder
from evenflow.core.lifecycle.reasons import Blocker, Reason
from evenflow.core.placement.plan import Place
from evenflow.core.queueing.description import QueueDescription
from evenflow.core.units import cores_text, devices_text, size_text

DEFAULT_QUEUE = "default"


class Amount(NamedTuple):
    """An amount in every dimension that a quota can limit."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    devices_milli: int = 0

    def plus(self, other: Amount) -> Amount:
        """The sum, dimension by dimension."""
        return Amount(self[0] + other[0], self[1] + other[1], self[2] + other[2], self[3] + other[3])

    def minus(self, other: Amount) -> Amount:
        """The difference, dimension by dimension."""
        return Amount(self[0] - other[0], self[1] - other[1], self[2] - other[2], self[3] - other[3])


NOTHING = Amount()


def amount_of(places: Iterable[Place]) -> Amount:
    """What places hold of a queue's quota."""
    cpu = memory = disk = devices = 0
    for place in places:
        cpu += place.cpu_milli
        memory += place.memory_bytes
        disk += place.disk_bytes
        devices += sum(milli for _, milli in place.devices)
    return Amount(cpu, memory, disk, devices)


def amount_asked(task: Task) -> Amount:
    """What all members of a task ask for, before a place is known.

    A task that asks for device memory alone gets its share with its place; until then its devices count as 0.
    """
    if not task.member_resources:
        asked, members = task.resources, task.members
        return Amount(
            asked.cpu_milli * members,
            asked.memory_bytes * members,
            asked.disk_bytes * members,
            asked.devices.total_milli * members,
        )
    every = [task.resources_of(member) for member in range(task.members)]
    return Amount(
        sum(asked.cpu_milli for asked in every),
        sum(asked.memory_bytes for asked in every),
        sum(asked.disk_bytes for asked in every),
        sum(asked.devices.total_milli for asked in every),
    )


class Limit(NamedTuple):
    """The most a queue may hold per dimension, in the order of Amount; None = no limit."""

    cpu_milli: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    devices_milli: int | None = None

    def short_of(self, amount: Amount) -> tuple[int, ...]:
        """The dimensions, as indexes into Amount, in which the limit is below `amount`."""
        return tuple(
            index
            for index, (most, held) in enumerate(zip(self, amount, strict=True))
            if most is not None and held > most
        )


@dataclass(frozen=True, slots=True)
class QueueView:
    """One queue at one moment."""

    description: QueueDescription
    limit: Limit
    used: Amount

    @property
    def is_limited(self) -> bool:
        """Whether any dimension has a limit at all."""
        return self.limit != Limit()


class QueuesView:
    """All queues at one moment, never to change."""

    __slots__ = ("_queues",)

    def __init__(self, queues: Mapping[str, QueueView]) -> None:
        self._queues = queues

    def get(self, queue_id: str) -> QueueView | None:
        """The queue, or None when it is not known."""
        return self._queues.get(queue_id)


class Queues:
    """All queues and who holds what of their quota. The queue `default` always exists."""

    def __init__(self) -> None:
        self._descriptions: dict[str, QueueDescription] = {}
        self._holds: dict[Holder, tuple[str, Amount]] = {}
        self._used: dict[str, Amount] = {}
        self._views: dict[str, QueueView] = {}
        self._view: QueuesView | None = None
        self.set(QueueDescription(DEFAULT_QUEUE))

    def set(self, queue: QueueDescription) -> None:
        """Take a queue's description, for the first time or anew; what it holds stays."""
        self._descriptions[queue.id] = queue
        self._renew(queue.id)

    def remove(self, queue_id: str) -> None:
        """Forget a queue; what its tasks hold stays in the books until they give it back."""
        if queue_id != DEFAULT_QUEUE and self._descriptions.pop(queue_id, None) is not None:
            self._views.pop(queue_id, None)
            self._view = None

    def description(self, queue_id: str) -> QueueDescription | None:
        """A queue's description, or None when it is not known."""
        return self._descriptions.get(queue_id)

    def get(self, queue_id: str) -> QueueView | None:
        """The queue with its limit and use, or None when it is not known."""
        return self._views.get(queue_id)

    def children(self, queue_id: str) -> tuple[str, ...]:
        """The queues directly under one, by name."""
        return tuple(sorted(queue.id for queue in self._descriptions.values() if queue.parent == queue_id))

    def used(self, queue_id: str) -> Amount:
        """What the queue's live attempts hold."""
        return self._used.get(queue_id, NOTHING)

    def hold(self, queue_id: str, holder: Holder, amount: Amount) -> bool:
        """Count an amount against a queue; False if the holder is counted so already. Raises Conflict otherwise."""
        held = self._holds.get(holder)
        if held is not None:
            if held == (queue_id, amount):
                return False
            raise Conflict("the member is counted with another amount; give that back first", task=holder.task_key)
        self._holds[holder] = (queue_id, amount)
        self._used[queue_id] = self.used(queue_id).plus(amount)
        self._renew(queue_id)
        return True

    def free(self, holder: Holder) -> bool:
        """Give back what a holder is counted with; False if that is nothing (any more), which changes nothing."""
        held = self._holds.pop(holder, None)
        if held is None:
            return False
        queue_id, amount = held
        rest = self._used[queue_id].minus(amount)
        if any(rest):
            self._used[queue_id] = rest
        else:
            del self._used[queue_id]
        self._renew(queue_id)
        return True

    def snapshot(self) -> QueuesView:
        """The queues of this moment."""
        if self._view is None:
            self._view = QueuesView(dict(self._views))
        return self._view

    def _renew(self, queue_id: str) -> None:
        description = self._descriptions.get(queue_id)
        if description is not None:
            most = description.limit
            limit = Limit(most.cpu_milli, most.memory_bytes, most.disk_bytes, most.devices_milli)
            self._views[queue_id] = QueueView(description, limit, self.used(queue_id))
            self._view = None


class Books:
    """One queue's quota within a round: several admissions of one round see each other."""

    __slots__ = ("_limit", "_name", "_used", "is_limited")

    def __init__(self, queue: QueueView) -> None:
        self._name = queue.description.id
        self._limit = queue.limit
        self._used = queue.used
        self.is_limited = queue.is_limited

    def never_allows(self, asked: Amount) -> Blocker | None:
        """Why a request alone is above the limit; None if it is not."""
        short = self._limit.short_of(asked)
        return self._blocker(short[0], asked, NOTHING) if short else None

    def allows(self, asked: Amount) -> bool:
        """Whether the request fits beside what is held: met exactly is allowed, and only what is asked for counts."""
        return not any(asked[index] for index in self._limit.short_of(self._used.plus(asked)))

    def allows_more(self, task: Task, devices_milli: int, disk_bytes: int) -> bool:
        """Whether a task fits with devices and disk beyond what it asks for itself."""
        return self.allows(amount_asked(task).plus(Amount(0, 0, disk_bytes, devices_milli)))

    def room_devices_milli(self) -> int | None:
        """Milli-devices that may still be taken; None = no limit."""
        return None if self._limit.devices_milli is None else self._limit.devices_milli - self._used.devices_milli

    def take(self, places: Iterable[Place]) -> None:
        """Count places given out in this round."""
        self._used = self._used.plus(amount_of(places))

    def blockers(self, asked: Amount) -> list[Blocker]:
        """Every dimension in which the request does not fit beside what is held."""
        short = self._limit.short_of(self._used.plus(asked))
        return [self._blocker(index, asked, self._used) for index in short if asked[index]]

    def _blocker(self, index: int, asked: Amount, used: Amount) -> Blocker:
        most = self._limit[index] or 0
        text = _TEXTS[index]
        left = f"{text(max(most - used[index], 0))} left of {text(most)} in queue {self._name}"
        return Blocker(Reason.QUOTA, _DIMENSIONS[index], text(asked[index]), left)


_DIMENSIONS = ("cpu", "memory", "disk", "devices")
_TEXTS = (cores_text, size_text, size_text, devices_text)
