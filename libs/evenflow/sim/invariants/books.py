"""INV4 books: a queue's use is the sum over its live attempts, within every limit at each admission, never negative."""

from __future__ import annotations

from collections.abc import Iterator

from evenflow.core.lifecycle.event_types import EventType
from evenflow.sim.observation.entities import DIMENSIONS, sum_of
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen


class Books:
    """Checked at every admission and every end."""

    name = "INV4"

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """The queue of an admission and those above it stay within their limits."""
        if record.type not in (EventType.TASK_ASSIGNED, EventType.TASK_REQUEUED, EventType.TASK_ENDED):
            return
        for view in model.queue_and_above(str(record.body.get("queue", ""))):
            for dimension in DIMENSIONS:
                used = view.used[dimension]
                if used < 0:
                    yield f"queue {view.id} uses {used} of {dimension}"
                limit = view.limit.get(dimension)
                if record.type == EventType.TASK_ASSIGNED and limit is not None and used > limit:
                    yield f"queue {view.id} uses {used} of {dimension}, its limit is {limit}"

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """What the queues use is what their live attempts hold."""
        attempts = [attempt for task in model.tasks.values() for attempt in task.attempts.values()]
        held = sum_of(member for attempt in attempts for member in attempt.members.values() if member.booked)
        root = model.queue("root").used
        if root != held:
            yield f"the queues use {root}, the live attempts hold {held}"
        if settled and all(task.current is None for task in model.tasks.values()) and any(root.values()):
            yield f"the queues still use {root} although nothing lives"
