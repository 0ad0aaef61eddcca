"""INV9 again: a task that is said to wait for quota does not fit its queue's limit, counted exactly.

Told in the whole-number units of the books: a limit that is met exactly is no reason to wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.task import TaskState
from evenflow.core.queueing.quota import amount_asked
from evenflow.events.documents.task_specification import parse_task
from evenflow.sim.observation.entities import TaskView
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen

#: Time within which a reason that is true no longer must be replaced or the task placed.
STALE_MS: Final = 12_000
LOOK_EVERY_MS: Final = 1_000
_QUOTA: Final = ("quota",)


class Quota:
    """Looks at the tasks that wait for quota alone, from time to time."""

    name = "INV9"

    def __init__(self) -> None:
        self._asked: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._room_ms: dict[tuple[str, str], int] = {}
        self._looked_ms = 0
        #: Time during which no placement leads; the world adds to it.
        self.excused_until_ms = 0

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """Those for which there has been room all the time for too long."""
        if record.type == EventType.TASK_SUBMITTED:
            self._asked.setdefault((str(record.body.get("tenant", "default")), str(record.body.get("id"))), record.body)
        elif record.type == EventType.TASK_QUEUED:
            name = (str(record.body.get("tenant", "default")), str(record.body.get("task", "")))
            task = model.tasks.get(name)
            if task is not None and task.reasons == _QUOTA:
                self._room_ms.setdefault(name, model.now_ms)
        if model.now_ms - self._looked_ms < LOOK_EVERY_MS:
            return
        self._looked_ms = model.now_ms
        for name in list(self._room_ms):
            task = model.tasks.get(name)
            if task is None or task.state is not TaskState.QUEUED or task.reasons != _QUOTA:
                del self._room_ms[name]
            elif not self._fits(model, name, task):
                self._room_ms[name] = model.now_ms
            elif model.now_ms - max(self._room_ms[name], self.excused_until_ms) > STALE_MS:
                del self._room_ms[name]
                yield f"{task.shown} waits for quota, and queue {task.queue} had room for it for {STALE_MS} ms"

    def _fits(self, model: Observation, name: tuple[str, str], task: TaskView) -> bool:
        """Whether the queue has room for all members. What can't be told counts as no room."""
        try:
            asked = amount_asked(parse_task(self._asked.get(name), new_id=lambda: task.id))
        except FieldRefused:
            return False
        wanted = {
            "cpu": asked.cpu_milli,
            "memory": asked.memory_bytes,
            "disk": asked.disk_bytes,
            "devices": asked.devices_milli,
        }
        view = model.queue(task.queue)
        return all(view.used[dimension] + wanted[dimension] <= most for dimension, most in view.limit.items())

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """Nothing more."""
        del model, settled
        yield from ()
