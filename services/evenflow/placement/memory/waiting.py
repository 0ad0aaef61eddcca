"""Waiting tasks in order, by class of demand, so that a round looks only at those whose chances may have changed.

Tasks that ask for the same thing share a class. Once the head of a class was refused, the whole class is skipped until
capacity, quota, nodes, documents or time change (`bump`). `select` keeps the true order: where a class is cut short,
the selection ends, and the next round goes on.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable, Container, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Final

from evenflow.core.demand.task import Task
from evenflow.core.lifecycle.reasons import Blocker
from evenflow.placement.memory.rows import TaskRow

#: Heads taken of a class that was refused before: one may fit now, rarely many.
WIDTH_AFTER_REFUSAL: Final = 8

Rank = tuple[int, int, str]


def rank_of(row: TaskRow) -> Rank:
    """Order among waiting tasks: priority, then arrival."""
    return (-row.priority, row.sequence, row.key)


def class_of(row: TaskRow) -> Hashable:
    """What decides whether a task fits; tasks with a history of their own are a class of one."""
    task = row.task
    if task is None or row.avoid or row.checkpoints or task.where.apart_from or task.where.not_with or task.deadline_ms:
        return row.key
    return _shape(task)


def _shape(task: Task) -> Hashable:
    return (
        task.queue, task.priority, task.resources, task.members, task.member_resources, task.one_per_node, task.groups,
        task.adjacency, task.where, task.workload, task.data, task.output, task.declared_ms, task.checkpoint is None,
        task.objective, task.budget_micro, task.latency, task.min_members,
    )  # fmt: skip


@dataclass(slots=True)
class WaitingClass:
    """Tasks that ask for the same.

    `refused_at`: the version at which its head was refused; `blockers`: why; `told`: what was last explained.
    """

    key: Hashable
    ranks: list[Rank] = field(default_factory=list)
    refused_at: int = -1
    refused_before: bool = False
    blockers: tuple[Blocker, ...] = ()
    never_fits: bool = False
    told: object = None


class Waiting:
    """All queued tasks of the model. Its order follows the rows alone; what it remembers of refusals is a shortcut."""

    def __init__(self) -> None:
        self.version = 0
        self._classes: dict[Hashable, WaitingClass] = {}
        self._class_of: dict[str, WaitingClass] = {}
        self._rank: dict[str, Rank] = {}
        self._later: dict[str, tuple[int, TaskRow]] = {}
        self._later_order: list[tuple[int, str]] = []
        self._queues: dict[str, list[Rank]] = {}
        self._queue_of: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._queue_of)

    def __contains__(self, key: str) -> bool:
        return key in self._queue_of

    def bump(self) -> None:
        """Something changed that may let a refused class fit."""
        self.version += 1

    def count(self, queue: str) -> int:
        """How many wait in a queue."""
        return len(self._queues.get(queue, ()))

    def position(self, row: TaskRow) -> int:
        """The place of a task in its queue, from 1, by priority and arrival."""
        return bisect.bisect_left(self._queues.get(row.queue, []), rank_of(row)) + 1

    def add(self, row: TaskRow, now_ms: int) -> None:
        """Take a queued task in, or take it in again with what changed."""
        self.remove(row.key)
        rank = rank_of(row)
        self._rank[row.key] = rank
        self._queue_of[row.key] = row.queue
        bisect.insort(self._queues.setdefault(row.queue, []), rank)
        if row.emptying:
            return  # the receipt that is missing, or the loss of its node, takes the row in anew
        if row.not_before_ms > now_ms:
            self._later[row.key] = (row.not_before_ms, row)
            heapq.heappush(self._later_order, (row.not_before_ms, row.key))
        else:
            self._enter(row, rank)

    def _enter(self, row: TaskRow, rank: Rank) -> None:
        group = self.group(row)
        bisect.insort(group.ranks, rank)
        self._class_of[row.key] = group

    def find(self, row: TaskRow) -> WaitingClass | None:
        """The class a task would be in, if there is one."""
        if not self._classes:
            return None
        return self._classes.get(class_of(row))

    def group(self, row: TaskRow) -> WaitingClass:
        """The class of a task, made if it is the first of it."""
        key = class_of(row)
        found = self._classes.get(key)
        if found is None:
            found = self._classes[key] = WaitingClass(key)
        return found

    def group_of(self, key: str) -> WaitingClass | None:
        """The class a waiting task is in; None while time or an earlier attempt holds it back."""
        return self._class_of.get(key)

    def remove(self, key: str) -> None:
        """Forget a task; unknown ones are no error."""
        queue = self._queue_of.pop(key, None)
        if queue is None:
            return
        rank = self._rank.pop(key)
        ranks = self._queues[queue]
        del ranks[bisect.bisect_left(ranks, rank)]
        if not ranks:
            del self._queues[queue]
        self._later.pop(key, None)
        group = self._class_of.pop(key, None)
        if group is not None:
            del group.ranks[bisect.bisect_left(group.ranks, rank)]
            if not group.ranks:
                self._classes.pop(group.key, None)

    def wake(self, now_ms: int) -> None:
        """Let in those whose pause is over."""
        while self._later_order and self._later_order[0][0] <= now_ms:
            at, key = heapq.heappop(self._later_order)
            waiting = self._later.get(key)
            if waiting is not None and waiting[0] == at:
                del self._later[key]
                self._enter(waiting[1], self._rank[key])

    @property
    def wake_ms(self) -> int | None:
        """When the next pause ends."""
        while self._later_order:
            at, key = self._later_order[0]
            if key in self._later and self._later[key][0] == at:
                return at
            heapq.heappop(self._later_order)
        return None

    def refused(self, group: WaitingClass) -> bool:
        """Whether this class is known not to fit now."""
        return group.refused_at == self.version

    def refuse(self, group: WaitingClass, blockers: tuple[Blocker, ...], *, never_fits: bool) -> None:
        """Remember that the head of a class was refused, and why."""
        group.refused_at = self.version
        group.refused_before = True
        group.blockers = blockers
        group.never_fits = never_fits

    def _heads(self, strict: Container[str]) -> Iterator[tuple[Rank, WaitingClass, int, bool]]:
        """Ranks in order with their class, their place in it, and whether they only stand in front of others."""
        heap: list[tuple[Rank, int, WaitingClass, int, bool]] = []
        for index, group in enumerate(self._classes.values()):
            if not group.ranks:
                continue
            known = self.refused(group)
            if not known or self._queue_of[group.ranks[0][2]] in strict:
                heap.append((group.ranks[0], index, group, 0, known))
        heapq.heapify(heap)
        while heap:
            rank, index, group, at, known = heap[0]
            yield rank, group, at, known
            if not known and at + 1 < len(group.ranks):
                heapq.heapreplace(heap, (group.ranks[at + 1], index, group, at + 1, known))
            else:
                heapq.heappop(heap)

    def select(self, limit: int, skip: Callable[[str], bool], strict: Container[str]) -> tuple[list[str], bool, bool]:
        """Return keys of tasks worth trying, in order; whether some were left out; whether any chance is new.

        At most `limit`; a class that was refused before is cut after a few, and the selection ends there, so that
        nobody of lower rank passes those left out. `skip` names tasks that this round has changed already. In queues
        named by `strict` a refused head goes in as well: it stands in front of those behind it.
        """
        keys: list[str] = []
        news = False
        for rank, group, at, known in self._heads(strict):
            if len(keys) >= limit or (group.refused_before and at >= WIDTH_AFTER_REFUSAL):
                return keys, True, news
            if not skip(rank[2]):
                keys.append(rank[2])
                news = news or not known
        return keys, False, news

    def in_class(self, group: WaitingClass) -> list[str]:
        """Keys of every task in a class, in order."""
        return [rank[2] for rank in group.ranks]
