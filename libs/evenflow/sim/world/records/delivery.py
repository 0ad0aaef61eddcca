"""When a record reaches a group: drawn by name, never overtaking within a partition, whoever asks first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from evenflow.sim import draws
from evenflow.sim.loop import VirtualLoop

if TYPE_CHECKING:
    import contextvars

    from aiokafka import TopicPartition


class SeededDelivery:
    """Delays between `low_ms` and `high_ms`, most of them short.

    The due time of an offset belongs to (group, partition, offset): max(the one before, now + draw), so that a second
    asker, a restart or another order of asking changes nothing.
    """

    def __init__(
        self, loop: VirtualLoop, seed: int, world: contextvars.Context, *, low_ms: float = 0.5, high_ms: float = 20.0
    ) -> None:
        self._loop = loop
        self._seed = seed
        self._world = world
        self._low_s = low_ms / 1000
        self._spread_s = (high_ms - low_ms) / 1000
        self._due: dict[tuple[str, str, int], tuple[int, list[float]]] = {}
        self._waiting: dict[tuple[str, str, int, int], list[Callable[[], None]]] = {}

    def reached(
        self, group_id: str | None, partition: TopicPartition, position: int, end: int, wake: Callable[[], None]
    ) -> int:
        """The offset up to which the group may read now; `wake` is called when it grows."""
        group = group_id or "-"
        key = (group, partition.topic, partition.partition)
        first, due = self._due.setdefault(key, (position, []))
        now = self._loop.time()
        while first + len(due) < end:
            name = f"{group}/{partition.topic}/{partition.partition}/{first + len(due)}"
            share = draws.fraction(self._seed, name)
            due.append(max(due[-1] if due else 0.0, now + self._low_s + self._spread_s * share * share))
        reached = max(position, first)
        while reached < end and due[reached - first] <= now:
            reached += 1
        if reached < end:
            self._wake_at(key, reached, due[reached - first], wake)
        return reached

    def _wake_at(self, key: tuple[str, str, int], offset: int, when: float, wake: Callable[[], None]) -> None:
        waiting = self._waiting.setdefault((*key, offset), [])
        if not waiting:
            self._loop.call_at(when, self._arrive, (*key, offset), context=self._world)
        if wake not in waiting:
            waiting.append(wake)

    def _arrive(self, place: tuple[str, str, int, int]) -> None:
        for wake in self._waiting.pop(place, []):
            wake()
