"""INV8 again: what failed is tried again after pauses that double, up to the policy's limit.

Told from what placement says when a task waits anew: when it said so and when the task may be placed at the earliest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from evenflow.core.lifecycle.event_types import EventType
from evenflow.events.documents.policy import parse_policy
from evenflow.events.envelope import time_of
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen

TIME_HEADER: Final = "ce_time"


class Pauses:
    """Compares each pause of a task with the one before."""

    name = "INV8"

    def __init__(self) -> None:
        #: The last pause of each task, with what the policy said of pauses then.
        self._last: dict[tuple[str, str], tuple[int, Any]] = {}
        #: Ids of what was heard: the same fact may come again.
        self._heard: dict[str, None] = {}

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """A later pause is twice the one before, or as long as the limit."""
        if record.type not in (EventType.TASK_REQUEUED, EventType.TASK_ENDED) or record.id in self._heard:
            return
        self._heard[record.id] = None
        task = (str(record.body.get("tenant", "default")), str(record.body.get("task", "")))
        if record.type == EventType.TASK_ENDED:
            self._last.pop(task, None)
            return
        until_ms, said = int(record.body.get("not_before_ms", 0)), record.header(TIME_HEADER)
        if not until_ms or not said:
            return
        pause_ms, rule = until_ms - time_of(said), model.policy.get("retry")
        before = self._last.get(task)
        self._last[task] = (pause_ms, rule)
        if before is not None and before[1] == rule:
            wanted_ms = min(2 * before[0], parse_policy(model.policy).retry.backoff_max_ms)
            if pause_ms < wanted_ms:
                yield f"{'/'.join(task)} waits {pause_ms} ms after another setback, {wanted_ms} ms were to come"

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """Nothing more."""
        del model, settled
        yield from ()
