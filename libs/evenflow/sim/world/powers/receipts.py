"""Power to speak in an agent's name: receipts made up by the world, signed as the scenario says, or told again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from evenflow.agent.journal import Outgoing
from evenflow.agent.receipts import LANES
from evenflow.core.errors import EvenflowError, FieldRefused
from evenflow.core.lifecycle.event_types import EventType
from evenflow.events.contract import Contract
from evenflow.events.envelope import derived_id
from evenflow.events.types import CONTRACTS
from evenflow.platform.broker.codec import body_bytes
from evenflow.platform.security.identity import key_from_seed
from evenflow.platform.security.signatures import sign_receipt
from evenflow.platform.security.stamps import stated_fields
from evenflow.sim.stage import Report
from evenflow.sim.world.records.said import last_said

if TYPE_CHECKING:
    from evenflow.sim.observation.entities import AttemptView, TaskView
    from evenflow.sim.world.powers.fleet import Node
    from evenflow.sim.world.world import World

_OUTCOMES: Final = {
    EventType.ATTEMPT_SUCCEEDED: "succeeded",
    EventType.ATTEMPT_FAILED: "failed",
    EventType.ATTEMPT_STOPPED: "stopped",
    EventType.ATTEMPT_RECLAIMED: "stopped",
}


class ReceiptPowers:
    """Sends receipts through the gateway: new ones with the node's session and next sequence, and old ones again.

    Nobody can tell a receipt that is signed with the node's own key from the agent's word, so only what is not signed
    with it is told to the observer as forged. A replay is what the node said before, under the id that it had then.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    async def report(self, report: Report) -> None:
        """One receipt. Raises FieldRefused when there is nothing to replay, or nobody to speak for."""
        view = self._world.model.named(report.task)
        attempt = None if view is None else view.attempts.get(report.attempt)
        node = self._world.nodes.node(self._node_of(report, attempt))
        if report.signed == "replayed":
            await self._send(node, self._said_before(node, report))
            return
        record = self._signed(node, self._body(report, view, attempt, node.id), report)
        if report.signed != "right":
            self._world.model.forged[record.id] = None
        await self._send(node, record)

    async def checkpointed(self, task: str, attempt: int, number: int, progress_ms: int, manifest: str) -> None:
        """The receipt of a checkpoint that a stale process wrote."""
        view = self._world.model.named(task)
        found = None if view is None else view.attempts.get(attempt)
        if found is None:
            return
        values = {"checkpoint": number, "progress_ms": progress_ms, "run_ms": progress_ms, "manifest": manifest}
        place = next(iter(found.members.values()))
        values |= {"size_bytes": 0, "site": place.site}
        kind = str(EventType.ATTEMPT_CHECKPOINTED)
        await self.report(Report(task, attempt, place.number, kind, None, "right", None, values))

    @staticmethod
    def _node_of(report: Report, attempt: AttemptView | None) -> str:
        if report.node is not None:
            return report.node
        member = None if attempt is None else attempt.members.get(report.member)
        if member is None:
            raise FieldRefused(
                "report.node", f"attempt {report.attempt} of {report.task} was never issued: name a node"
            )
        return member.node

    def _body(self, report: Report, view: TaskView | None, attempt: AttemptView | None, node: str) -> Contract:
        contract: Any = CONTRACTS.get(report.type)
        if contract is None or report.type not in LANES:
            raise FieldRefused("report.type", f"{report.type} is not something that agents say")
        tenant, _, task = report.task.rpartition("/")
        at_ms = self._world.now_ms() if report.at_ms is None else report.at_ms
        values: dict[str, Any] = {
            "tenant": tenant or "default",
            "task": task,
            "attempt": report.attempt,
            "generation": report.attempt if attempt is None else attempt.generation,
            "member": report.member,
            "epoch": 1 if attempt is None else attempt.epoch,
            "node": node,
            "queue": "default" if view is None or not view.queue else view.queue,
            "at_ms": self._world.scenario.start_ms + at_ms,
        }
        if report.type in _OUTCOMES:
            started_ms = self._started_ms(attempt, report.member)
            run_ms = max(0, at_ms - started_ms) if started_ms is not None else 0
            values["outcome"] = {"ended_as": _OUTCOMES[EventType(report.type)], "run_ms": run_ms, "progress_ms": run_ms}
        if report.type == EventType.ATTEMPT_REFUSED:
            values["reason"] = "made up"
        if report.type == EventType.ATTEMPT_PROGRESSED:
            values |= {"progress_ms": 0, "run_ms": 0}
        return contract(**{**values, **report.values})  # type: ignore[no-any-return]  # typed by the table

    @staticmethod
    def _started_ms(attempt: AttemptView | None, member: int) -> int | None:
        found = None if attempt is None else attempt.members.get(member)
        return None if found is None else found.started_ms

    def _said_before(self, node: Node, report: Report) -> Outgoing:
        """What the node said last of the member, byte for byte and under its old stamp."""
        tenant, _, task = report.task.rpartition("/")
        key = f"{tenant or 'default'}/{task}"
        said = last_said(self._world.log, node.id, report.type, key=key, attempt=report.attempt, member=report.member)
        if said is None or (stamp := said.envelope.stamp) is None:
            raise FieldRefused(
                "report.signed", f"{node.id} never said {report.type} of {report.task}: there is nothing to replay"
            )
        return Outgoing(
            stream=LANES[report.type],
            type=report.type,
            id=said.envelope.id,
            key=key,
            time_ms=said.envelope.time_ms,
            value=said.value.decode(),
            session=stamp.session,
            sequence=stamp.sequence,
            attempt=stamp.attempt,
            member=stamp.member,
            epoch=stamp.epoch,
            signature=stamp.signature,
            correlation_id=said.envelope.correlation_id,
            causation_id=said.envelope.causation_id,
        )

    def _signed(self, node: Node, body: Contract, report: Report) -> Outgoing:
        value = body_bytes(body)
        session, sequence = node.disk.session(), node.disk.reserve_sequence()
        fields = stated_fields(body, node=node.id, session=session, sequence=sequence)
        key = node.key if report.signed == "right" else key_from_seed("somebody else")
        signature = "" if report.signed == "false" else sign_receipt(key, value, fields).hex()
        return Outgoing(
            stream=LANES[report.type],
            type=report.type,
            id=derived_id(node.id, session, sequence),
            key=f"{fields.tenant}/{fields.task}",
            time_ms=self._world.clock.now_ms(),
            value=value.decode(),
            session=session,
            sequence=sequence,
            attempt=fields.attempt,
            member=fields.member,
            epoch=fields.epoch,
            signature=signature,
        )

    async def _send(self, node: Node, record: Outgoing) -> None:
        """Through the node's own client; what the gateway refuses is what the scenario wanted to see."""
        if node.client is None or node.client.open is None:
            raise FieldRefused("report.node", f"{node.id} has no session with the gateway yet")
        try:
            await node.client.send(node.client.open, [record])
        except EvenflowError as error:
            self._world.lines.kept.append(
                (self._world.now_ms(), "world", "info", "report refused", {"why": str(error)})
            )
