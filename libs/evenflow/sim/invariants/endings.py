"""INV5 end: a terminal state never changes, one end of each task leaves the system, and what it says agents told.

The observer itself remarks decisions about ended tasks; here they become violations, together with what else it found
impossible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.task import TERMINAL
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen

#: Receipts that say how a member ended, and the ends that only its agent can tell.
_TELLING: Final = frozenset(
    {
        EventType.ATTEMPT_SUCCEEDED,
        EventType.ATTEMPT_FAILED,
        EventType.ATTEMPT_STOPPED,
        EventType.ATTEMPT_RECLAIMED,
    }
)
_TOLD: Final = frozenset({"succeeded", "failed", "stopped"})


class Endings:
    """Counts ends by task and submission."""

    name = "INV5"

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str, int], str] = {}
        #: How agents said that a member of an attempt ended.
        self._said: dict[tuple[str, str, int, int], dict[str, None]] = {}

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """One `task.ended` with its own id per submission of a task; agents said what an end says of their members."""
        if record.type in _TELLING:
            outcome = record.body.get("outcome") or {}
            if record.id not in model.forged:
                member = _member(record.body, record.body.get("attempt"), record.body.get("member"))
                self._said.setdefault(member, {})[str(outcome.get("ended_as"))] = None
            return
        body = record.body
        if record.type in (EventType.TASK_ENDED, EventType.TASK_REQUEUED):
            yield from self._untold(body)
        if record.type != EventType.TASK_ENDED:
            return
        key = (str(body.get("tenant")), str(body.get("task")), int(body.get("submitted_ms", 0)))
        before = self._ends.setdefault(key, record.id)
        if before != record.id:
            yield f"{key[1]} ended twice, as {before} and as {record.id}"
        if str(body.get("end")) not in {str(state) for state in TERMINAL}:
            yield f"{key[1]} ended as {body.get('end')}, which is no end"

    def _untold(self, body: Mapping[str, Any]) -> Iterator[str]:
        use = body.get("use")
        if not isinstance(use, Mapping):
            return
        for member in use.get("members", ()):
            key = _member(body, use.get("attempt"), (member.get("place") or {}).get("member"))
            ended_as = str(member.get("ended_as"))
            if ended_as in _TOLD and ended_as not in self._said.get(key, ()):
                yield f"{key[1]}: member {key[3]} of attempt {key[2]} ended as {ended_as}, and nobody said so"

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """Nothing more."""
        del model, settled
        yield from ()


def _member(body: Mapping[str, Any], attempt: Any, member: Any) -> tuple[str, str, int, int]:
    return (str(body.get("tenant", "default")), str(body.get("task", "")), int(attempt or 0), int(member or 0))
