"""What checkpoint knows of tasks and their checkpoints: a fold of assignments and of its own published facts."""

from __future__ import annotations

from dataclasses import dataclass, field

from evenflow.core.lifecycle.attempt import AttemptEnd
from evenflow.events.contracts.checkpoint import CheckpointDamaged, CheckpointFact, CheckpointPruned, CheckpointVerified
from evenflow.events.contracts.placement import AttemptUse, TaskAssigned, TaskEnded, TaskRequeued
from evenflow.platform.broker.codec import Received

Key = tuple[int, int]
#: (tenant, task, generation)
Generation = tuple[str, str, int]
#: Lost attempts that are remembered until their nodes say that they are gone.
CUT_MAX = 10_000
#: Ended tasks that are remembered because a checkpoint of theirs may still be on its way to being verified.
ENDED_MAX = 100_000


@dataclass(slots=True)
class TaskCheckpoints:
    """One task. `closed` is the newest attempt that ended: what it still writes counts for nothing.

    `good` and `bad` are keyed (generation, checkpoint). `pruned` is the newest that was removed: a receipt of it or of
    an older one that comes again says nothing new.
    """

    closed: int = 0
    saves: bool = False
    ended: bool = False
    pruned: Key = (0, 0)
    good: dict[Key, CheckpointFact] = field(default_factory=dict)
    bad: dict[Key, CheckpointFact] = field(default_factory=dict)


class Projection:
    """All tasks that ever saved something or still live.

    `torn` are generations that may have left half a checkpoint behind, until a look finds nothing; `cut` those that
    ended before their work did, whose processes may still be writing where nobody can reach them.
    """

    def __init__(self) -> None:
        self.tasks: dict[str, TaskCheckpoints] = {}
        self.torn: dict[Generation, None] = {}
        self.cut: dict[Generation, None] = {}
        #: When the ended one was submitted: an id may come again, and so may what was said of the earlier task.
        self._ended: dict[str, int] = {}

    def of(self, tenant: str, task: str) -> TaskCheckpoints:
        """A task's entry, made when needed: what is verified after its task's end belongs to an ended one."""
        key = f"{tenant}/{task}"
        entry = self.tasks.get(key)
        if entry is None:
            entry = self.tasks[key] = TaskCheckpoints(ended=key in self._ended)
        return entry

    def apply(self, received: Received) -> None:
        """Fold one fact."""
        match received.body:
            case TaskAssigned(tenant=tenant, task=task, saves=saves, submitted_ms=submitted_ms):
                if submitted_ms <= self._ended.get(f"{tenant}/{task}", -1):
                    return  # told again, after the end
                self._ended.pop(f"{tenant}/{task}", None)
                entry = self.of(tenant, task)
                entry.saves, entry.ended = saves, False
            case TaskRequeued(tenant=tenant, task=task, use=use):
                entry = self.of(tenant, task)
                entry.closed = max(entry.closed, use.attempt)
                self._close(tenant, task, use)
            case TaskEnded(tenant=tenant, task=task, use=use, submitted_ms=submitted_ms):
                if use is not None:
                    self._close(tenant, task, use)
                self._end(f"{tenant}/{task}", submitted_ms)
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
            if entry.ended:
                self.torn[fact.tenant, fact.task, fact.generation] = None
            if entry.ended and not entry.good and not entry.bad:
                self.tasks.pop(f"{fact.tenant}/{fact.task}", None)

    def _close(self, tenant: str, task: str, use: AttemptUse) -> None:
        """An attempt that ended may have been cut in the middle of a save, or have saved what nobody heard of.

        Of those that succeeded only the ones of tasks that save are looked at: most tasks never do.
        """
        entry, generation = self.tasks.get(f"{tenant}/{task}"), (tenant, task, use.generation)
        if use.end is not AttemptEnd.SUCCEEDED or (entry is not None and (entry.saves or entry.good or entry.bad)):
            self.torn[generation] = None
        if use.end is not AttemptEnd.SUCCEEDED:
            self.cut[generation] = None
            while len(self.cut) > CUT_MAX:
                del self.cut[next(iter(self.cut))]

    def gone(self, generation: Generation) -> None:
        """The writer of a generation that was cut short is proven gone: what it wrote meanwhile is looked at again."""
        if generation in self.cut:
            del self.cut[generation]
            self.torn[generation] = None

    def known(self, generation: Generation) -> list[int]:
        """Numbers of a generation's checkpoints that are good or known to be bad."""
        tenant, task, number = generation
        entry = self.tasks.get(f"{tenant}/{task}")
        return [] if entry is None else [one for wrote, one in (*entry.good, *entry.bad) if wrote == number]

    def _end(self, key: str, submitted_ms: int) -> None:
        entry = self.tasks.get(key)
        if entry is None:
            return
        entry.ended = True
        if entry.saves:
            self._ended[key] = submitted_ms
            while len(self._ended) > ENDED_MAX:
                del self._ended[next(iter(self._ended))]
        if not entry.good and not entry.bad:
            del self.tasks[key]
