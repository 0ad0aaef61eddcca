"""What one round has decided so far: changed rows over the model, facts to say, desired state, alerts, parked records.

Nothing here touches the model. The round's transaction writes a draft whole, and only then the model takes its rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from evenflow.core.lifecycle.alerts import Alert
from evenflow.core.lifecycle.attempt import Wish
from evenflow.core.lifecycle.causes import Cause
from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.placement.policy import Policy
from evenflow.events.streams import ALERTS, ASSIGNMENTS, DISPATCH, Stream
from evenflow.placement.memory.model import Model
from evenflow.placement.memory.rows import AlertRow, AttemptRow, MemberRow, NodeRow, Row, TaskRow
from evenflow.placement.memory.tables import Tables
from evenflow.placement.settings import PlacementSettings
from evenflow.platform.broker.codec import Received


@dataclass(slots=True)  # not frozen: three are made for every assignment, and freezing triples the cost
class Said:
    """One fact on its way out. `value` None is a tombstone."""

    stream: Stream
    type: EventType
    key: str
    value: bytes | None
    tenant: str = ""
    correlation_id: str = ""
    causation_id: str = ""


@dataclass(slots=True)
class Counts:
    """What a round did, for its record."""

    considered: int = 0
    assigned: int = 0
    waiting: int = 0
    rejected: int = 0
    ended: int = 0
    refused_receipts: int = 0
    stale_receipts: int = 0
    unknown_types: int = 0


@dataclass(slots=True)
class Draft:
    """One round in the making."""

    model: Model
    tables: Tables
    settings: PlacementSettings
    epoch: int
    round: int
    now_ms: int
    rows: dict[str, Row | None] = field(default_factory=dict)
    said: list[Said] = field(default_factory=list)
    desired: dict[str, Said] = field(default_factory=dict)
    parked: dict[str, tuple[str, str]] = field(default_factory=dict)
    notes: list[dict[str, Any]] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    crossings: list[dict[str, Any]] = field(default_factory=list)
    frees: bool = False
    sequence: int = 0
    #: Tasks that wait anew, each once, however many inputs of the round say so.
    fresh: dict[str, TaskRow] = field(default_factory=dict)
    entered: dict[str, int] = field(default_factory=dict)

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self.tables.policy

    def park(self, received: Received, code: str, problem: str) -> None:
        """Put an input aside as a dead letter, in this round's transaction."""
        self.parked[received.origin] = (code, problem)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def task(self, key: str) -> TaskRow | None:
        """A task as this round sees it; not to be changed."""
        name = f"task/{key}"
        if name in self.rows:
            row = self.rows[name]
            return row if isinstance(row, TaskRow) else None
        return self.model.tasks.get(key)

    def change(self, key: str) -> TaskRow:
        """A known task's row, to be changed in place by this round."""
        name = f"task/{key}"
        row = self.rows.get(name)
        if isinstance(row, TaskRow):
            return row
        fresh = self.model.tasks[key].copied()
        self.rows[name] = fresh
        return fresh

    def changed(self, key: str) -> bool:
        """Whether this round has changed that task."""
        return f"task/{key}" in self.rows

    def add(self, row: TaskRow) -> None:
        """A new task; it gets its place in the order of arrival."""
        self.sequence += 1
        row.sequence = self.sequence
        self.rows[f"task/{row.key}"] = row

    def node(self, node: str) -> NodeRow:
        """What is remembered of a node."""
        row = self.rows.get(f"node/{node}")
        if isinstance(row, NodeRow):
            return row
        return self.model.nodes.get(node) or NodeRow(node)

    def change_node(self, row: NodeRow) -> None:
        """Remember something of a node."""
        self.rows[f"node/{row.node}"] = row

    def forgive_node(self, node: str, session: str = "") -> None:
        """Forget a node's failed starts: one succeeded, or its agent registered anew."""
        row = self.node(node)
        if row.start_failure_count:
            self.change_node(NodeRow(node, session=session or row.session))
            self.clear_alert(Alert.NODE_QUARANTINED, node)

    # --- what goes out ------------------------------------------------------------------------------------------------

    def say(self, type_: EventType, row: TaskRow, body: dict[str, Any], cause: Received | None = None) -> None:
        """A fact about a task on `assignments`; tenant, task and queue are put in."""
        full = {"tenant": row.tenant, "task": row.id, "queue": row.queue, **body}
        self.said.append(
            Said(
                ASSIGNMENTS, type_, row.key, to_json(full), row.tenant, row.correlation_id,
                cause.envelope.id if cause is not None else "",
            )
        )  # fmt: skip

    def say_of(self, type_: EventType, key: str, tenant: str, body: dict[str, Any], cause: Received) -> None:
        """A fact on `assignments` about something that has no row."""
        envelope = cause.envelope
        value = to_json(body)
        self.said.append(Said(ASSIGNMENTS, type_, key, value, tenant, envelope.correlation_id, envelope.id))

    def want(  # the arguments name one desired state
        self,
        row: TaskRow,
        attempt: int,
        member: MemberRow,
        wish: Wish,
        cause: Cause | None = None,
        *,
        place: dict[str, Any] | None = None,
    ) -> None:
        """Tell a member's node what to do with it. `place` is the member's place where it is written already."""
        member.wish = wish
        current = row.current if row.current is not None and row.current.number == attempt else None
        body: dict[str, Any] = {
            "tenant": row.tenant,
            "task": row.id,
            "queue": row.queue,
            "pool": self.model.pool.pool,
            "epoch": self.epoch,
            "attempt": attempt,
            "generation": attempt,
            "wish": wish,
            "place": place or place_document(member),
            "stop_grace_ms": self.settings.stop_grace_ms,
        }
        if cause is not None:
            body["cause"] = cause
        if current is not None and wish is not Wish.RECLAIM:
            body |= _work_of(current)
        value = to_json(body)
        if wish is not Wish.RECLAIM and row.specification:
            value = value[:-1] + b',"specification":' + row.specification + b"}"
        key = dispatch_key(row, attempt, member)
        self.desired[key] = Said(DISPATCH, EventType.ATTEMPT_DESIRED, key, value, row.tenant, row.correlation_id)

    def unwant(self, row: TaskRow, attempt: int, member: MemberRow) -> None:
        """A member is proven free: its desired state goes away."""
        key = dispatch_key(row, attempt, member)
        self.desired[key] = Said(DISPATCH, EventType.ATTEMPT_DESIRED, key, None, row.tenant, row.correlation_id)

    # --- alerts -------------------------------------------------------------------------------------------------------

    def raise_task_alert(self, row: TaskRow, name: Alert, message: str) -> None:
        """Raise an alert about a task unless it stands already; `row` must be one to change."""
        if name not in row.alerts:
            row.alerts = (*row.alerts, str(name))
            self._alert(EventType.ALERT_RAISED, name, row.key, message)

    def clear_task_alerts(self, row: TaskRow, names: Iterable[str]) -> None:
        """Clear those of a task's alerts that stand."""
        standing = [name for name in names if name in row.alerts]
        for name in standing:
            self._alert(EventType.ALERT_CLEARED, Alert(name), row.key, "")
        if standing:
            row.alerts = tuple(name for name in row.alerts if name not in standing)

    def raise_alert(self, name: Alert, subject: str, message: str) -> None:
        """Raise an alert about anything else, once until it is cleared."""
        key = f"{name}/{subject}"
        if self._alert_row(key) is None:
            self.rows[f"alert/{key}"] = AlertRow(str(name), subject, self.now_ms)
            self._alert(EventType.ALERT_RAISED, name, subject, message)

    def clear_alert(self, name: Alert, subject: str) -> None:
        """Clear an alert if it stands."""
        key = f"{name}/{subject}"
        if self._alert_row(key) is not None:
            self.rows[f"alert/{key}"] = None
            self._alert(EventType.ALERT_CLEARED, name, subject, "")

    def _alert_row(self, key: str) -> AlertRow | None:
        if f"alert/{key}" in self.rows:
            row = self.rows[f"alert/{key}"]
            return row if isinstance(row, AlertRow) else None
        return self.model.alerts.get(key)

    def _alert(self, type_: EventType, name: Alert, subject: str, message: str) -> None:
        body = {"name": name, "subject": subject, "message": message, "at_ms": self.now_ms}
        self.said.append(Said(ALERTS, type_, f"{name}/{subject}", to_json(body)))

    def note(self, text: str, **fields: Any) -> None:
        """A line for the log, written after the round."""
        self.notes.append({"text": text, **fields})

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write but offsets."""
        return not (self.rows or self.said or self.desired or self.parked)


def dispatch_key(row: TaskRow, attempt: int, member: MemberRow) -> str:
    """The key of a member's desired state."""
    return f"{member.node}/{row.tenant}/{row.id}/{attempt}/{member.member}"


def place_document(member: MemberRow) -> dict[str, Any]:
    """A member's place as events.contracts.placement.MemberPlace."""
    return {
        "member": member.member,
        "node": member.node,
        "site": member.site,
        "devices": [{"index": index, "milli": milli} for index, milli in member.devices],
        "cpu_milli": member.cpu_milli,
        "memory_bytes": member.memory_bytes,
        "disk_bytes": member.disk_bytes,
        "price_per_hour_micro": member.price_per_hour_micro,
        "cpu_price_per_hour_micro": member.cpu_price_per_hour_micro,
    }


def _work_of(attempt: AttemptRow) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if len(attempt.members) > 1:
        out["peers"] = [member.node for member in attempt.members]
    if attempt.resume:
        out["resume"] = attempt.resume
    if attempt.staging:
        out["staging"] = attempt.staging
    return out
