"""What the API answers, typed. Times are wall-clock milliseconds, money micro-units; unknown fields are ignored.

A newer server may send more fields than are named here; they do no harm.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")


class Result(BaseModel):
    """Base of every result."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Reason(Result):
    """One blocker: what was short, what was needed, what was there, how many nodes it rules out."""

    reason: str
    dimension: str = ""
    needed: str = ""
    available: str = ""
    nodes: int = 0
    way_out: str = ""


class TaskRow(Result):
    """One line of a list of tasks."""

    tenant: str
    task: str
    name: str = ""
    queue: str
    state: str
    unreachable: bool = False
    decided: bool = True
    priority: int
    members: int = 1
    submitted_ms: int
    since_ms: int
    attempt: int
    failures: int = 0
    nodes: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()
    position: int = 0
    progress_ms: int = 0
    end: str = ""
    cause: str = ""
    message: str = ""
    path: str = ""
    cost_micro: int = 0
    permalink: str = ""


class Member(Result):
    """One member of an attempt."""

    member: int
    node: str
    site: str
    state: str
    devices: tuple[dict[str, int], ...] = ()
    cpu_milli: int = 0
    memory_bytes: int = 0
    start_ms: int = 0
    run_ms: int = 0
    progress_ms: int = 0
    resumed_progress_ms: int = 0
    resumed_generation: int = 0
    wish: str = ""
    cause: str = ""
    exit_code: int | None = None
    message: str = ""
    leftover: bool = False


class Attempt(Result):
    """One try of the whole task."""

    attempt: int
    generation: int
    epoch: int
    round: int
    assigned_ms: int
    wait_ms: int
    ended_ms: int = 0
    end: str = ""
    cause: str = ""
    progress_ms: int = 0
    estimate_micro: int = 0
    members: tuple[Member, ...] = ()
    staging: tuple[dict[str, Any], ...] = ()
    crossing: dict[str, Any] | None = None


class TaskStatus(TaskRow):
    """Everything about a task."""

    not_before_ms: int = 0
    attempts: tuple[Attempt, ...] = ()
    checkpoints: tuple[dict[str, Any], ...] = ()
    transfers: tuple[dict[str, Any], ...] = ()
    cost: dict[str, Any] = Field(default_factory=dict)
    currency: str = ""


class Submitted(Result):
    """What became of a submission. `status` is there when its decision was waited for and came."""

    tenant: str
    task: str
    known: bool
    permalink: str
    status: TaskRow | None = None


class Amount(Result):
    """Resources."""

    cpu_milli: int
    memory_bytes: int
    disk_bytes: int
    devices_milli: int


class NodeRow(Result):
    """One node."""

    node: str
    site: str
    rack: str | None = None
    node_class: str = Field(default="", alias="class")
    model: str = ""
    reach: str
    administration: str
    health: str
    health_reason: str = ""
    takes_work: bool
    revoked: bool = False
    blind: bool = False
    note: str = ""
    since_ms: int = 0
    drain_deadline_ms: int | None = None
    revision: int = 0
    session: str = ""
    capacity: Amount
    held: Amount
    free: Amount
    devices: tuple[dict[str, Any], ...] = ()
    price_per_hour_micro: int = 0
    cpu_price_per_hour_micro: int = 0
    labels: dict[str, str] = Field(default_factory=dict)
    running: tuple[str, ...] = ()
    load: dict[str, Any] | None = None


class QueueRow(Result):
    """One queue: limits (null = none), what it holds, how many of its tasks live in which state."""

    queue: str
    known: bool
    held: Amount
    tasks: dict[str, int]
    spent_micro: int
    currency: str = ""
    parent: str | None = None
    limit: dict[str, int | None] = Field(default_factory=dict)
    guaranteed: dict[str, int | None] = Field(default_factory=dict)
    weight_milli: int = 1_000
    order: str = "default"
    waiting_limit: int = 0
    budget_micro: int | None = None


class Ledger(Result):
    """Ledger lines with their sums; `verified` says that every queue's chain holds."""

    items: tuple[dict[str, Any], ...]
    sums: dict[str, Any]
    queues: tuple[dict[str, Any], ...]
    verified: bool
    lines_forgotten: int = 0


class Page(Result, Generic[T]):
    """Rows and where the next page begins; empty = no more."""

    items: tuple[T, ...]
    next: str = ""


class Events(Result):
    """A piece of the tail of events. `reset`: the tail no longer reached back to the place asked for."""

    items: tuple[dict[str, Any], ...]
    next: str
    reset: bool = False
