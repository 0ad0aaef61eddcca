"""What agents say: receipts (`evenflow.runs.v1`), telemetry, probes, transfers. Only they say what happened there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import model_validator

from evenflow.core.lifecycle.causes import Cause
from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.node import DeviceState
from evenflow.events.contract import Contract, Count, Document, Id, Part, Text


class Receipt(Contract):
    """Common part of every receipt: which member of which attempt, and when by the agent's wall clock.

    `queue` is echoed from the desired state, so that a reader needs no other stream to know whose it is.
    """

    tenant: Id
    task: Id
    attempt: Count
    generation: Count
    member: Count
    epoch: Count
    node: Id
    queue: Text = "default"
    at_ms: Count


class AttemptAccepted(Receipt):
    """The agent holds the devices for this member."""

    TYPE: ClassVar = EventType.ATTEMPT_ACCEPTED


class AttemptRefused(Receipt):
    """The agent does not take it: a lower attempt or epoch than it has applied, or it can't hold it."""

    TYPE: ClassVar = EventType.ATTEMPT_REFUSED
    reason: Text


class AttemptStaged(Receipt):
    """Data and environment are there. `took_ms` by the agent's monotonic clock, `bytes` counted on arrival."""

    TYPE: ClassVar = EventType.ATTEMPT_STAGED
    bytes: Count = 0
    took_ms: Count = 0


class AttemptStarted(Receipt):
    """Ready: work counts from here.

    `resumed_progress_ms` is the progress it starts from (0 = from the beginning), of checkpoint
    `resumed_checkpoint` (0 = none) written by generation `resumed_generation`. `damaged` are checkpoints found bad on
    the way.
    """

    TYPE: ClassVar = EventType.ATTEMPT_STARTED
    start_ms: Count = 0
    resumed_progress_ms: Count = 0
    resumed_generation: Count = 0
    resumed_checkpoint: Count = 0
    damaged: tuple[Text, ...] = ()


class AttemptProgressed(Receipt):
    """Progress in milliseconds of work at relative speed 1."""

    TYPE: ClassVar = EventType.ATTEMPT_PROGRESSED
    progress_ms: Count
    run_ms: Count


class AttemptCheckpointed(Receipt):
    """A checkpoint is complete in the store; its manifest was written last."""

    TYPE: ClassVar = EventType.ATTEMPT_CHECKPOINTED
    checkpoint: Count
    progress_ms: Count
    run_ms: Count
    manifest: Text
    size_bytes: Count
    site: Id


class Outcome(Part):
    """What became of a member's run. Durations by the agent's monotonic clock.

    `run_ms` counts from ready to the end of work, `stop_ms` from the end of work to proven free.
    """

    ended_as: Text
    run_ms: Count = 0
    start_ms: Count = 0
    stop_ms: Count = 0
    progress_ms: Count = 0
    cause: Cause | None = None
    exit_code: int | None = None
    message: Text = ""


class AttemptSucceeded(Receipt):
    """The member's work is complete."""

    TYPE: ClassVar = EventType.ATTEMPT_SUCCEEDED
    outcome: Outcome
    output_bytes: Count = 0


class AttemptFailed(Receipt):
    """The member's run ended by itself without success, or never became ready."""

    TYPE: ClassVar = EventType.ATTEMPT_FAILED
    outcome: Outcome


class AttemptStopped(Receipt):
    """The member was stopped as desired."""

    TYPE: ClassVar = EventType.ATTEMPT_STOPPED
    outcome: Outcome


class AttemptReclaimed(Receipt):
    """Devices proven free, scratch clean. Carries the outcome again, so it is enough by itself.

    `leftover` says that a process is still on a device: then the capacity does not return. What was held, and its
    prices per hour of a device and of a core, are echoed from the desired state, for the charge of stopping.
    """

    TYPE: ClassVar = EventType.ATTEMPT_RECLAIMED
    outcome: Outcome
    leftover: bool = False
    site: Text = ""
    device_milli: Count = 0
    cpu_milli: Count = 0
    price_per_hour_micro: Count = 0
    cpu_price_per_hour_micro: Count = 0


class NodeAnnounced(Contract):
    """An agent connected. `document` is its node document, checked by inventory; `agent_version` is major.minor.

    `public_key` is the key that it proved to the gateway.
    """

    TYPE: ClassVar = EventType.NODE_ANNOUNCED
    node: Text
    session: Text
    document: Document
    agent_version: Text
    booted_ms: Count = 0
    public_key: Text = ""


@dataclass(frozen=True, slots=True)
class DeviceLoad:
    """One device's reading, as an agent takes it."""

    state: DeviceState = DeviceState.OK
    used_milli: int = 0
    memory_used_bytes: int = 0
    utilisation_milli: int = 0


class NodeHeartbeat(Contract):
    """Life sign with the load of the node and each of its devices.

    Devices travel as columns, one number per device in order of index: a heartbeat of eight devices is read three times
    faster than eight objects, and it is the commonest record of all.
    """

    TYPE: ClassVar = EventType.NODE_HEARTBEAT
    node: Id
    session: Text
    at_ms: Count
    cpu_used_milli: Count = 0
    memory_used_bytes: Count = 0
    disk_used_bytes: Count = 0
    running_count: Count = 0
    device_states: tuple[DeviceState, ...] = ()
    device_used_milli: tuple[Count, ...] = ()
    device_memory_used_bytes: tuple[Count, ...] = ()
    device_utilisation_milli: tuple[Count, ...] = ()

    @model_validator(mode="after")
    def _columns_are_equally_long(self) -> Self:
        count = len(self.device_states)
        columns = (self.device_used_milli, self.device_memory_used_bytes, self.device_utilisation_milli)
        if any(len(column) != count for column in columns):
            raise ValueError("the device columns must have one entry per device each")
        return self

    @classmethod
    def of(cls, devices: Sequence[DeviceLoad], **fields: Any) -> NodeHeartbeat:
        """A heartbeat with these devices, in order of index."""
        return cls(
            device_states=tuple(d.state for d in devices),
            device_used_milli=tuple(d.used_milli for d in devices),
            device_memory_used_bytes=tuple(d.memory_used_bytes for d in devices),
            device_utilisation_milli=tuple(d.utilisation_milli for d in devices),
            **fields,
        )


class LinkSampled(Contract):
    """One probe of a directed link, seen by the sending site's node. Zero bandwidth = only the path was probed."""

    TYPE: ClassVar = EventType.LINK_SAMPLED
    from_site: Id
    to_site: Id
    node: Id
    at_ms: Count
    request: Text = ""
    reachable: bool = True
    round_trip_us: Count = 0
    jitter_us: Count = 0
    loss_ppm: Count = 0
    bandwidth_bits: Count = 0
    sent_bytes: Count = 0


class Transfer(Contract):
    """Common part: one dataset, checkpoint or output moving between two sites for a task.

    `bytes` is the size of one read; `reads` and `price_micro` (for one whole read) are echoed from the desired state.
    """

    transfer: Text
    dataset: Text
    from_site: Id
    to_site: Id
    tenant: Id
    task: Id
    attempt: Count
    member: Count
    queue: Text
    node: Id
    bytes: Count
    reads: Count = 1
    keep_copy: bool = False
    price_micro: Count = 0


class TransferPlanned(Transfer):
    """It is about to start."""

    TYPE: ClassVar = EventType.TRANSFER_PLANNED


class TransferProgressed(Transfer):
    """So far."""

    TYPE: ClassVar = EventType.TRANSFER_PROGRESSED
    counted_bytes: Count


class TransferFinished(Transfer):
    """All there, digest right. `counted_bytes` were counted on arrival, `took_ms` by the receiver's monotonic clock."""

    TYPE: ClassVar = EventType.TRANSFER_FINISHED
    counted_bytes: Count
    took_ms: Count


class TransferFailed(Transfer):
    """It broke off; what was counted until then."""

    TYPE: ClassVar = EventType.TRANSFER_FAILED
    counted_bytes: Count
    took_ms: Count
    problem: Text
    missing: bool = False
