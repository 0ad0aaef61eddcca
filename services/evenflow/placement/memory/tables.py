"""What others say of nodes, links, datasets and documents: followed from the beginning, the newest wins.

Rounds compare live attempts with these tables each time something changed, so nothing about them has to be remembered
or to arrive in step with receipts.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from evenflow.core.fleet.description import NodeDescription, SiteDescription
from evenflow.core.fleet.views import DatasetView, LinkView, NodeView
from evenflow.core.lifecycle.node import DeviceState, Health, HealthReason, Reach, takes_work
from evenflow.core.placement.policy import DEFAULT_POLICY, Policy
from evenflow.core.queueing.description import QueueDescription
from evenflow.core.queueing.quota import DEFAULT_QUEUE
from evenflow.events.contracts.console import DocumentPublished
from evenflow.events.contracts.inventory import DatasetChanged, NodeStatus
from evenflow.events.contracts.link_probe import LinkEstimate
from evenflow.events.documents.access import KIND, SIGNER_PREFIX, Signer, parse_signer
from evenflow.events.documents.network import parse_site
from evenflow.events.documents.node import parse_node
from evenflow.events.documents.policy import parse_policy, policy_hash
from evenflow.events.documents.queue import parse_queue
from evenflow.events.streams import DATASETS, LINKS, NODES, POLICIES, Stream
from evenflow.platform.broker.codec import Received
from evenflow.platform.security.identity import public_key

#: Streams followed, in the order in which a restart reads them.
STREAMS: Final[tuple[Stream, ...]] = (POLICIES, NODES, LINKS, DATASETS)


class Tables:
    """The tables and what in them changed since the last round."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.nodes: dict[str, NodeStatus] = {}
        self.descriptions: dict[str, NodeDescription] = {}
        self.links: dict[str, LinkView] = {}
        self.datasets: dict[str, DatasetView] = {}
        self.queues: dict[str, QueueDescription] = {DEFAULT_QUEUE: QueueDescription(DEFAULT_QUEUE)}
        self.sites: dict[str, SiteDescription] = {}
        self.signers: dict[str, tuple[Signer, Ed25519PublicKey]] = {}
        self.policy: Policy = DEFAULT_POLICY
        self.policy_hash = policy_hash(DEFAULT_POLICY)
        self.dirty_nodes: dict[str, None] = {}
        self.lost_nodes: dict[str, None] = {}
        self.network_changed = True
        self.queues_changed = True
        self._changed = changed
        self._deleted: dict[str, None] = {}
        self._later: list[tuple[int, str]] = []

    def apply(self, received: Received) -> None:
        """Take one record in. Raises FieldRefused for a document that can't be used; nothing changed then."""
        body = received.body
        if received.topic == NODES.name:
            self._apply_node(received.key, body if isinstance(body, NodeStatus) else None, gone=received.tombstone)
        elif received.topic == LINKS.name:
            self._apply_link(received.key, body if isinstance(body, LinkEstimate) else None)
        elif received.topic == DATASETS.name:
            self._apply_dataset(received.key, body if isinstance(body, DatasetChanged) else None)
        elif received.topic == POLICIES.name:
            self._apply_document(received.key, body if isinstance(body, DocumentPublished) else None)
        self._changed()

    def _apply_node(self, name: str, status: NodeStatus | None, *, gone: bool) -> None:
        if status is not None:
            known = self.nodes.get(name)
            if known is None or known.document != status.document:
                self.descriptions[name] = parse_node(status.document)
            self.nodes[name] = status
            self._deleted.pop(name, None)
            for at_ms in (status.returning_until_ms, status.drain_deadline_ms):
                if at_ms:
                    self.look_again(name, at_ms)
        elif gone and name in self.nodes:
            del self.nodes[name], self.descriptions[name]
            self._deleted[name] = None
        else:
            return
        self.dirty_nodes[name] = None
        if self.lost(name):
            self.lost_nodes[name] = None
        else:
            self.lost_nodes.pop(name, None)

    def _apply_link(self, name: str, body: LinkEstimate | None) -> None:
        self.network_changed = True
        if body is None:
            self.links.pop(name, None)
            return
        self.links[name] = LinkView(
            from_site=body.from_site,
            to_site=body.to_site,
            round_trip_us=body.round_trip_us,
            bandwidth_bits=body.bandwidth_bits,
            price_per_gb_micro=body.price_per_gb_micro,
            confidence_ppm=body.confidence_ppm,
            reachable=body.reachable,
        )

    def _apply_dataset(self, name: str, body: DatasetChanged | None) -> None:
        self.network_changed = True
        if body is None:
            self.datasets.pop(name, None)
            return
        sites = tuple(sorted({copy.site for copy in body.copies}))
        self.datasets[name] = DatasetView(body.dataset, body.size_bytes, body.residency, sites)

    def _apply_document(self, key: str, body: DocumentPublished | None) -> None:
        kind, _, name = key.partition("/")
        if kind == "policy" and name == "default":
            self.policy = parse_policy(body.document) if body is not None else DEFAULT_POLICY
            self.policy_hash = policy_hash(self.policy)
            self.queues_changed = True
            self.dirty_nodes.update(dict.fromkeys(self.nodes))
        elif kind == "queue":
            if body is not None:
                self.queues[name] = parse_queue(body.document)
            elif name == DEFAULT_QUEUE:
                self.queues[name] = QueueDescription(DEFAULT_QUEUE)
            else:
                self.queues.pop(name, None)
            self.queues_changed = True
        elif kind == "site":
            if body is not None:
                self.sites[name] = parse_site(body.document)
            else:
                self.sites.pop(name, None)
            self.network_changed = True
            self.dirty_nodes.update(dict.fromkeys(self.nodes))
        elif kind == KIND and name.startswith(SIGNER_PREFIX):
            self._apply_signer(name.removeprefix(SIGNER_PREFIX), body)

    def _apply_signer(self, name: str, body: DocumentPublished | None) -> None:
        """One that can't be used is forgotten: an older version of it must not go on counting."""
        self.signers.pop(name, None)
        if body is not None:
            signer = parse_signer(body.document)
            self.signers[name] = (signer, public_key(signer.public_key))

    # --- questions ----------------------------------------------------------------------------------------------------

    @property
    def strict_queues(self) -> dict[str, None]:
        """Queues whose head is never passed."""
        return {name: None for name, queue in self.queues.items() if queue.order == "strict"}

    def session_of(self, node: str) -> str:
        """A node's newest session; empty when the node is not known."""
        status = self.nodes.get(node)
        return status.session if status is not None else ""

    def gone(self, node: str) -> bool:
        """Whether a node will never come back: revoked, or its state was deleted. One never heard of is not gone."""
        status = self.nodes.get(node)
        return status.revoked if status is not None else node in self._deleted

    def lost(self, node: str) -> bool:
        """Whether a node was declared lost by an observer who could see."""
        status = self.nodes.get(node)
        return status is None or status.revoked or (status.reach is Reach.LOST and not status.blind)

    def broken_devices(self, node: str) -> frozenset[int]:
        """Indexes of devices that broke."""
        status = self.nodes.get(node)
        if status is None:
            return frozenset()
        return frozenset(device.index for device in status.devices if device.state is DeviceState.BROKEN)

    def look_again(self, node: str, at_ms: int) -> None:
        """Have a node checked anew at a moment: a hold-off, a drain's deadline or a quarantine ends then."""
        heapq.heappush(self._later, (at_ms, node))

    def wake(self, now_ms: int) -> None:
        """Mark the nodes whose moment has come."""
        while self._later and self._later[0][0] <= now_ms:
            _, name = heapq.heappop(self._later)
            if name in self.nodes:
                self.dirty_nodes[name] = None

    @property
    def wake_ms(self) -> int | None:
        """The next such moment."""
        return self._later[0][0] if self._later else None

    def view_of(self, node: str, now_ms: int, *, closed: bool) -> NodeView | None:
        """A node as the engine may use it; None when it is gone. `closed`: placement keeps it out for failed starts."""
        status = self.nodes.get(node)
        if status is None or status.revoked:
            return None
        reason = ""
        # Failed starts are placement's own judgement, told to inventory for all to see; `closed` is what it is now.
        health = Health.OK if status.health_reason is HealthReason.START_FAILURES else status.health
        if not takes_work(status.reach, status.administration, health):
            reason = f"{status.reach}/{status.administration}/{health}"
        elif status.returning_until_ms > now_ms:
            reason = "returning"
        elif closed:
            reason = "start-failures"
        states = {device.index: device.state for device in status.devices}
        description = self.descriptions[node]
        devices = tuple(states.get(index, DeviceState.OK) for index in range(description.device_count))
        return NodeView(description, open=not reason, reason_closed=reason, devices=devices)
