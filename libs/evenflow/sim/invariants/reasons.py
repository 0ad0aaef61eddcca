"""INV9 reasons: every waiting task says why, within a bounded time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.task import TaskState
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen

#: Time within which a waiting task must be explained.
EXPLAINED_WITHIN_MS: Final = 5_000
#: Waiting tasks are looked at once in this time.
LOOK_EVERY_MS: Final = 1_000
#: After one of these a task waits; only those are looked at again and again.
_BEGIN_WAITING: Final = (EventType.TASK_QUEUED, EventType.TASK_REQUEUED)


class Reasons:
    """Looks at the waiting tasks from time to time."""

    name = "INV9"

    def __init__(self) -> None:
        self._looked_ms = 0
        self._told: dict[tuple[str, int], None] = {}
        self._watched: dict[tuple[str, str], None] = {}
        #: Time during which no placement leads; the world adds to it.
        self.excused_until_ms = 0

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """Waiting tasks without a reason for too long."""
        if record.type in _BEGIN_WAITING:
            self._watched[str(record.body.get("tenant", "default")), str(record.body.get("task", ""))] = None
        if model.now_ms - self._looked_ms < LOOK_EVERY_MS:
            return
        self._looked_ms = model.now_ms
        if model.now_ms < self.excused_until_ms:
            return
        yield from self._unexplained(model, list(self._watched))

    def _unexplained(self, model: Observation, waiting: Iterable[tuple[str, str]]) -> Iterator[str]:
        for name in waiting:
            task = model.tasks.get(name)
            if task is None or task.state is not TaskState.QUEUED or task.unexplained_since_ms is None:
                self._watched.pop(name, None)
                continue
            since_ms = max(task.unexplained_since_ms, self.excused_until_ms)
            key = (task.shown, task.unexplained_since_ms)
            if model.now_ms - since_ms > EXPLAINED_WITHIN_MS and key not in self._told:
                self._told[key] = None
                yield f"{task.shown} waits since {since_ms} ms without a reason"

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """As after a record."""
        del settled
        yield from self._unexplained(model, list(model.tasks))
