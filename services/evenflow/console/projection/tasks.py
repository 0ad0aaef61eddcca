"""Tasks by key: the fold of submissions, decisions, desired state, receipts, checkpoints and transfers."""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Final

from evenflow.console.projection.course import Entry, entry_of
from evenflow.console.projection.task import CHECKPOINTS_KEPT, TRANSFERS_KEPT, Attempt, Task
from evenflow.core.lifecycle.member import MemberState
from evenflow.core.lifecycle.task import TaskState
from evenflow.events.contracts import agent, checkpoint, placement
from evenflow.events.contracts.tasks import TaskCancelRequested, TaskChangeRequested, TaskSubmitted
from evenflow.platform.broker.codec import Received

#: Submissions without a decision yet; a door that is down must not fill the memory.
PENDING_MAX: Final = 20_000
#: Longer submissions are not looked into for a name.
DESCRIBED_BYTES_MAX: Final = 65_536
PRIORITY: Final = 50
PRIORITY_MAX: Final = 1_000
#: Tasks of which only agents spoke yet. At the start decisions are read first, so these are few.
HEARD_MAX: Final = 5_000

_RECEIPT_STATES: Final[dict[type[Any], MemberState]] = {
    agent.AttemptAccepted: MemberState.ACCEPTED,
    agent.AttemptRefused: MemberState.REFUSED,
    agent.AttemptStaged: MemberState.STAGED,
    agent.AttemptStarted: MemberState.STARTED,
    agent.AttemptProgressed: MemberState.STARTED,
    agent.AttemptCheckpointed: MemberState.STARTED,
    agent.AttemptSucceeded: MemberState.SUCCEEDED,
    agent.AttemptFailed: MemberState.FAILED,
    agent.AttemptStopped: MemberState.STOPPED,
    agent.AttemptReclaimed: MemberState.RECLAIMED,
}
_CHECKPOINT_STATES: Final[dict[type[Any], str]] = {
    checkpoint.CheckpointVerified: "verified",
    checkpoint.CheckpointReplicated: "replicated",
    checkpoint.CheckpointDamaged: "damaged",
    checkpoint.CheckpointPruned: "pruned",
}
_TRANSFER_STATES: Final[dict[type[Any], str]] = {
    agent.TransferPlanned: "planned",
    agent.TransferProgressed: "running",
    agent.TransferFinished: "finished",
    agent.TransferFailed: "failed",
}


class Tasks:
    """All tasks in memory: those that live, and the newest of those that ended."""

    def __init__(self, *, ended_max: int, course_max: int) -> None:
        self._ended_max = ended_max
        self._course_max = course_max
        self.by_key: dict[str, Task] = {}
        self.pending: OrderedDict[str, Task] = OrderedDict()
        self._heard: OrderedDict[str, Task] = OrderedDict()
        self.ended: OrderedDict[str, None] = OrderedDict()
        self.dropped_count = 0
        self._order: list[tuple[int, str]] = []
        self._placed: dict[str, int] = {}

    # reading ----------------------------------------------------------------------------------------------------------

    def find(self, key: str) -> Task | None:
        """A task, also one that placement has not spoken of yet."""
        return self.by_key.get(key) or self.pending.get(key)

    def newest_first(self, before: tuple[int, str] | None) -> Iterator[Task]:
        """Tasks from the newest submission to the oldest, behind a place in that order."""
        index = len(self._order) if before is None else bisect_left(self._order, before)
        while index > 0:
            index -= 1
            yield self.by_key[self._order[index][1]]

    def place(self, task: Task) -> tuple[int, str]:
        """A task's place in the order of submission."""
        return self._placed.get(task.key, task.submitted_ms), task.key

    # keeping ----------------------------------------------------------------------------------------------------------

    def overdue(self, limit: int) -> list[Task]:
        """Ended tasks beyond the bound, oldest end first, to be kept elsewhere before they are forgotten."""
        count = min(limit, len(self.ended) - self._ended_max)
        return [self.by_key[key] for key, _ in zip(self.ended, range(max(0, count)), strict=False)]

    def forget(self, task: Task) -> None:
        """Drop an ended task from memory."""
        key = task.key
        self.ended.pop(key, None)
        if self.by_key.pop(key, None) is not None:
            self._unplace(key)

    def _unplace(self, key: str) -> None:
        placed = self._placed.pop(key, None)
        if placed is None:
            return
        index = bisect_left(self._order, (placed, key))
        if index < len(self._order) and self._order[index] == (placed, key):
            del self._order[index]

    def _index(self, task: Task) -> None:
        """Put a task where its submission time says."""
        key = task.key
        if self._placed.get(key) == task.submitted_ms:
            return
        self._unplace(key)
        self._placed[key] = task.submitted_ms
        insort(self._order, (task.submitted_ms, key))

    def _decided(self, tenant: str, name: str) -> Task:
        """The task of a decision, listed from now on."""
        key = f"{tenant}/{name}"
        task = self.by_key.get(key)
        if task is None:
            task = self.find(key) or self._heard.get(key) or Task(tenant, name)
            self.pending.pop(key, task)
            self._heard.pop(key, task)
            self.by_key[key] = task
            self._index(task)
        return task

    def _spoken_of(self, tenant: str, name: str) -> Task:
        """The task of a report, which may be read before the decision that it follows from."""
        key = f"{tenant}/{name}"
        task = self.find(key) or self._heard.get(key)
        if task is None:
            task = self._heard[key] = Task(tenant, name)
            if len(self._heard) > HEARD_MAX:
                self._heard.popitem(last=False)
        return task

    def _note(self, task: Task, received: Received) -> None:
        """Put a record in its task's course; every fold of a task comes by here, so its state is worked out anew."""
        entry: Entry = entry_of(received)
        task.course.add(entry, self._course_max)
        task.known_state = None

    # folding ----------------------------------------------------------------------------------------------------------

    def submission(self, received: Received) -> None:
        """A record of the stream of submissions. Its key alone says whose it is; its body is placement's to judge."""
        tenant, slash, name = received.key.partition("/")
        if not slash or not tenant or not name or "/" in name:
            return
        body = received.body
        key = received.key
        task = self.find(key)
        if task is None:
            if not isinstance(body, TaskSubmitted):
                return
            task = self.pending[key] = self._heard.get(key) or Task(tenant, name)
            self._heard.pop(key, task)
            task.submitted_ms = received.timestamp_ms
            if len(self.pending) > PENDING_MAX:
                self.pending.popitem(last=False)
        if isinstance(body, TaskSubmitted) and task.origin is None:
            task.origin = (received.topic, received.partition, received.offset)
            if task.end == TaskState.REJECTED:  # a rejection does not say when the task was submitted
                task.submitted_ms = received.timestamp_ms
                self._index(task)
            _describe(task, body.raw)
        if isinstance(body, TaskSubmitted | TaskCancelRequested | TaskChangeRequested):
            self._note(task, received)

    def decision(self, received: Received) -> None:
        """One of placement's words about a task."""
        body = received.body
        if isinstance(body, placement.TaskRejected | placement.SubmissionRefused | placement.TaskChangeRefused):
            self._refusal(body, received)
            return
        if not isinstance(
            body,
            placement.TaskQueued
            | placement.TaskAssigned
            | placement.TaskPreempted
            | placement.TaskRequeued
            | placement.TaskEnded
            | placement.TaskChanged,
        ):
            return
        task = self._decided(body.tenant, body.task)
        self._note(task, received)
        match body:
            case placement.TaskQueued():
                self._queued(task, body, received.timestamp_ms)
            case placement.TaskAssigned():
                self._assigned(task, body, received.timestamp_ms)
            case placement.TaskPreempted():
                self._enter(task, "preempted", received.timestamp_ms)
            case placement.TaskRequeued():
                task.failure_count = body.failure_count
                task.not_before_ms = body.not_before_ms
                self._closed(task, body.use, received.timestamp_ms)
                self._enter(task, "queued", received.timestamp_ms)
            case placement.TaskEnded():
                self._ended(task, body, received.timestamp_ms)
            case placement.TaskChanged():
                task.priority, task.member_count, task.is_described = body.priority, body.members, True

    def _enter(self, task: Task, phase: str, at_ms: int) -> None:
        if task.phase != phase:
            task.phase, task.phase_ms = phase, at_ms
        if phase != "queued":
            task.reasons, task.position, task.refused_crossing = (), 0, None

    def _queued(self, task: Task, body: placement.TaskQueued, at_ms: int) -> None:
        if task.terminal:
            return
        self._enter(task, "queued", at_ms)
        task.queue, task.name = body.queue, body.name or task.name
        task.priority, task.is_described = body.priority, True
        task.reasons, task.reasons_ms, task.position = body.reasons, at_ms, body.position
        task.refused_crossing = body.crossing
        task.submitted_ms = body.submitted_ms
        self._index(task)

    def _assigned(self, task: Task, body: placement.TaskAssigned, at_ms: int) -> None:
        if task.terminal:
            return
        attempt = task.attempt(body.attempt)
        attempt.generation, attempt.epoch, attempt.round = body.generation, body.epoch, body.round
        attempt.assigned_ms, attempt.wait_ms = at_ms, body.wait_ms
        attempt.estimate_micro, attempt.crossing, attempt.staging = body.estimate_micro, body.crossing, body.staging
        attempt.resume_count = len(body.resume)
        attempt.member_count = len(body.members)
        attempt.waited_for = task.reasons
        for place in body.members:
            attempt.member(place.member).place = place
        task.member_count = len(body.members)
        task.queue, task.submitted_ms, task.current = body.queue, body.submitted_ms, body.attempt
        task.not_before_ms = 0
        task.phase, task.phase_ms = "assigned", at_ms
        task.reasons, task.position, task.refused_crossing = (), 0, None
        self._index(task)

    def _closed(self, task: Task, use: placement.AttemptUse, at_ms: int) -> None:
        attempt: Attempt = task.attempt(use.attempt)
        attempt.use, attempt.ended_ms = use, at_ms

    def _ended(self, task: Task, body: placement.TaskEnded, at_ms: int) -> None:
        if body.use is not None:
            self._closed(task, body.use, at_ms)
        task.queue = body.queue
        task.failure_count = body.failure_count
        task.submitted_ms = body.submitted_ms
        self._finish(task, str(body.end), at_ms)
        task.cause, task.message = str(body.cause or ""), body.message
        self._index(task)

    def _finish(self, task: Task, end: str, at_ms: int) -> None:
        task.end, task.phase, task.phase_ms = end, end, at_ms
        task.reasons, task.position, task.refused_crossing, task.not_before_ms = (), 0, None, 0
        self.ended[task.key] = None
        while len(self.ended) > 4 * self._ended_max:  # only while a long log is read at the start
            self.forget(self.by_key[next(iter(self.ended))])
            self.dropped_count += 1

    def _refusal(
        self,
        body: placement.TaskRejected | placement.SubmissionRefused | placement.TaskChangeRefused,
        received: Received,
    ) -> None:
        """A rejection ends its task; the other two leave the task they name untouched, also one never decided."""
        key = f"{body.tenant}/{body.task}"
        task = self.by_key.get(key)
        if isinstance(body, placement.TaskRejected):
            if task is not None and task.terminal and task.end != TaskState.REJECTED:
                return
            task = task or self._decided(body.tenant, body.task)
            task.queue = body.queue or task.queue
            task.submitted_ms = task.submitted_ms or received.timestamp_ms
            self._finish(task, TaskState.REJECTED, received.timestamp_ms)
            task.reasons, task.reasons_ms = (body.reason,), received.timestamp_ms
            task.path, task.message = body.path, body.problem
            self._index(task)
        task = task or self.pending.get(key)
        if task is not None:
            self._note(task, received)

    def desired(self, received: Received) -> None:
        """What placement wants of a node; a tombstone leaves the member as the receipts left it."""
        body = received.body
        if not isinstance(body, placement.AttemptDesired):
            return
        task = self._spoken_of(body.tenant, body.task)
        self._note(task, received)
        member = task.attempt(body.attempt).member(body.place.member)
        member.place = member.place or body.place
        if member.wish is not body.wish:
            member.wish, member.wish_ms = body.wish, received.timestamp_ms

    def receipt(self, received: Received) -> None:
        """What an agent says of a member."""
        body = received.body
        if not isinstance(body, agent.Receipt):
            return
        task = self._spoken_of(body.tenant, body.task)
        self._note(task, received)
        attempt = task.attempt(body.attempt)
        member = attempt.member(body.member)
        if member.place is not None and member.place.node != body.node:
            return
        member.node = body.node
        if isinstance(body, agent.AttemptStarted):
            member.started_ms = member.started_ms or received.timestamp_ms
            member.start_ms = body.start_ms
            member.resumed_progress_ms, member.resumed_generation = body.resumed_progress_ms, body.resumed_generation
            member.progress_ms = max(member.progress_ms, body.resumed_progress_ms)
        elif isinstance(body, agent.AttemptProgressed | agent.AttemptCheckpointed):
            member.progress_ms = max(member.progress_ms, body.progress_ms)
            member.run_ms = max(member.run_ms, body.run_ms)
        elif isinstance(body, agent.AttemptRefused):
            member.message = body.reason
        elif isinstance(
            body, agent.AttemptSucceeded | agent.AttemptFailed | agent.AttemptStopped | agent.AttemptReclaimed
        ):
            outcome = body.outcome
            member.run_ms, member.progress_ms = outcome.run_ms, max(member.progress_ms, outcome.progress_ms)
            member.start_ms = outcome.start_ms or member.start_ms
            member.cause, member.exit_code = str(outcome.cause or ""), outcome.exit_code
            member.message = outcome.message
            member.leftover = isinstance(body, agent.AttemptReclaimed) and body.leftover
        member.reach(_RECEIPT_STATES[type(body)])

    def checkpointed(self, received: Received) -> None:
        """What became of a checkpoint."""
        body: Any = received.body
        state = _CHECKPOINT_STATES.get(type(body))
        if state is None:
            return
        task = self._spoken_of(body.tenant, body.task)
        self._note(task, received)
        row = task.checkpoints.setdefault(
            (body.generation, body.checkpoint),
            {**body.model_dump(mode="json", exclude={"tenant", "task", "to_site", "problem"}), "copies": []},
        )
        if state == "replicated":
            row["copies"] = sorted({*row["copies"], body.to_site})
        else:
            row["state"] = state
        row["at_ms"] = received.timestamp_ms
        row["problem"] = getattr(body, "problem", row.get("problem", ""))
        while len(task.checkpoints) > CHECKPOINTS_KEPT:
            del task.checkpoints[min(task.checkpoints)]

    def transferred(self, received: Received) -> None:
        """Where a transfer for a task stands."""
        body: Any = received.body
        state = _TRANSFER_STATES.get(type(body))
        if state is None:
            return
        task = self._spoken_of(body.tenant, body.task)
        self._note(task, received)
        if body.transfer not in task.transfers and len(task.transfers) >= TRANSFERS_KEPT:
            del task.transfers[min(task.transfers)]
        task.transfers[body.transfer] = {
            **body.model_dump(mode="json", exclude={"tenant", "task"}),
            "state": state,
            "at_ms": received.timestamp_ms,
        }


def _describe(task: Task, raw: bytes) -> None:
    """Name and priority as submitted, for a task that was placed before placement had to list it as waiting."""
    if not task.is_described:
        task.priority = PRIORITY
    if len(raw) > DESCRIBED_BYTES_MAX:
        return
    try:
        given = json.loads(raw)
    except (ValueError, RecursionError):
        return
    if not isinstance(given, dict):
        return
    name, priority, queue = given.get("name"), given.get("priority"), given.get("queue", "default")
    if isinstance(name, str):
        task.name = task.name or name
    if not task.is_described and type(priority) is int and 0 <= priority <= PRIORITY_MAX:
        task.priority = priority
    if not task.queue and isinstance(queue, str):
        task.queue = queue
