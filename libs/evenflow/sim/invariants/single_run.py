"""INV2 single run: at most one current attempt per task; its predecessor is proven gone or was given up as lost."""

from __future__ import annotations

from collections.abc import Iterator

from evenflow.core.lifecycle.event_types import EventType
from evenflow.sim.invariants.invariant import attempt_of
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen


class SingleRun:
    """Checked at every assignment."""

    name = "INV2"

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """Earlier attempts have ended, and each of their members is proven gone, or it or its node was lost."""
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

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """Nothing more."""
        del model, settled
        yield from ()
