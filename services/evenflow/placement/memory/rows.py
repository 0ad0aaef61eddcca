"""The rows that placement must remember, and their documents on `placement-state`.

A row stands alone: the newest one of a key says everything. Fields at their default are left out of the document.
`STATE_VERSION` is the layout's number; an older build never leads over newer rows.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Final

from evenflow.core.demand.task import Task
from evenflow.core.lifecycle.attempt import Wish
from evenflow.core.lifecycle.causes import Cause
from evenflow.core.lifecycle.member import MemberState
from evenflow.core.lifecycle.task import TERMINAL, TaskState
from evenflow.core.placement.plan import Place

STATE_VERSION: Final = 2

Document = dict[str, Any]


@dataclass(slots=True)
class MemberRow:
    """One member: where it is, what it holds there, how far it got by its receipts.

    `held`: its capacity has not come back; `leftover`: it is gone, but something stays on its devices. `wish` is what
    its node was last told.
    """

    member: int
    node: str
    site: str
    devices: tuple[tuple[int, int], ...]
    cpu_milli: int
    memory_bytes: int
    disk_bytes: int
    price_per_hour_micro: int = 0
    cpu_price_per_hour_micro: int = 0
    device_memory_bytes: int = 0
    state: MemberState = MemberState.ASSIGNED
    wish: Wish = Wish.RUN
    held: bool = True
    started: bool = False
    run_ms: int = 0
    start_ms: int = 0
    progress_ms: int = 0
    leftover: bool = False
    session: str = ""

    def copied(self) -> MemberRow:
        """An independent copy."""
        return copy.copy(self)

    def place(self) -> Place:
        """What it holds, as the engine knows it."""
        return Place(
            member=self.member,
            node=self.node,
            site=self.site,
            devices=self.devices,
            cpu_milli=self.cpu_milli,
            memory_bytes=self.memory_bytes,
            disk_bytes=self.disk_bytes,
            price_per_hour_micro=self.price_per_hour_micro,
            cpu_price_per_hour_micro=self.cpu_price_per_hour_micro,
            device_memory_bytes=self.device_memory_bytes,
        )


@dataclass(slots=True)
class AttemptRow:
    """The attempt that counts. `cause`: why it is being ended; `resume` are the checkpoints it was given."""

    number: int
    epoch: int
    assigned_ms: int
    wait_ms: int
    members: list[MemberRow]
    started_ms: int = 0
    ready_due_ms: int = 0
    stop_due_ms: int = 0
    cause: Cause | None = None
    message: str = ""
    resume: list[Document] = field(default_factory=list)
    staging: list[Document] = field(default_factory=list)
    crossing: Document | None = None

    def copied(self) -> AttemptRow:
        """An independent copy; documents inside are never changed in place."""
        fresh = copy.copy(self)
        fresh.members = [member.copied() for member in self.members]
        return fresh


@dataclass(slots=True)
class HoldRow:
    """Capacity that a member of an ended attempt still holds. `counted`: it also counts against its queue."""

    attempt: int
    counted: bool
    member: MemberRow


@dataclass(slots=True)
class TaskRow:
    """One task. An ended one keeps its id, digest and state, and whatever its members still hold.

    `specification` is the document as JSON bytes, `task` what the door made of it (None once ended). `queued_ms`: since
    when it waits with an empty hand: what an earlier attempt takes to empty its place is a stop, not a wait.
    `changed_ms`: when the last signed change that it took was signed.
    """

    tenant: str
    id: str
    queue: str
    digest: str
    state: TaskState
    submitted_ms: int
    sequence: int = 0
    priority: int = 50
    specification: bytes = b""
    task: Task | None = None
    queued_ms: int = 0
    not_before_ms: int = 0
    attempt: int = 0
    current: AttemptRow | None = None
    holds: list[HoldRow] = field(default_factory=list)
    failure_count: int = 0
    start_failed: bool = False
    setback_count: int = 0
    avoid: tuple[str, ...] = ()
    checkpoints: list[Document] = field(default_factory=list)
    lost_generations: tuple[int, ...] = ()
    reasons: list[Document] = field(default_factory=list)
    announced_ms: int = 0
    unreachable: bool = False
    alerts: tuple[str, ...] = ()
    ended_ms: int = 0
    correlation_id: str = ""
    changed_ms: int = 0

    @property
    def key(self) -> str:
        """The record key of everything about this task."""
        return f"{self.tenant}/{self.id}"

    @property
    def terminal(self) -> bool:
        """Whether nothing can follow."""
        return self.state in TERMINAL

    @property
    def emptying(self) -> list[MemberRow]:
        """Members of ended attempts that can be asked and did not yet prove that nothing of them runs."""
        return [hold.member for hold in self.holds if hold.counted and not hold.member.leftover]

    def copied(self) -> TaskRow:
        """A copy whose attempt and holds may be changed; lists of documents are replaced, never changed in place."""
        fresh = copy.copy(self)
        if fresh.current is not None:
            fresh.current = fresh.current.copied()
        if fresh.holds:
            fresh.holds = [HoldRow(hold.attempt, hold.counted, hold.member.copied()) for hold in fresh.holds]
        return fresh

    def holding(self) -> list[tuple[int, bool, MemberRow]]:
        """Everything it holds: (attempt, counts against the queue, member)."""
        out = [(hold.attempt, hold.counted, hold.member) for hold in self.holds if hold.member.held]
        if self.current is not None:
            number = self.current.number
            out += [(number, True, member) for member in self.current.members if member.held]
        return out


@dataclass(frozen=True, slots=True)
class NodeRow:
    """Failed starts on a node, in a row and of different attempts; `closed_ms` is when it was last closed for them."""

    node: str
    start_failure_count: int = 0
    closed_ms: int = 0
    session: str = ""


@dataclass(frozen=True, slots=True)
class PoolRow:
    """The pool itself: who decides, which round was last, what was read. `time_ms` never goes back."""

    pool: str
    epoch: int = 0
    round: int = 0
    sequence: int = 0
    time_ms: int = 0
    offsets: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AlertRow:
    """An alert that is raised and not cleared."""

    name: str
    subject: str
    raised_ms: int


Row = TaskRow | NodeRow | PoolRow | AlertRow

_MEMBER: Final = MemberRow(0, "", "", (), 0, 0, 0)
_MEMBER_RARE: Final = (
    "price_per_hour_micro", "cpu_price_per_hour_micro", "device_memory_bytes", "held", "started", "run_ms", "start_ms",
    "progress_ms", "leftover", "session",
)  # fmt: skip
_TASK_RARE: Final = (
    "not_before_ms", "attempt", "failure_count", "start_failed", "setback_count", "avoid", "checkpoints",
    "lost_generations", "reasons", "announced_ms", "unreachable", "alerts", "ended_ms", "correlation_id",
    "changed_ms",
)  # fmt: skip


def row_key(row: Row) -> str:
    """The key of a row on the state topic."""
    if isinstance(row, TaskRow):
        return f"task/{row.tenant}/{row.id}"
    if isinstance(row, PoolRow):
        return f"pool/{row.pool}"
    if isinstance(row, NodeRow):
        return f"node/{row.node}"
    return f"alert/{row.name}/{row.subject}"


def member_document(member: MemberRow) -> Document:
    """A member as JSON."""
    out: Document = {
        "member": member.member,
        "node": member.node,
        "site": member.site,
        "devices": member.devices,
        "cpu_milli": member.cpu_milli,
        "memory_bytes": member.memory_bytes,
        "disk_bytes": member.disk_bytes,
        "state": member.state,
        "wish": member.wish,
    }
    for name in _MEMBER_RARE:
        value = getattr(member, name)
        if value != getattr(_MEMBER, name):
            out[name] = value
    return out


def task_row_document(row: TaskRow) -> Document:
    """A task's row as JSON, without the specification: that is put in as the bytes it is kept in."""
    out: Document = {
        "tenant": row.tenant,
        "id": row.id,
        "queue": row.queue,
        "digest": row.digest,
        "state": row.state,
        "submitted_ms": row.submitted_ms,
        "sequence": row.sequence,
        "priority": row.priority,
        "queued_ms": row.queued_ms,
    }
    for name in _TASK_RARE:
        value = getattr(row, name)
        if value:
            out[name] = value
    if row.current is not None:
        out["current"] = _attempt_document(row.current)
    if row.holds:
        out["holds"] = [[hold.attempt, hold.counted, member_document(hold.member)] for hold in row.holds]
    return out


def _attempt_document(attempt: AttemptRow) -> Document:
    out: Document = {
        "number": attempt.number,
        "epoch": attempt.epoch,
        "assigned_ms": attempt.assigned_ms,
        "wait_ms": attempt.wait_ms,
        "members": [member_document(member) for member in attempt.members],
    }
    for name in ("started_ms", "ready_due_ms", "stop_due_ms", "cause", "message", "resume", "staging", "crossing"):
        value = getattr(attempt, name)
        if value:
            out[name] = value
    return out


def row_document(row: Row) -> Document:
    """Any row but a task's as JSON."""
    if isinstance(row, TaskRow):
        return task_row_document(row)
    if isinstance(row, PoolRow):
        names: tuple[str, ...] = ("pool", "epoch", "round", "sequence", "time_ms", "offsets")
    elif isinstance(row, NodeRow):
        names = ("node", "start_failure_count", "closed_ms", "session")
    else:
        names = ("name", "subject", "raised_ms")
    return {name: getattr(row, name) for name in names}


def _member_of(given: Document) -> MemberRow:
    fields = dict(given)
    fields["devices"] = tuple((index, milli) for index, milli in fields["devices"])
    fields["state"] = MemberState(fields["state"])
    fields["wish"] = Wish(fields["wish"])
    return MemberRow(**fields)


def _attempt_of(given: Document) -> AttemptRow:
    fields = dict(given)
    fields["members"] = [_member_of(member) for member in fields["members"]]
    if "cause" in fields:
        fields["cause"] = Cause(fields["cause"])
    return AttemptRow(**fields)


def task_row_of(given: Document, specification: bytes, task: Task | None) -> TaskRow:
    """Read a task's row back; `given` is its document without the specification."""
    fields = dict(given)
    fields["state"] = TaskState(fields["state"])
    for name in ("avoid", "lost_generations", "alerts"):
        if name in fields:
            fields[name] = tuple(fields[name])
    if "current" in fields:
        fields["current"] = _attempt_of(fields["current"])
    if "holds" in fields:
        fields["holds"] = [HoldRow(number, counted, _member_of(one)) for number, counted, one in fields["holds"]]
    return TaskRow(**fields, specification=specification, task=task)


def plain_row_of(key: str, given: Document) -> Row:
    """Read any row but a task's back."""
    kind = key.partition("/")[0]
    if kind == "pool":
        return PoolRow(**given)
    if kind == "node":
        return NodeRow(**given)
    return AlertRow(**given)
