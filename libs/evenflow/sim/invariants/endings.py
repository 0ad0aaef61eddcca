"""INV5 end: a terminal state never changes, one end of each task leaves the system, and a success was told by agents.

The observer itself remarks decisions about ended tasks; here they become violations, together with what else it found
impossible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.task import TERMINAL
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen


class Endings:
    """Counts ends by task and submission."""

    name = "INV5"

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str, int], str] = {}
        self._succeeded: dict[tuple[str, str, int, int], None] = {}

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """One `task.ended` with its own id per submission of a task; agents said what it says of their members."""
        if record.type in (EventType.ATTEMPT_SUCCEEDED, EventType.ATTEMPT_RECLAIMED):
            outcome = record.body.get("outcome") or {}
            if record.id not in model.forged and outcome.get("ended_as") == "succeeded":
                self._succeeded[_member(record.body, record.body.get("attempt"), record.body.get("member"))] = None
            return
        if record.type != EventType.TASK_ENDED:
            return
        body = record.body
        yield from self._untold(body)
        key = (str(body.get("tenant")), str(body.get("task")), int(body.get("submitted_ms", 0)))
        before = self._ends.setdefault(key, record.id)
        if before != record.id:
            yield f"{key[1]} ended twice, as {before} and as {record.id}"
        if str(body.get("end")) not in {str(state) for state in TERMINAL}:
            yield f"{key[1]} ended as {body.get('end')}, which is no end"

    def _untold(self, body: Mapping[str, Any]) -> Iterator[str]:
        use = body.get("use")
        if body.get("end") != "succeeded" or not isinstance(use, Mapping):
            return
        for member in use.get("members", ()):
            key = _member(body, use.get("attempt"), (member.get("place") or {}).get("member"))
            if key not in self._succeeded:
                yield f"{key[1]} ended as succeeded, and nobody said so of member {key[3]} of attempt {key[2]}"

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """Nothing more."""
        del model, settled
        yield from ()


def _member(body: Mapping[str, Any], attempt: Any, member: Any) -> tuple[str, str, int, int]:
    return (str(body.get("tenant", "default")), str(body.get("task", "")), int(attempt or 0), int(member or 0))
