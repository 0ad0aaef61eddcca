"""Nodes, links and datasets as their owners state them, and what is held on each node by placement's desired state."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.core.fleet.description import NodeDescription
from evenflow.core.lifecycle.attempt import Wish
from evenflow.core.lifecycle.node import DeviceState, Reach, takes_work
from evenflow.core.units import MILLI
from evenflow.events.contracts.inventory import DatasetChanged, NodeRefused, NodeStatus
from evenflow.events.contracts.link_probe import LinkEstimate
from evenflow.events.contracts.placement import AttemptDesired, MemberPlace
from evenflow.events.documents.node import parse_node
from evenflow.platform.broker.codec import Received

REFUSALS_MAX: Final = 1_000


@dataclass(slots=True)
class Holding:
    """One member's place on a node, held until its reclaim receipt was answered with a tombstone."""

    key: str
    task: str
    queue: str
    attempt: int
    member: int
    wish: Wish
    place: MemberPlace


@dataclass(slots=True)
class Node:
    """A node's newest state, its description read once, and what is held there by record key."""

    status: NodeStatus | None = None
    description: NodeDescription | None = None
    at_ms: int = 0
    held: dict[str, Holding] = field(default_factory=dict)


@dataclass(slots=True)
class Amount:
    """A sum over members or capacities."""

    cpu_milli: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    devices_milli: int = 0

    def add(self, place: MemberPlace) -> None:
        """Count a member."""
        self.cpu_milli += place.cpu_milli
        self.memory_bytes += place.memory_bytes
        self.disk_bytes += place.disk_bytes
        self.devices_milli += sum(device.milli for device in place.devices)

    def row(self) -> dict[str, int]:
        """The amounts by name."""
        return {
            "cpu_milli": self.cpu_milli,
            "memory_bytes": self.memory_bytes,
            "disk_bytes": self.disk_bytes,
            "devices_milli": self.devices_milli,
        }


class Fleet:
    """All nodes, links and datasets."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.links: dict[str, tuple[LinkEstimate, int]] = {}
        self.datasets: dict[str, DatasetChanged] = {}
        self.refusals: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._holder: dict[str, str] = {}

    # folding ----------------------------------------------------------------------------------------------------------

    def node(self, received: Received) -> None:
        """A node's state, a refusal, or a tombstone."""
        body = received.body
        if isinstance(body, NodeStatus):
            node = self.nodes.setdefault(body.node, Node())
            if node.status is None or node.status.document != body.document:
                try:
                    node.description = parse_node(body.document)
                except FieldRefused:  # inventory accepted it by newer rules than these
                    node.description = None
            node.status, node.at_ms = body, received.timestamp_ms
            self.refusals.pop(body.node, None)
        elif isinstance(body, NodeRefused):
            self.refusals[body.node] = {**body.model_dump(mode="json"), "at_ms": received.timestamp_ms}
            self.refusals.move_to_end(body.node)
            while len(self.refusals) > REFUSALS_MAX:
                self.refusals.popitem(last=False)
        elif received.tombstone:
            self.nodes.pop(received.key, None)
            self.refusals.pop(received.key.removeprefix("refused/"), None)

    def link(self, received: Received) -> None:
        """A link's estimate."""
        if isinstance(received.body, LinkEstimate):
            self.links[received.key] = (received.body, received.timestamp_ms)
        elif received.tombstone:
            self.links.pop(received.key, None)

    def dataset(self, received: Received) -> None:
        """A dataset's copies."""
        if isinstance(received.body, DatasetChanged):
            self.datasets[received.body.dataset] = received.body
        elif received.tombstone:
            self.datasets.pop(received.key, None)

    def desired(self, received: Received) -> None:
        """What is held where; the tombstone frees it."""
        body = received.body
        if isinstance(body, AttemptDesired):
            place = body.place
            self._holder[received.key] = place.node
            self.nodes.setdefault(place.node, Node()).held[received.key] = Holding(
                received.key, f"{body.tenant}/{body.task}", body.queue, body.attempt, place.member, body.wish, place
            )
        elif received.tombstone and (name := self._holder.pop(received.key, None)) is not None:
            node = self.nodes.get(name)
            if node is not None:
                node.held.pop(received.key, None)
                if node.status is None and not node.held:
                    del self.nodes[name]

    # reading ----------------------------------------------------------------------------------------------------------

    def known(self, name: str) -> bool:
        """Whether inventory speaks of the node."""
        node = self.nodes.get(name)
        return node is not None and node.status is not None

    def is_lost(self, name: str) -> bool:
        """Whether the node counts as lost."""
        node = self.nodes.get(name)
        return node is not None and node.status is not None and node.status.reach is Reach.LOST

    def names(self) -> list[str]:
        """Registered nodes in order of name."""
        return sorted(name for name, node in self.nodes.items() if node.status is not None)

    def holdings(self) -> list[Holding]:
        """Everything held, in order of node and key."""
        return [node.held[key] for _, node in sorted(self.nodes.items()) for key in sorted(node.held)]

    def row(self, name: str) -> dict[str, Any]:
        """A node as the API gives it, without its live load."""
        node = self.nodes[name]
        status, description = node.status, node.description
        assert status is not None  # noqa: S101  names() and known() list no others
        held, per_device = Amount(), dict[int, int]()
        for key in sorted(node.held):
            place = node.held[key].place
            held.add(place)
            for device in place.devices:
                per_device[device.index] = per_device.get(device.index, 0) + device.milli
        capacity = capacity_of(description)
        states = {device.index: device.state for device in status.devices}
        count = description.device_count if description is not None else 0
        devices = [
            {"index": i, "state": str(states.get(i, DeviceState.OK)), "held_milli": per_device.get(i, 0)}
            for i in range(count)
        ]
        usable = sum(MILLI - int(d["held_milli"]) for d in devices if d["state"] == DeviceState.OK)  # type: ignore[call-overload]  # rows hold mixed values
        free = Amount(
            capacity.cpu_milli - held.cpu_milli,
            capacity.memory_bytes - held.memory_bytes,
            capacity.disk_bytes - held.disk_bytes,
            usable,
        )
        return {
            "node": name,
            "site": str(status.document.get("site", "")),
            "rack": description.rack if description is not None else None,
            "class": description.node_class if description is not None else "",
            "model": description.devices.model if description is not None and description.devices else "",
            "reach": str(status.reach),
            "administration": str(status.administration),
            "health": str(status.health),
            "health_reason": str(status.health_reason or ""),
            "takes_work": takes_work(status.reach, status.administration, status.health) and not status.revoked,
            "revoked": status.revoked,
            "blind": status.blind,
            "note": status.note,
            "since_ms": status.since_ms,
            "drain_deadline_ms": status.drain_deadline_ms,
            "revision": status.revision,
            "session": status.session,
            "capacity": capacity.row(),
            "held": held.row(),
            "free": free.row(),
            "devices": devices,
            "price_per_hour_micro": description.price_per_hour_micro if description is not None else 0,
            "cpu_price_per_hour_micro": description.cpu_price_per_hour_micro if description is not None else 0,
            "labels": dict(description.labels) if description is not None else {},
            "running": sorted({holding.task for holding in node.held.values()}),
        }

    def link_row(self, key: str) -> dict[str, Any]:
        """A link as the API gives it."""
        estimate, at_ms = self.links[key]
        return {**estimate.model_dump(mode="json"), "at_ms": at_ms}


def capacity_of(description: NodeDescription | None) -> Amount:
    """All that a node has."""
    if description is None:
        return Amount()
    return Amount(description.cpu_milli, description.memory_bytes, description.disk_bytes, description.devices_milli)
