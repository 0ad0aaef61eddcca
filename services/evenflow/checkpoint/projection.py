"""What checkpoint knows of tasks and their checkpoints: a fold of assignments and of its own published facts."""

from __future__ import annotations

from dataclasses import dataclass, field

from evenflow.events.contracts.checkpoint import CheckpointDamaged, CheckpointFact, CheckpointPruned, CheckpointVerified
from evenflow.events.contracts.placement import TaskAssigned, TaskEnded, TaskRequeued
from evenflow.platform.broker.codec import Received

Key = tuple[int, int]


@dataclass(slots=True)
class TaskCheckpoints:
    """One task. `closed` is the newest attempt that ended: what it still writes counts for nothing.

    `good` and `bad` are keyed (generation, checkpoint). `pruned` is the newest that was removed: a receipt of it or of
    an older one that comes again says nothing new.
    """

    closed: int = 0
    ended: bool = False
    pruned: Key = (0, 0)
    good: dict[Key, CheckpointFact] = field(default_factory=dict)
    bad: dict[Key, CheckpointFact] = field(default_factory=dict)


class Projection:
    """All tasks that ever saved something or still live."""

    def __init__(self) -> None:
        self.tasks: dict[str, TaskCheckpoints] = {}

    def of(self, tenant: str, task: str) -> TaskCheckpoints:
        """A task's entry, made when needed."""
        return self.tasks.setdefault(f"{tenant}/{task}", TaskCheckpoints())

    def apply(self, received: Received) -> None:
        """Fold one fact."""
        match received.body:
            case TaskAssigned(tenant=tenant, task=task):
                self.of(tenant, task)
            case TaskRequeued(tenant=tenant, task=task, use=use):
                entry = self.of(tenant, task)
                entry.closed = max(entry.closed, use.attempt)
            case TaskEnded(tenant=tenant, task=task):
                self._end(f"{tenant}/{task}")
            case CheckpointFact() as fact:
                self.take(fact)
            case _:
                pass

    def take(self, fact: CheckpointFact) -> None:
        """Fold an own fact; bad and pruned ones never become good again."""
        entry = self.of(fact.tenant, fact.task)
        key = (fact.generation, fact.checkpoint)
        if isinstance(fact, CheckpointVerified) and key not in entry.bad:
            entry.good[key] = fact
        elif isinstance(fact, CheckpointDamaged):
            entry.good.pop(key, None)
            entry.bad[key] = fact
        elif isinstance(fact, CheckpointPruned):
            entry.good.pop(key, None)
            entry.bad.pop(key, None)
            entry.pruned = max(entry.pruned, key)
            if entry.ended and not entry.good and not entry.bad:
                self.tasks.pop(f"{fact.tenant}/{fact.task}", None)

    def _end(self, key: str) -> None:
        entry = self.tasks.get(key)
        if entry is None:
            return
        entry.ended = True
        if not entry.good and not entry.bad:
            del self.tasks[key]
