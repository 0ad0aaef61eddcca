"""Inventory's use-cases: register, hear, judge silence, obey operators, keep the dataset catalogue, flush load.

Each use-case returns the facts to publish; the caller publishes them and only then acknowledges its cause. Publishing
the same fact again is harmless: its id comes from its cause and its revision from the registry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenflow.core.errors import FieldRefused
from evenflow.core.fleet.description import NodeDescription
from evenflow.core.lifecycle.alerts import Alert
from evenflow.core.lifecycle.node import Administration, DeviceState, Health, HealthReason, Reach
from evenflow.core.probing.liveness import judge
from evenflow.core.probing.sequence import Freshness
from evenflow.core.product import VERSION
from evenflow.core.units import QUANTITY_MAX
from evenflow.events import streams
from evenflow.events.contract import Contract
from evenflow.events.contracts.agent import NodeAnnounced, NodeHeartbeat
from evenflow.events.contracts.inventory import (
    DeviceStatus,
    NodeChanged,
    NodeRefused,
    NodeRegistered,
    NodeStatus,
    ObserverBeacon,
)
from evenflow.events.contracts.platform import AlertCleared, AlertRaised
from evenflow.events.documents.node import parse_node
from evenflow.events.documents.readiness import planned_in_node
from evenflow.inventory.load import LiveRows
from evenflow.inventory.registry import Registry
from evenflow.inventory.settings import InventorySettings
from evenflow.inventory.silence import Silence
from evenflow.platform.broker.codec import Fact, Received
from evenflow.platform.runtime import Runtime
from evenflow.platform.versions import check_agent_version


class Inventory:
    """State and rules of one inventory process."""

    def __init__(self, runtime: Runtime, settings: InventorySettings) -> None:
        self.runtime = runtime
        self.settings = settings
        self.registry = Registry()
        self.load = LiveRows()
        self.silence = Silence(settings)
        self.beacon_ms = runtime.clock.monotonic_ms()
        self.blind_since_ms: int | None = None
        self.raised: dict[tuple[Alert, str], bool] = {}
        self.restored = False
        self.ignored_count = 0
        self._beacon_sequence = 0

    def restore(self, received: Received) -> None:
        """Fold an own fact."""
        self.registry.apply(received, now_ms=self.runtime.clock.monotonic_ms())

    async def begin(self) -> None:
        """All that was left behind is known: from now on this copy hears and judges. Everybody counts as heard now."""
        self.restored = True
        self.beacon_ms = self.runtime.clock.monotonic_ms()
        self.registry.heard_all(self.beacon_ms)

    def restore_alert(self, received: Received) -> None:
        """Fold the alerts that an earlier process of inventory left standing; one's own are known already."""
        body = received.body
        if self.restored or received.envelope.source != self.runtime.name:
            return
        if isinstance(body, AlertRaised):
            self.raised[body.name, body.subject] = True
        elif isinstance(body, AlertCleared):
            self.raised.pop((body.name, body.subject), None)

    # hearing ----------------------------------------------------------------------------------------------------------

    def hear(self, events: Sequence[Received]) -> list[Fact]:
        """Take a batch of telemetry."""
        facts: list[Fact] = []
        for received in events:
            body = received.body
            if isinstance(body, NodeHeartbeat):
                facts += self._heartbeat(received, body)
            elif isinstance(body, NodeAnnounced):
                facts += self._announced(received, body)
            elif isinstance(body, ObserverBeacon) and body.observer == self.runtime.name:
                self.beacon_ms = self.runtime.clock.monotonic_ms()
        return facts

    def _announced(self, received: Received, body: NodeAnnounced) -> list[Fact]:
        try:
            description = self._admit(body)
        except FieldRefused as refusal:
            refused = NodeRefused(node=body.node, path=refusal.path, problem=refusal.problem)
            return [Fact(streams.NODES, refused, cause=received)]
        known = self.registry.nodes.get(description.id)
        now_ms = self.runtime.clock.now_ms()
        if known is None or known.status.document != body.document:
            base = known.status if known is not None else None
            if known is not None:
                known.last_ms = self.runtime.clock.monotonic_ms()
            devices = tuple(DeviceStatus(index=index) for index in range(description.device_count))
            status = NodeRegistered(
                node=description.id,
                revision=_after(base.revision) if base else 1,
                document=body.document,
                session=body.session,
                reach=Reach.OK,
                administration=base.administration if base else Administration.OPEN,
                health=base.health if base else Health.OK,
                health_reason=base.health_reason if base else None,
                devices=devices,
                since_ms=now_ms,
                drain_deadline_ms=base.drain_deadline_ms if base else None,
                returning_until_ms=self._hold_off(base, now_ms),
                blind=self.blind_since_ms is not None,
                public_key=body.public_key or (base.public_key if base else ""),
            )
            return [*self._publish_status(status, received), *self._clear_silence(description.id, received)]
        known.last_ms = self.runtime.clock.monotonic_ms()
        changes: dict[str, Any] = {"session": body.session} if known.status.session != body.session else {}
        if body.public_key and body.public_key != known.status.public_key:
            changes["public_key"] = body.public_key
        return self._heard(description.id, received, changes)

    def _admit(self, body: NodeAnnounced) -> NodeDescription:
        check_agent_version(agent=body.agent_version, server=VERSION)
        description = parse_node(body.document)
        if paths := planned_in_node(description):
            raise FieldRefused(paths[0], "is planned and does nothing yet; leave the field out")
        if description.id != body.node:
            raise FieldRefused("id", f"is {description.id!r} but the agent says it is {body.node[:128]!r}")
        known = self.registry.nodes.get(description.id)
        if known is None and len(self.registry.nodes) >= self.settings.node_count_max:
            raise FieldRefused("id", f"the pool already has {self.settings.node_count_max} nodes")
        if known is not None and known.status.revoked:
            raise FieldRefused("id", "this node was revoked; give the machine a new id and token")
        return description

    def _heartbeat(self, received: Received, body: NodeHeartbeat) -> list[Fact]:
        entry = self.registry.nodes.get(body.node)
        stamp = received.envelope.stamp
        if entry is None or entry.status.revoked or entry.status.session != body.session:
            self.ignored_count += 1
            return []
        if stamp is not None:
            judged = entry.window(stamp.session).judge(stamp.sequence, received.value)
            if judged is Freshness.CONFLICT:
                return self._raise(Alert.NODE_IDENTITY, body.node, "one sequence number with two contents", received)
            if judged is not Freshness.FRESH:
                self.ignored_count += 1
                return []
        entry.last_ms = self.runtime.clock.monotonic_ms()
        self.load.put(entry.description.site, body, now_ms=self.runtime.clock.now_ms())
        changes: dict[str, Any] = {}
        devices = _with_states(entry.status.devices, body)
        if devices is not None:
            changes["devices"] = devices
        facts = self._heard(body.node, received, changes)
        if devices is not None:
            facts += self._leftovers(body.node, devices, received)
        return facts

    def _leftovers(self, node: str, devices: Sequence[DeviceStatus], cause: Received) -> list[Fact]:
        held = [d.index for d in devices if d.state is DeviceState.HELD]
        if held:
            return self._raise(Alert.NODE_LEFTOVER, node, f"a process is still on device {held[0]}", cause)
        return self._clear(Alert.NODE_LEFTOVER, node, cause)

    def _heard(self, node: str, cause: Received, changes: dict[str, Any]) -> list[Fact]:
        """A sign of life: whatever silence did is undone, a node back from being lost waits out its hold-off."""
        status = self.registry.nodes[node].status
        now_ms = self.runtime.clock.now_ms()
        if status.reach is not Reach.OK:
            changes |= {"reach": Reach.OK, "since_ms": now_ms, "returning_until_ms": self._hold_off(status, now_ms)}
        if not changes:
            return []
        return [*self._change(node, cause, **changes), *self._clear_silence(node, cause)]

    def _hold_off(self, status: NodeStatus | None, now_ms: int) -> int:
        if status is not None and status.reach is Reach.LOST:
            return now_ms + self.silence.hold_off_ms if self.silence.hold_off_ms else 0
        return status.returning_until_ms if status is not None else 0

    # judging ----------------------------------------------------------------------------------------------------------

    def judge_silence(self) -> list[Fact]:
        """Periodic: suspects, losses, blindness, ended hold-offs."""
        verdict = judge(
            self.registry.contacts(),
            beacon_ms=self.beacon_ms,
            blind_since_ms=self.blind_since_ms,
            now_ms=self.runtime.clock.monotonic_ms(),
            limits=self.silence.tolerance,
        )
        facts: list[Fact] = []
        facts += (
            self._clear(Alert.OBSERVER_BLIND, self.runtime.name, None)
            if verdict.blind_since_ms is None
            else self._raise(Alert.OBSERVER_BLIND, self.runtime.name, verdict.blind_why, None)
        )
        self.blind_since_ms = verdict.blind_since_ms
        now_ms = self.runtime.clock.now_ms()
        for node, reach in verdict.changes:
            facts += self._change(node, None, reach=reach, since_ms=now_ms)
            alert = Alert.NODE_LOST if reach is Reach.LOST else Alert.NODE_SUSPECT
            facts += self._raise(alert, node, f"silent; last heard {self._ago(node)} s ago", None)
        for node in sorted(self.registry.nodes):
            status = self.registry.nodes[node].status
            if status.returning_until_ms and status.returning_until_ms <= now_ms and status.reach is Reach.OK:
                facts += self._change(node, None, returning_until_ms=0)
        return facts

    def _ago(self, node: str) -> int:
        return (self.runtime.clock.monotonic_ms() - self.registry.nodes[node].last_ms) // 1000

    def beacon(self) -> list[Fact]:
        """Periodic: the own life sign, down the path that telemetry takes."""
        self._beacon_sequence += 1
        beat = ObserverBeacon(observer=self.runtime.name, sequence=self._beacon_sequence)
        return [Fact(streams.TELEMETRY, beat)]

    def heed(self, received: Received) -> list[Fact]:
        """Show in a node's state that placement closed it for failed starts, or opened it again."""
        body = received.body
        if not isinstance(body, AlertRaised | AlertCleared) or body.name is not Alert.NODE_QUARANTINED:
            return []
        entry = self.registry.nodes.get(body.subject)
        if entry is None:
            return []
        if isinstance(body, AlertRaised):
            closed = {"health": Health.QUARANTINED, "health_reason": HealthReason.START_FAILURES}
            return self._change(body.subject, received, **closed)
        if entry.status.health_reason is not HealthReason.START_FAILURES:
            return []
        return self._change(body.subject, received, health=Health.OK, health_reason=None)

    # operators --------------------------------------------------------------------------------------------------------

    def administer(self, node: str, cause: Received, **changes: Any) -> list[Fact]:
        """Change what operators decide. A request for an unknown node is refused and goes to the dead letters."""
        entry = self.registry.nodes.get(node)
        if entry is None:
            raise FieldRefused("node", f"there is no node {node!r}; evenflow nodes lists them")
        return self._change(node, cause, **changes)

    # publishing -------------------------------------------------------------------------------------------------------

    def _change(self, node: str, cause: Received | None, **changes: Any) -> list[Fact]:
        status = self.registry.nodes[node].status
        unchanged = all(getattr(status, name) == value for name, value in changes.items())
        if unchanged:
            return []
        fields = status.model_dump() | {"revision": _after(status.revision), "blind": self.blind_since_ms is not None}
        fields["devices"] = status.devices
        return self._publish_status(NodeChanged(**(fields | changes)), cause)

    def _publish_status(self, status: NodeStatus, cause: Received | None) -> list[Fact]:
        self.registry.put_node(status, now_ms=self.runtime.clock.monotonic_ms())
        identity = f"{status.node}-{status.session[:64]}-{status.revision}" if cause is None else ""
        return [Fact(streams.NODES, status, cause=cause, id=identity)]

    def _clear_silence(self, node: str, cause: Received) -> list[Fact]:
        return [*self._clear(Alert.NODE_SUSPECT, node, cause), *self._clear(Alert.NODE_LOST, node, cause)]

    def _raise(self, name: Alert, subject: str, message: str, cause: Received | None) -> list[Fact]:
        if (name, subject) in self.raised:
            return []
        self.raised[name, subject] = True
        return [self._alert(AlertRaised, name, subject, message, cause)]

    def _clear(self, name: Alert, subject: str, cause: Received | None) -> list[Fact]:
        if self.raised.pop((name, subject), None) is None:
            return []
        return [self._alert(AlertCleared, name, subject, "", cause)]

    def _alert(
        self, kind: type[AlertRaised | AlertCleared], name: Alert, subject: str, message: str, cause: Received | None
    ) -> Fact:
        body: Contract = kind(name=name, subject=subject, message=message, at_ms=self.runtime.clock.now_ms())
        return Fact(streams.ALERTS, body, cause=cause)


def _after(revision: int) -> int:
    """The next revision. One at the end of its range stays there: a single odd row must not stop the judging of all."""
    return min(revision + 1, QUANTITY_MAX)


def _with_states(known: tuple[DeviceStatus, ...], body: NodeHeartbeat) -> tuple[DeviceStatus, ...] | None:
    """The devices with the states a heartbeat tells; None when nothing changed or the counts differ."""
    states = body.device_states
    if len(states) != len(known):
        return None
    if all(state is device.state for state, device in zip(states, known, strict=True)):
        return None
    return tuple(DeviceStatus(index=d.index, state=state) for state, d in zip(states, known, strict=True))
