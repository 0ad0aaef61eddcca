"""Who is considered first, and who must wait for those before him.

Higher priority first, then earlier arrival. In a queue of strict order a head that could run, but for room or quota,
blocks everybody behind it in that queue; a head that could never run, or that holds itself back, blocks nobody.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from evenflow.core.lifecycle.reasons import Blocker, Reason
from evenflow.core.placement.plan import Demand
from evenflow.core.queueing.description import QueueDescription

_arrival = attrgetter("sequence")


def in_order(demands: Iterable[Demand]) -> list[Demand]:
    """Demands in the order in which they are considered."""
    ordered = sorted(demands, key=_arrival)
    ordered.sort(key=_urgency)
    return ordered


def _urgency(demand: Demand) -> int:
    return -demand.task.priority


class Line:
    """One queue's line within a round: who waits in it, and the head that blocks it, if any."""

    __slots__ = ("_head", "_is_strict", "waiting_count")

    def __init__(self, queue: QueueDescription) -> None:
        self._is_strict = queue.order == "strict"
        self._head: str | None = None
        self.waiting_count = 0

    @property
    def blocker(self) -> Blocker | None:
        """Why the next in line may not start, by order alone."""
        if self._head is None:
            return None
        return Blocker(Reason.ORDER, dimension="task", needed=f"{self._head} first", available="waiting")

    def waits(self, demand: Demand, *, own_affair: bool) -> int:
        """Let a demand wait; gives its position, counted from 1."""
        self.waiting_count += 1
        if self._is_strict and self._head is None and not own_affair:
            self._head = demand.task.id
        return self.waiting_count
