"""What placement decides: assignments, desired state, its own state records, rounds. Only it states decisions."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from evenflow.core.lifecycle.attempt import AttemptEnd, Wish
from evenflow.core.lifecycle.causes import Cause
from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.reasons import Reason
from evenflow.core.lifecycle.task import TaskState
from evenflow.events.contract import Contract, Count, Document, Id, Part, Signed, Text
from evenflow.events.contracts.checkpoint import ResumePoint


class ReasonDetail(Part):
    """One blocker with its arithmetic, as core.lifecycle.reasons.Blocker."""

    reason: Reason
    dimension: Text = ""
    needed: Text = ""
    available: Text = ""
    nodes: Count = 0


class DeviceShare(Part):
    """A device of the member's node and how much of it: 1000 = whole."""

    index: Count
    milli: Count


class MemberPlace(Part):
    """Where one member runs and what it holds there. Prices are per hour, of a whole device and of one core.

    `device_memory_bytes` is held on each device, `disk_bytes` includes staged data.
    """

    member: Count
    node: Id
    site: Id
    devices: tuple[DeviceShare, ...] = ()
    cpu_milli: Count
    memory_bytes: Count
    disk_bytes: Count
    price_per_hour_micro: Count = 0
    cpu_price_per_hour_micro: Count = 0
    device_memory_bytes: Count = 0


class CrossingTerms(Part):
    """The arithmetic of running away from the data's site. Milliseconds, bytes, micro-units.

    gain = (stay_wait + stay_run) - (max(transfer_in, cross_wait) + cross_run + transfer_out), or in money when the
    task's objective is cost; taken when gain > margin_ppm × stay value.
    """

    dataset: Text
    from_site: Id
    to_site: Id
    bytes: Count
    reads: Count
    keep_copy: bool
    bandwidth_bits: Count
    confidence_ppm: Count
    transfer_in_ms: Count
    transfer_out_ms: Count = 0
    stay_wait_ms: Count
    stay_run_ms: Count
    cross_wait_ms: Count
    cross_run_ms: Count
    stay_cost_micro: Count = 0
    cross_cost_micro: Count = 0
    transfer_cost_micro: Count = 0
    margin_ppm: Count
    by_money: bool = False
    gain_ms: Signed = 0
    gain_micro: Signed = 0
    taken: bool


class Staging(Part):
    """Data to bring before the start: from which site over which sites, for which price per read."""

    dataset: Text
    from_site: Id
    bytes: Count
    reads: Count = 1
    keep_copy: bool = True
    price_micro: Count = 0


class MemberUse(Part):
    """What one member of an ended attempt used, by its accepted receipts. `started` is False if never ready."""

    place: MemberPlace
    ended_as: Text
    started: bool
    run_ms: Count = 0
    start_ms: Count = 0
    progress_ms: Count = 0


class AttemptUse(Part):
    """An ended attempt: what billing meters. `wait_ms` from (re)queueing to assignment by placement's clock."""

    attempt: Count
    generation: Count
    end: AttemptEnd
    cause: Cause | None = None
    wait_ms: Count = 0
    members: tuple[MemberUse, ...] = ()
    crossing: CrossingTerms | None = None


class TaskQueued(Contract):
    """The task waits, for the first time or with other reasons than before."""

    TYPE: ClassVar = EventType.TASK_QUEUED
    tenant: Id
    task: Id
    queue: Text
    name: Text = ""
    priority: Count
    reasons: tuple[ReasonDetail, ...] = ()
    position: Count = 0
    submitted_ms: Count
    crossing: CrossingTerms | None = None


class TaskAssigned(Contract):
    """The task got its place. `wait_ms` since it was queued; `resume` are verified checkpoints, newest first.

    `saves`: it may write checkpoints, so something may be left of one that nobody ever heard of.
    """

    TYPE: ClassVar = EventType.TASK_ASSIGNED
    tenant: Id
    task: Id
    queue: Text
    pool: Id
    epoch: Count
    round: Count
    attempt: Count
    generation: Count
    members: tuple[MemberPlace, ...]
    wait_ms: Count
    submitted_ms: Count
    resume: tuple[ResumePoint, ...] = ()
    staging: tuple[Staging, ...] = ()
    crossing: CrossingTerms | None = None
    estimate_micro: Count = 0
    saves: bool = False


class TaskPreempted(Contract):
    """The task must give its place up for another; it goes back to its queue."""

    TYPE: ClassVar = EventType.TASK_PREEMPTED
    tenant: Id
    task: Id
    queue: Text
    attempt: Count
    by: Text


class TaskRequeued(Contract):
    """An attempt ended without ending the task."""

    TYPE: ClassVar = EventType.TASK_REQUEUED
    tenant: Id
    task: Id
    queue: Text
    epoch: Count
    use: AttemptUse
    failure_count: Count
    not_before_ms: Count = 0


class TaskRejected(Contract):
    """The submission was refused for good. `path` names the field when the reason is invalid."""

    TYPE: ClassVar = EventType.TASK_REJECTED
    tenant: Text
    task: Text
    queue: Text = ""
    reason: ReasonDetail
    path: Text = ""
    problem: Text = ""


class TaskEnded(Contract):
    """The one end of a task. `use` is absent when no attempt was ever given a node."""

    TYPE: ClassVar = EventType.TASK_ENDED
    tenant: Id
    task: Id
    queue: Text
    epoch: Count
    end: TaskState
    cause: Cause | None = None
    attempt: Count = 0
    failure_count: Count = 0
    use: AttemptUse | None = None
    submitted_ms: Count
    message: Text = ""


class TaskChanged(Contract):
    """A change was applied."""

    TYPE: ClassVar = EventType.TASK_CHANGED
    tenant: Id
    task: Id
    priority: Count
    members: Count


class TaskChangeRefused(Contract):
    """A change was refused."""

    TYPE: ClassVar = EventType.TASK_CHANGE_REFUSED
    tenant: Text
    task: Text
    path: Text
    problem: Text


class SubmissionRefused(Contract):
    """A used id with another body, or a request without a right signature: the task it names is untouched."""

    TYPE: ClassVar = EventType.SUBMISSION_REFUSED
    tenant: Text
    task: Text
    reason: ReasonDetail


class AttemptDesired(Contract):
    """What the node must do for one member: keyed node/tenant/task/attempt/member, tombstone after the reclaim receipt.

    `specification` is the task's document. A connecting agent gets its whole set and reconciles.
    """

    TYPE: ClassVar = EventType.ATTEMPT_DESIRED
    tenant: Id
    task: Id
    queue: Text
    pool: Id
    epoch: Count
    attempt: Count
    generation: Count
    wish: Wish
    place: MemberPlace
    peers: tuple[Id, ...] = ()
    specification: Document = Field(default_factory=dict)
    resume: tuple[ResumePoint, ...] = ()
    staging: tuple[Staging, ...] = ()
    stop_grace_ms: Count = 10_000
    cause: Cause | None = None


class StateRecorded(Contract):
    """One row of what placement must remember; the record's key is its name (`task/…`, `node/…`, `pool/…`).

    `state_version` is the layout's number: an older build never leads over newer rows.
    """

    TYPE: ClassVar = EventType.STATE_RECORDED
    state_version: Count
    row: Document


class RoundCompleted(Contract):
    """One placement round: from which inputs, by which policy, with what result and cost in time."""

    TYPE: ClassVar = EventType.ROUND_COMPLETED
    pool: Id
    epoch: Count
    round: Count
    policy_hash: Text
    inputs_hash: Text
    load_hash: Text = ""
    offsets: dict[str, int]
    considered_count: Count
    assigned_count: Count
    waiting_count: Count
    rejected_count: Count
    ended_count: Count
    stage_us: dict[str, int] = Field(default_factory=dict)
    crossings: tuple[CrossingTerms, ...] = ()
