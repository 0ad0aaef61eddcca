"""What the agent states: bodies become signed records, written with the journal in one step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from evenflow.agent.journal import Held, Outgoing
from evenflow.agent.ports import Session, Surroundings
from evenflow.core.units import QUANTITY_MAX
from evenflow.events import streams
from evenflow.events.contract import Contract
from evenflow.events.contracts.agent import AttemptReclaimed, NodeHeartbeat, Outcome, Receipt
from evenflow.events.contracts.placement import AttemptDesired
from evenflow.events.envelope import derived_id
from evenflow.events.keys import key_of
from evenflow.platform.security.canonical import SignedFields
from evenflow.platform.security.signatures import session_tag, sign_receipt
from evenflow.platform.security.stamps import stated_fields

#: event type → the short name under which the gateway takes it
LANES: Final[dict[str, str]] = {
    kind: lane
    for lane, stream in (
        ("runs", streams.RUNS),
        ("telemetry", streams.TELEMETRY),
        ("probes", streams.PROBES),
        ("transfers", streams.TRANSFERS),
    )
    for kind in stream.carries
}

R = TypeVar("R", bound=Receipt)


@dataclass(frozen=True, slots=True)
class Statement:
    """A body to state, and what caused it."""

    body: Contract
    causation: str = ""
    correlation: str = ""


def json_of(body: Contract) -> bytes:
    """A body's exact bytes, as they are signed and published."""
    return bytes(body.__pydantic_serializer__.to_json(body))


class Speaker:
    """Signs and stores what this node says. `news` is set whenever the outbox grew."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self.news = asyncio.Event()

    def receipt(self, kind: type[R], desired: AttemptDesired, **values: Any) -> R:
        """A receipt's body for one member."""
        return kind(
            tenant=desired.tenant,
            task=desired.task,
            attempt=desired.attempt,
            generation=desired.generation,
            member=desired.place.member,
            epoch=desired.epoch,
            node=self._around.node,
            queue=desired.queue,
            at_ms=max(0, self._around.clock.now_ms()),
            **values,
        )

    def reclaimed(self, desired: AttemptDesired, outcome: Outcome, *, leftover: bool = False) -> AttemptReclaimed:
        """The receipt that gives one member's place back, or says that something is left on it."""
        place = desired.place
        return self.receipt(
            AttemptReclaimed,
            desired,
            outcome=outcome,
            leftover=leftover,
            site=place.site,
            device_milli=min(QUANTITY_MAX, sum(share.milli for share in place.devices)),
            cpu_milli=place.cpu_milli,
            price_per_hour_micro=place.price_per_hour_micro,
            cpu_price_per_hour_micro=place.cpu_price_per_hour_micro,
        )

    async def commit(
        self, *statements: Statement, rows: Callable[[], Sequence[Held]] = tuple, forget: Sequence[str] = ()
    ) -> None:
        """Write rows and statements together; they are delivered in order, however long the gateway is away.

        `rows` is called at the very moment of writing: a task cancelled before has changed nothing at all.
        """
        around = self._around
        await around.point("agent.before-outbox")
        around.disk.commit(held=rows(), forget=forget, records=[self._signed(said) for said in statements])
        if statements:
            self.news.set()
        await around.point("agent.after-outbox")

    def heartbeat(self, session: Session, body: NodeHeartbeat, value: bytes | None = None) -> Outgoing:
        """A tagged life sign; `value` replaces the body's own bytes. It is not kept: a later one says more."""
        around = self._around
        exact = json_of(body) if value is None else value
        sequence = around.disk.reserve_sequence()
        fields = SignedFields(around.node, session.id, sequence, str(body.TYPE))
        return Outgoing(
            stream="telemetry",
            type=str(body.TYPE),
            id=derived_id(around.node, session.id, sequence),
            key=around.node,
            time_ms=max(0, around.clock.now_ms()),
            value=exact.decode(),
            session=session.id,
            sequence=sequence,
            signature=session_tag(session.key, exact, fields).hex(),
        )

    def _signed(self, said: Statement) -> Outgoing:
        around = self._around
        body = said.body
        kind = str(body.TYPE)
        value = json_of(body)
        session, sequence = around.disk.session(), around.disk.reserve_sequence()
        fields = stated_fields(body, node=around.node, session=session, sequence=sequence)
        return Outgoing(
            stream=LANES[kind],
            type=kind,
            id=derived_id(around.node, session, sequence),
            key=key_of(body) or around.node,
            time_ms=max(0, around.clock.now_ms()),
            value=value.decode(),
            session=session,
            sequence=sequence,
            attempt=fields.attempt,
            member=fields.member,
            epoch=fields.epoch,
            signature=sign_receipt(around.key, value, fields).hex(),
            correlation_id=said.correlation,
            causation_id=said.causation,
        )
