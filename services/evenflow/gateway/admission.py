"""Which records agents may publish: the right stream, a readable body, their own name, a right signature."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from evenflow.core.errors import FieldRefused
from evenflow.core.lifecycle.event_types import EventType
from evenflow.events import streams
from evenflow.events.contract import Contract
from evenflow.events.contracts.agent import NodeHeartbeat
from evenflow.events.envelope import AgentStamp, Envelope, dataschema_of, to_headers, traceparent_of
from evenflow.events.keys import key_of
from evenflow.gateway.bodies import RecordBody
from evenflow.gateway.refusals import IdentityRefused
from evenflow.platform.broker.codec import Encoded, read_body
from evenflow.platform.security.signatures import SIGNATURE_BYTES, TAG_BYTES, verify_receipt, verify_tag
from evenflow.platform.security.stamps import stated_fields

STREAMS: Final = {
    "runs": streams.RUNS,
    "telemetry": streams.TELEMETRY,
    "probes": streams.PROBES,
    "transfers": streams.TRANSFERS,
}
#: Types that others than agents write on these streams.
NOT_THEIRS: Final = (EventType.NODE_ANNOUNCED, EventType.OBSERVER_BEACON)


def admit(record: RecordBody, *, node: str, public: Ed25519PublicKey, session_key: Callable[[str], bytes]) -> Encoded:
    """The record as it goes on the log: the agent's own bytes, its stamp intact.

    Raises FieldRefused for what is wrong with the record and IdentityRefused when its signature does not hold.
    """
    stream = STREAMS[record.stream]
    if record.type not in stream.carries or record.type in NOT_THEIRS:
        raise FieldRefused("type", f"{record.type[:80]!r} is nothing that agents state on {record.stream}")
    value = _value(record)
    body = read_body(record.type, value)
    said_by = getattr(body, "node", "")
    if said_by != node:
        raise IdentityRefused(f"node {node!r} speaks in the name of {said_by!r}")
    if key_of(body) != record.key:
        raise FieldRefused("key", f"must be {key_of(body)!r} for this body")
    _verify(record, value, body, node=node, public=public, session_key=session_key)
    fields = stated_fields(body, node=node, session=record.session, sequence=record.sequence)
    correlation = record.correlation_id or record.id
    envelope = Envelope(
        id=record.id,
        type=record.type,
        source=f"agent/{node}",
        subject=record.key,
        time_ms=record.time_ms,
        dataschema=dataschema_of(record.type, body.MAJOR),
        correlation_id=correlation,
        causation_id=record.causation_id,
        tenant=fields.tenant,
        traceparent=traceparent_of(correlation, record.id) if stream.traced else "",
        stamp=AgentStamp(
            node=node,
            session=record.session,
            sequence=record.sequence,
            attempt=fields.attempt,
            member=fields.member,
            epoch=fields.epoch,
            signature=record.signature,
        ),
    )
    return Encoded(topic=stream.name, key=record.key.encode(), value=value, headers=to_headers(envelope))


def _value(record: RecordBody) -> bytes:
    if record.encoding == "text":
        value = record.value.encode("utf-8", "surrogatepass")
    else:
        try:
            value = base64.b64decode(record.value, validate=True)
        except binascii.Error:
            raise FieldRefused("value", "is not base64") from None
    if len(value) > streams.MESSAGE_BYTES_MAX:
        raise FieldRefused("value", f"has {len(value)} bytes, at most {streams.MESSAGE_BYTES_MAX}")
    return value


def _verify(
    record: RecordBody, value: bytes, body: Contract, *, node: str, public: Ed25519PublicKey,
    session_key: Callable[[str], bytes],
) -> None:  # fmt: skip
    fields = stated_fields(body, node=node, session=record.session, sequence=record.sequence)
    if not record.signature:
        raise IdentityRefused(f"{record.type} of node {node!r} is not signed")
    try:
        signature = bytes.fromhex(record.signature)
    except ValueError:
        raise FieldRefused("signature", "must be hexadecimal") from None
    if isinstance(body, NodeHeartbeat):
        if body.session != record.session:
            raise FieldRefused("session", "is not the one that the heartbeat names")
        good = len(signature) == TAG_BYTES and verify_tag(session_key(record.session), value, fields, signature)
    else:
        good = len(signature) == SIGNATURE_BYTES and verify_receipt(public, value, fields, signature)
    if not good:
        raise IdentityRefused(f"{record.type} of node {node!r} is wrongly signed")
