"""One task as the console knows it: what placement decided beside what the agents reported.

The two come from different streams, whose order against each other differs from one reading of the log to the next. So
each part is folded by itself, and the task's state is worked out from both: the same log gives the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from evenflow.console.projection.course import Course
from evenflow.core.lifecycle.attempt import Wish
from evenflow.core.lifecycle.member import RANK, MemberState, may_follow
from evenflow.core.lifecycle.task import TaskState
from evenflow.events.contracts.placement import AttemptUse, CrossingTerms, MemberPlace, ReasonDetail, Staging

CHECKPOINTS_KEPT: Final = 20
TRANSFERS_KEPT: Final = 50


@dataclass(slots=True)
class Member:
    """One member of an attempt. Times by the agent's clocks, as it reported them."""

    member: int
    place: MemberPlace | None = None
    state: MemberState = MemberState.ASSIGNED
    wish: Wish | None = None
    wish_ms: int = 0
    node: str = ""
    started_ms: int = 0
    start_ms: int = 0
    run_ms: int = 0
    progress_ms: int = 0
    resumed_progress_ms: int = 0
    resumed_generation: int = 0
    cause: str = ""
    exit_code: int | None = None
    message: str = ""
    leftover: bool = False

    def reach(self, state: MemberState) -> None:
        """Enter a state unless that would go back."""
        if may_follow(self.state, state):
            self.state = state

    def row(self) -> dict[str, Any]:
        """The member as the API gives it."""
        place = self.place
        shown: dict[str, Any] = {
            "member": self.member,
            "node": place.node if place is not None else self.node,
            "site": place.site if place is not None else "",
            "state": str(self.state),
            "devices": [device.model_dump() for device in place.devices] if place is not None else [],
            "cpu_milli": place.cpu_milli if place is not None else 0,
            "memory_bytes": place.memory_bytes if place is not None else 0,
            "start_ms": self.start_ms,
            "run_ms": self.run_ms,
            "progress_ms": self.progress_ms,
            "resumed_progress_ms": self.resumed_progress_ms,
            "resumed_generation": self.resumed_generation,
        }
        if self.wish is not None and self.wish is not Wish.RUN:
            shown["wish"] = str(self.wish)
        if self.cause:
            shown["cause"] = self.cause
        if self.exit_code is not None:
            shown["exit_code"] = self.exit_code
        if self.message:
            shown["message"] = self.message
        if self.leftover:
            shown["leftover"] = True
        return shown


@dataclass(slots=True)
class Attempt:
    """One try of the whole task. `assigned_ms` 0: the decision is not read yet."""

    attempt: int
    generation: int = 0
    epoch: int = 0
    round: int = 0
    assigned_ms: int = 0
    wait_ms: int = 0
    estimate_micro: int = 0
    member_count: int = 0
    crossing: CrossingTerms | None = None
    staging: tuple[Staging, ...] = ()
    resume_count: int = 0
    waited_for: tuple[ReasonDetail, ...] = ()
    members: dict[int, Member] = field(default_factory=dict)
    use: AttemptUse | None = None
    ended_ms: int = 0

    def member(self, number: int) -> Member:
        """The member, made when first heard of."""
        found = self.members.get(number)
        if found is None:
            found = self.members[number] = Member(number)
        return found

    @property
    def in_order(self) -> list[Member]:
        """Its members by number."""
        return [self.members[number] for number in sorted(self.members)]

    @property
    def progress_ms(self) -> int:
        """What all members have reached."""
        return min((member.progress_ms for member in self.members.values()), default=0)

    def row(self) -> dict[str, Any]:
        """The attempt as the API gives it."""
        use = self.use
        return {
            "attempt": self.attempt,
            "generation": self.generation,
            "epoch": self.epoch,
            "round": self.round,
            "assigned_ms": self.assigned_ms,
            "wait_ms": self.wait_ms,
            "ended_ms": self.ended_ms,
            "end": str(use.end) if use is not None else "",
            "cause": str(use.cause) if use is not None and use.cause is not None else "",
            "progress_ms": self.progress_ms,
            "estimate_micro": self.estimate_micro,
            "members": [member.row() for member in self.in_order],
            "staging": [one.model_dump() for one in self.staging],
            "crossing": self.crossing.model_dump() if self.crossing is not None else None,
        }


@dataclass(slots=True)
class Task:
    """A task. `phase` is placement's last word: queued, assigned, preempted, or a terminal state.

    `is_described`: the priority is placement's word, which counts more than the submission's.
    """

    tenant: str
    task: str
    submitted_ms: int = 0
    queue: str = ""
    name: str = ""
    priority: int = 0
    is_described: bool = False
    member_count: int = 1
    phase: str = ""
    phase_ms: int = 0
    reasons: tuple[ReasonDetail, ...] = ()
    reasons_ms: int = 0
    position: int = 0
    refused_crossing: CrossingTerms | None = None
    not_before_ms: int = 0
    failure_count: int = 0
    current: int = 0
    attempts: dict[int, Attempt] = field(default_factory=dict)
    end: str = ""
    cause: str = ""
    message: str = ""
    path: str = ""
    unreachable: bool = False
    checkpoints: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    transfers: dict[str, dict[str, Any]] = field(default_factory=dict)
    course: Course = field(default_factory=Course)
    origin: tuple[str, int, int] | None = None
    known_state: tuple[TaskState, int] | None = None

    @property
    def key(self) -> str:
        """tenant/task."""
        return f"{self.tenant}/{self.task}"

    @property
    def decided(self) -> bool:
        """Whether placement has spoken of it."""
        return bool(self.phase)

    @property
    def terminal(self) -> bool:
        """Whether nothing can follow."""
        return bool(self.end)

    def attempt(self, number: int) -> Attempt:
        """The attempt, made when first heard of."""
        found = self.attempts.get(number)
        if found is None:
            found = self.attempts[number] = Attempt(number)
        return found

    def state(self) -> tuple[TaskState, int]:
        """The state and since when, from the decision and the receipts of the current attempt; kept until a change."""
        if self.known_state is None:
            self.known_state = self._state()
        return self.known_state

    def _state(self) -> tuple[TaskState, int]:
        if self.end:
            return TaskState(self.end), self.phase_ms
        if self.phase not in ("assigned", "preempted"):
            return TaskState.QUEUED, self.phase_ms or self.submitted_ms
        attempt = self.attempts.get(self.current)
        members = list(attempt.members.values()) if attempt is not None else []
        stops = [member.wish_ms for member in members if member.wish in (Wish.STOP, Wish.RECLAIM)]
        if self.phase == "preempted" or stops:
            return TaskState.STOPPING, min(stops, default=self.phase_ms)
        started = [member for member in members if RANK[member.state] >= RANK[MemberState.STARTED]]
        refused = any(member.state in (MemberState.REFUSED, MemberState.LOST) for member in members)
        if attempt is not None and len(started) >= max(1, attempt.member_count) and not refused:
            return TaskState.RUNNING, max((m.started_ms for m in started), default=0) or self.phase_ms
        return TaskState.STARTING, self.phase_ms

    def row(self, *, cost_micro: int) -> dict[str, Any]:
        """One line of a list."""
        state, since_ms = self.state()
        attempt = self.attempts.get(self.current)
        placed = attempt.in_order if attempt is not None and state is not TaskState.QUEUED else []
        places = [member.place for member in placed if member.place is not None]
        waiting = state is TaskState.QUEUED
        return {
            "tenant": self.tenant,
            "task": self.task,
            "name": self.name,
            "queue": self.queue,
            "state": str(state),
            "unreachable": self.unreachable and not self.end,
            "decided": self.decided,
            "priority": self.priority,
            "members": self.member_count,
            "submitted_ms": self.submitted_ms,
            "since_ms": since_ms,
            "attempt": self.current,
            "failures": self.failure_count,
            "nodes": list(dict.fromkeys(place.node for place in places)),
            "sites": list(dict.fromkeys(place.site for place in places)),
            "reasons": [reason.model_dump(mode="json") for reason in self.reasons] if waiting or self.end else [],
            "position": self.position if waiting else 0,
            "progress_ms": attempt.progress_ms if attempt is not None else 0,
            "end": self.end,
            "cause": self.cause,
            "message": self.message,
            "path": self.path,
            "cost_micro": cost_micro,
        }

    def status(self, *, cost_micro: int) -> dict[str, Any]:
        """Everything about the task but its course and its specification."""
        shown = self.row(cost_micro=cost_micro)
        shown["not_before_ms"] = self.not_before_ms
        shown["attempts"] = [self.attempts[number].row() for number in sorted(self.attempts)]
        shown["checkpoints"] = [self.checkpoints[key] for key in sorted(self.checkpoints)]
        shown["transfers"] = [self.transfers[name] for name in sorted(self.transfers)]
        return shown
