"""INV8 progress: saved progress never goes back, starts are bounded, no satisfiable task waits for ever.

Generations are never mixed: what a lost one saved after its loss is no restore point of a later one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.task import TERMINAL
from evenflow.sim.invariants.invariant import attempt_of
from evenflow.sim.observation.entities import AttemptView, TaskView
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
            yield from _restore_points(model, found[0], found[1])
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
        """After settle everything that can run has ended; what waits for a node that never came back can't."""
        if not settled:
            return
        for task in model.tasks.values():
            if task.state is None or task.state in TERMINAL or task.unreachable:
                continue
            if not HOPELESS & set(task.reasons):
                yield f"{task.shown} is still {task.state} with reasons {list(task.reasons)}"


def _restore_points(model: Observation, task: TaskView, attempt: AttemptView) -> Iterator[str]:
    """What an attempt may resume from: newest generation first, nothing that a lost one told of after its loss."""
    newest = attempt.generation
    for point in attempt.resume:
        generation, number = int(point.get("generation", 0)), int(point.get("checkpoint", 0))
        name = f"attempt {attempt.number} of {task.shown} may resume from g{generation}/c{number}"
        if generation > newest or generation >= attempt.generation:
            yield f"{name}, which does not come before g{newest}"
        newest = generation
        writer, view = task.attempts.get(generation), model.checkpoints.get((task.shown, generation, number))
        lost_ms = writer.ended_ms if writer is not None and writer.end == "lost" else None
        if lost_ms is not None and view is not None and view.told_ms > lost_ms:
            yield f"{name}, told of at {view.told_ms} ms by an attempt that was lost at {lost_ms} ms"


def _damaged(model: Observation, task: str) -> bool:
    return any(view.state == "damaged" for (name, _, _), view in model.checkpoints.items() if name == task)
