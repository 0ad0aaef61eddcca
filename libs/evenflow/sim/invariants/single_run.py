"""INV2 single run: at most one current attempt per task; its predecessor is proven gone or was given up as lost.

What was proven free never runs again: an agent numbers what it says, so a start that it tells after its proof is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from evenflow.core.lifecycle.event_types import EventType
from evenflow.sim.invariants.invariant import attempt_of
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen

_OF_ONE_RUN: Final = (EventType.ATTEMPT_ACCEPTED, EventType.ATTEMPT_STARTED, EventType.ATTEMPT_RECLAIMED)


class SingleRun:
    """Checked at every assignment and at every start."""

    name = "INV2"

    def __init__(self) -> None:
        self._proven: dict[tuple[str, ...], int] = {}

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """Earlier attempts have ended, and each of their members is proven gone, or it or its node was lost."""
        if record.type in _OF_ONE_RUN and record.id not in model.forged:
            yield from self._again(record)
        if record.type != EventType.TASK_ASSIGNED or (found := attempt_of(model, record)) is None:
            return
        task, attempt = found
        earlier = [before for number, before in task.attempts.items() if number < attempt.number]
        if earlier and max(before.epoch for before in earlier) > attempt.epoch:
            yield f"attempt {attempt.number} of {task.shown} has a lower epoch than one before it"
        for before in earlier:
            if before.ended_ms is None:
                yield f"attempt {attempt.number} of {task.shown} began before attempt {before.number} ended"
            for member in before.members.values():
                if member.booked and not member.leftover:
                    yield (
                        f"attempt {attempt.number} of {task.shown} began while member {member.number} of attempt "
                        f"{before.number} was not proven gone from {member.node}"
                    )

    def _again(self, record: Seen) -> Iterator[str]:
        body, sequence = record.body, record.header("sequence")
        if not sequence.isdigit():
            return
        names = ("tenant", "task", "attempt", "member", "node")
        run = (*(str(body.get(name, "")) for name in names), record.header("session"))
        if record.type == EventType.ATTEMPT_RECLAIMED:
            if not body.get("leftover"):
                self._proven.setdefault(run, int(sequence))
        elif int(sequence) > self._proven.get(run, int(sequence)):
            yield f"{record.type} of member {run[3]} of attempt {run[2]} of {run[1]} after {run[4]} proved it free"

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """Nothing more."""
        del model, settled
        yield from ()
