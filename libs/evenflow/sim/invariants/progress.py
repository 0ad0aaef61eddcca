"""INV8 progress: saved progress never goes back, starts are bounded, no satisfiable task waits for ever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.task import TERMINAL
from evenflow.sim.invariants.invariant import attempt_of
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen

#: Attempts of one task beyond which it is said to start over and over.
ATTEMPTS_MAX: Final = 200
#: Reasons with which a task may wait for ever: it is not satisfiable on what is there.
HOPELESS: Final = frozenset(
    {
        "never-fits",
        "queue-unknown",
        "dataset",
        "path",
        "node-size",
        "device-model",
        "residency",
        "label",
        "pinned",
        "site",
    }
)


class Progress:
    """Checked at every start; that everything ended, at the end of a settled run."""

    name = "INV8"

    def __init__(self) -> None:
        self._resumed: dict[str, int] = {}

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """An attempt resumes at or above where the one before it resumed, unless a checkpoint turned out damaged."""
        if record.type == EventType.TASK_ASSIGNED and (found := attempt_of(model, record)) is not None:
            if len(found[0].attempts) == ATTEMPTS_MAX:
                yield f"{found[0].shown} was tried {ATTEMPTS_MAX} times"
        elif record.type == EventType.ATTEMPT_STARTED and (found := attempt_of(model, record)) is not None:
            yield from self._started(model, record)

    def _started(self, model: Observation, record: Seen) -> Iterator[str]:
        found = attempt_of(model, record)
        member = None if found is None else found[1].members.get(record.body.get("member", -1))
        if found is None or member is None or member.resumed_progress_ms is None or member.damaged:
            return
        task = found[0]
        before = self._resumed.get(task.shown, 0)
        if member.resumed_progress_ms < before and not _damaged(model, task.shown):
            yield f"{task.shown} resumed at {member.resumed_progress_ms} ms, it had resumed at {before} ms before"
        self._resumed[task.shown] = max(before, member.resumed_progress_ms)

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """After settle everything that can run has ended."""
        if not settled:
            return
        for task in model.tasks.values():
            if task.state is None or task.state in TERMINAL:
                continue
            if not HOPELESS & set(task.reasons):
                yield f"{task.shown} is still {task.state} with reasons {list(task.reasons)}"


def _damaged(model: Observation, task: str) -> bool:
    return any(view.state == "damaged" for (name, _), view in model.checkpoints.items() if name == task)
