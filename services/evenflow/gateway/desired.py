"""Every node's desired set and one-off requests: a fold of dispatch, node requests and nodes, with long polling.

Revisions count one gateway process's changes of one node's set. A reader that comes with another instance or a revision
that this process can't continue from gets the whole set.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from evenflow.events import streams
from evenflow.events.contracts.inventory import NodeStatus
from evenflow.gateway.settings import GatewaySettings
from evenflow.platform.broker.codec import Received


@dataclass(frozen=True, slots=True)
class Row:
    """One key at its newest revision; empty value = gone."""

    revision: int
    value: bytes
    id: str
    correlation_id: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    revision: int
    id: str
    type: str
    value: bytes


@dataclass(slots=True)
class NodeSet:
    """One node's rows by key. Changes from revisions below `floor` are not known any more."""

    revision: int = 0
    floor: int = 0
    rows: dict[str, Row] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)
    asked: deque[Asked] = field(default_factory=deque)
    waiting: list[asyncio.Future[None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Change:
    """What a reader gets: rows by key, in order of change."""

    revision: int
    full: bool
    rows: tuple[tuple[str, Row], ...]
    asked: tuple[Asked, ...]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to say."""
        return not (self.full or self.rows or self.asked)


class DesiredSets:
    """All nodes' sets, as far as this process has read."""

    def __init__(self, settings: GatewaySettings, now_ms: Callable[[], int]) -> None:
        self._settings = settings
        self._now_ms = now_ms
        self._nodes: dict[str, NodeSet] = {}
        self.revoked: dict[str, None] = {}
        self.keys: dict[str, str] = {}

    def apply(self, received: Received) -> None:
        """Fold one record."""
        if received.topic == streams.DISPATCH.name:
            self._dispatch(received)
        elif received.topic == streams.NODE_REQUESTS.name:
            self._request(received)
        elif isinstance(received.body, NodeStatus):
            self._status(received.body)

    def _dispatch(self, received: Received) -> None:
        node, _, key = received.key.partition("/")
        entry = self._nodes.setdefault(node, NodeSet())
        if received.tombstone and key not in entry.rows:
            return
        entry.revision += 1
        if received.tombstone:
            del entry.rows[key]
            entry.gone[key] = entry.revision
            while len(entry.gone) > self._settings.tombstones_per_node_max:
                entry.floor = max(entry.floor, entry.gone.pop(next(iter(entry.gone))))
        else:
            entry.rows.pop(key, None)
            entry.gone.pop(key, None)
            envelope = received.envelope
            entry.rows[key] = Row(entry.revision, received.json, envelope.id, envelope.correlation_id)
        self._wake(entry)

    def _request(self, received: Received) -> None:
        if received.body is None or self._now_ms() - received.timestamp_ms > self._settings.request_age_ms_max:
            return
        entry = self._nodes.setdefault(received.key, NodeSet())
        entry.revision += 1
        envelope = received.envelope
        entry.asked.append(Asked(entry.revision, envelope.id, envelope.type, received.json))
        while len(entry.asked) > self._settings.requests_per_node_max:
            entry.asked.popleft()
        self._wake(entry)

    def _status(self, status: NodeStatus) -> None:
        if status.public_key:
            self.keys[status.node] = status.public_key
        if status.revoked:
            self.revoked[status.node] = None
        else:
            self.revoked.pop(status.node, None)
        entry = self._nodes.get(status.node)
        if status.revoked and entry is not None:
            self._wake(entry)

    def read(self, node: str, *, resume_from: int | None) -> Change:
        """Changes since a revision of this process; None = the whole set."""
        entry = self._nodes.get(node)
        if entry is None:
            return Change(0, full=resume_from != 0, rows=(), asked=())
        if resume_from is None or not entry.floor <= resume_from <= entry.revision:
            return Change(entry.revision, full=True, rows=tuple(entry.rows.items()), asked=tuple(entry.asked))
        rows = [(key, row) for key, row in entry.rows.items() if row.revision > resume_from]
        rows += [(key, Row(rev, b"", "", "")) for key, rev in entry.gone.items() if rev > resume_from]
        rows.sort(key=lambda pair: pair[1].revision)
        asked = tuple(one for one in entry.asked if one.revision > resume_from)
        return Change(entry.revision, full=False, rows=tuple(rows), asked=asked)

    async def changed(self, node: str, wait_ms: int) -> None:
        """Return when the node's set changed, or after the wait."""
        entry = self._nodes.setdefault(node, NodeSet())
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry.waiting.append(future)
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await future
        except TimeoutError:
            pass
        finally:
            if future in entry.waiting:
                entry.waiting.remove(future)

    def holds(self, node: str, task_key: str) -> bool:
        """Whether any attempt of tenant/task is on the node."""
        entry = self._nodes.get(node)
        return entry is not None and any(key.startswith(f"{task_key}/") for key in entry.rows)

    @staticmethod
    def _wake(entry: NodeSet) -> None:
        waiting, entry.waiting = entry.waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)
