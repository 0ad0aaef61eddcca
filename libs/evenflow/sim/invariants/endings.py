"""INV5 end: a terminal state never changes, and one end of each task leaves the system.

The observer itself remarks decisions about ended tasks; here they become violations, together with what else it found
impossible.
"""

from __future__ import annotations

from collections.abc import Iterator

from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.task import TERMINAL
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen


class Endings:
    """Counts ends by task and submission."""

    name = "INV5"

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str, int], str] = {}

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """One `task.ended` with its own id per submission of a task."""
        if record.type != EventType.TASK_ENDED:
            return
        body = record.body
        key = (str(body.get("tenant")), str(body.get("task")), int(body.get("submitted_ms", 0)))
        before = self._ends.setdefault(key, record.id)
        if before != record.id:
            yield f"{key[1]} ended twice, as {before} and as {record.id}"
        if str(body.get("end")) not in {str(state) for state in TERMINAL}:
            yield f"{key[1]} ended as {body.get('end')}, which is no end"

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """Nothing more."""
        del model, settled
        yield from ()
