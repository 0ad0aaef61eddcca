"""What inventory states: nodes, datasets, its beacon, and what it asks of nodes."""

from __future__ import annotations

from typing import ClassVar

from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.node import Administration, DeviceState, Health, HealthReason, Reach
from evenflow.events.contract import Contract, Count, Document, Id, Part, Text


class DeviceStatus(Part):
    """One device as placement may use it."""

    index: Count
    state: DeviceState = DeviceState.OK


class NodeStatus(Contract):
    """The whole current state of a node: the stream is compacted, so each record stands alone.

    `document` is the node document as accepted. `session` is the agent's newest session; `revision` grows with each
    change. `drain_deadline_ms` is the wall-clock end of a drain. `blind` freezes expiry. `returning_until_ms`: a node
    back from being lost takes no new work before that wall-clock time. `public_key` is the key that the node proved, so
    that gateways know it again from the log alone.
    """

    node: Id
    revision: Count
    document: Document
    session: Text
    reach: Reach
    administration: Administration
    health: Health
    health_reason: HealthReason | None = None
    devices: tuple[DeviceStatus, ...] = ()
    since_ms: Count = 0
    drain_deadline_ms: Count | None = None
    returning_until_ms: Count = 0
    blind: bool = False
    revoked: bool = False
    note: Text = ""
    public_key: Text = ""


class NodeRegistered(NodeStatus):
    """The node is new here, or announced another description."""

    TYPE: ClassVar = EventType.NODE_REGISTERED


class NodeChanged(NodeStatus):
    """Something about the node changed."""

    TYPE: ClassVar = EventType.NODE_CHANGED


class NodeRefused(Contract):
    """An announcement was refused; keyed `refused/<node>` so that it never overwrites a node's state."""

    TYPE: ClassVar = EventType.NODE_REFUSED
    node: Text
    path: Text
    problem: Text


class ObserverBeacon(Contract):
    """Inventory's own life sign, sent down the path that telemetry takes: missing it means being blind."""

    TYPE: ClassVar = EventType.OBSERVER_BEACON
    observer: Text
    sequence: Count


class DatasetCopy(Part):
    """A copy of a dataset at a site."""

    site: Id
    authoritative: bool = False


class DatasetChanged(Contract):
    """The whole current state of a dataset: compacted, keyed by dataset."""

    TYPE: ClassVar = EventType.DATASET_CHANGED
    dataset: Id
    revision: Count
    size_bytes: Count
    residency: tuple[Id, ...] = ()
    copies: tuple[DatasetCopy, ...] = ()


class NodeProbeRequested(Contract):
    """Measure a link from this node's site."""

    TYPE: ClassVar = EventType.NODE_PROBE_REQUESTED
    node: Id
    request: Text
    to_site: Id
    bytes: Count = 0


class DatasetPrefetchRequested(Contract):
    """Bring a dataset to this node's site."""

    TYPE: ClassVar = EventType.DATASET_PREFETCH_REQUESTED
    node: Id
    request: Text
    dataset: Id
    from_site: Id


class NodeInspectRequested(Contract):
    """Look at yourself."""

    TYPE: ClassVar = EventType.NODE_INSPECT_REQUESTED
    node: Id
    request: Text


class TaskCheckpointRequested(Contract):
    """Save the task's progress now."""

    TYPE: ClassVar = EventType.TASK_CHECKPOINT_REQUESTED
    node: Id
    request: Text
    tenant: Id
    task: Id
    attempt: Count
