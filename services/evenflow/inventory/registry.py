"""What inventory believes of nodes and datasets: a fold of its own published facts, plus when each node was last heard.

Everything but the times of contact can be rebuilt from `evenflow.nodes.v1` and `evenflow.datasets.v1`; a process
that begins counts every node as heard at that moment.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from evenflow.core.fleet.description import NodeDescription
from evenflow.core.lifecycle.node import Reach
from evenflow.core.probing.liveness import Contact
from evenflow.core.probing.sequence import SequenceWindow
from evenflow.events.contracts.inventory import DatasetChanged, NodeStatus
from evenflow.events.documents.node import parse_node
from evenflow.platform.broker.codec import Received

WINDOWS_PER_NODE_MAX = 4
#: They come in order, one every few seconds: a minute of them is enough to know a repeat, and older ones are refused.
HEARTBEATS_REMEMBERED_MAX = 64


@dataclass(slots=True)
class NodeEntry:
    """One node: its newest published state and what only this process knows."""

    status: NodeStatus
    description: NodeDescription
    last_ms: int
    windows: dict[str, SequenceWindow] = field(default_factory=dict)

    def window(self, session: str) -> SequenceWindow:
        """The replay window of a session; the oldest sessions are forgotten."""
        found = self.windows.get(session)
        if found is None:
            while len(self.windows) >= WINDOWS_PER_NODE_MAX:
                del self.windows[next(iter(self.windows))]
            found = self.windows[session] = SequenceWindow(HEARTBEATS_REMEMBERED_MAX)
        return found


class Registry:
    """All nodes and datasets."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeEntry] = {}
        self.datasets: dict[str, DatasetChanged] = {}

    def apply(self, received: Received, *, now_ms: int) -> None:
        """Fold one published fact; older revisions than the known one change nothing."""
        body = received.body
        if isinstance(body, NodeStatus):
            self.put_node(body, now_ms=now_ms)
        elif isinstance(body, DatasetChanged):
            known = self.datasets.get(body.dataset)
            if known is None or body.revision >= known.revision:
                self.datasets[body.dataset] = body
        elif received.tombstone:
            self.nodes.pop(received.key, None)

    def put_node(self, status: NodeStatus, *, now_ms: int) -> None:
        """Take a published state of a node."""
        entry = self.nodes.get(status.node)
        if entry is None:
            self.nodes[status.node] = NodeEntry(status, parse_node(status.document), now_ms)
        elif status.revision >= entry.status.revision:
            if status.document != entry.status.document:
                entry.description = parse_node(status.document)
            entry.status = status

    def heard_all(self, now_ms: int) -> None:
        """Nobody was listened to until now, so nobody's silence counts from earlier."""
        for entry in self.nodes.values():
            entry.last_ms = now_ms

    def contacts(self) -> dict[str, Contact]:
        """Everybody's last contact, revoked nodes left out."""
        return {
            name: Contact(entry.description.site, entry.last_ms, Reach(entry.status.reach))
            for name, entry in self.nodes.items()
            if not entry.status.revoked
        }
