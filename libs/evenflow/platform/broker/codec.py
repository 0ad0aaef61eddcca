"""Event ↔ record: the one place where bodies become bytes and bytes become bodies.

A record that can't be read becomes a `Bad` value instead of an exception, so that one bad record never blocks its
partition or spoils the batch it came in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pydantic import ValidationError

from evenflow.core.errors import EvenflowError, FieldRefused, Refused
from evenflow.core.lifecycle.event_types import EventType
from evenflow.events.contract import Contract
from evenflow.events.contracts.tasks import TaskSubmitted
from evenflow.events.envelope import (
    AVRO_CONTENT_TYPE,
    JSON_CONTENT_TYPE,
    AgentStamp,
    Envelope,
    dataschema_of,
    derived_id,
    from_headers,
    to_headers,
    traceparent_of,
)
from evenflow.events.keys import key_of
from evenflow.events.streams import Stream
from evenflow.events.types import CONTRACTS
from evenflow.platform.broker.ports import Record

PROBLEM_LENGTH_MAX: Final = 500


class Unsigned(Refused):
    """Said in an agent's name without its stamp: no reader applies it."""

    code = "unsigned"


@dataclass(slots=True)  # never changed; not frozen, which triples the cost of what is made for every record
class Received:
    """A readable record. `body` is None for a tombstone and for a type this reader does not know (skipped, counted)."""

    envelope: Envelope
    body: Contract | None
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: str
    value: bytes

    @property
    def tombstone(self) -> bool:
        """Whether the record deletes its key."""
        return not self.value

    @property
    def json(self) -> bytes:
        """The body's JSON, whatever it was written in: what the record would hold by the default wire."""
        if self.body is None or self.envelope.content_type != AVRO_CONTENT_TYPE:
            return self.value
        return body_bytes(self.body)

    @property
    def origin(self) -> str:
        """topic/partition/offset."""
        return f"{self.topic}/{self.partition}/{self.offset}"


@dataclass(frozen=True, slots=True)
class Bad:
    """A record that can't be handled, and why."""

    record: Record
    code: str
    problem: str


@dataclass(frozen=True, slots=True)
class Fact:
    """Something to write. `key` and `id` are worked out when left empty; `body` None writes a tombstone for `key`.

    `seal` signs the record as it goes out.
    """

    stream: Stream
    body: Contract | None
    key: str = ""
    id: str = ""
    cause: Received | None = None
    correlation_id: str = ""
    traceparent: str = ""
    stamp: AgentStamp | None = None
    subject: str = field(default="")
    seal: Callable[[Encoded], Encoded] | None = None


@dataclass(slots=True)  # never changed; not frozen, which triples the cost of what is made for every record
class Encoded:
    """A fact as bytes."""

    topic: str
    key: bytes
    value: bytes | None
    headers: list[tuple[str, bytes]]


class Wire(Protocol):
    """How bodies are written. Reading needs no setting: each record's content type says how it was written."""

    def write(self, body: Contract) -> tuple[bytes, str]:
        """A body as bytes, and their content type."""


class JsonWire:
    """Bodies as JSON: the default."""

    def write(self, body: Contract) -> tuple[bytes, str]:
        return body_bytes(body), JSON_CONTENT_TYPE


JSON: Final[Wire] = JsonWire()


def make_wire(name: str) -> Wire:
    """The wire of a setting's name, `json` or `avro`. Raises Refused for another name."""
    if name == "json":
        return JSON
    if name == "avro":
        from evenflow.platform.broker.avro import avro_wire

        return avro_wire()
    raise Refused(f"{name!r} is no wire: use json or avro")


def body_bytes(body: Contract) -> bytes:
    """The JSON of a body; a submission's own bytes as they are."""
    if isinstance(body, TaskSubmitted):
        return body.raw
    return bytes(body.__pydantic_serializer__.to_json(body))


def encode(fact: Fact, *, source: str, now_ms: int, new_id: str = "", wire: Wire = JSON) -> Encoded:
    """A fact as key, value and headers; `wire` decides how the body is written.

    Without `fact.id` the id is derived from the cause, so that the same fact published again after a crash carries the
    same id; without a cause it is `new_id`.
    """
    body = fact.body
    key = fact.key or (key_of(body) if body is not None else "") or ""
    if not key:
        raise FieldRefused("key", "this type's writer must name the key")
    cause = fact.cause.envelope if fact.cause is not None else None
    event_type = str(body.TYPE) if body is not None else _tombstone_type(fact.stream)
    identity = fact.id or (derived_id(cause.id, event_type, key) if cause is not None else new_id)
    value, content_type = wire.write(body) if body is not None else (None, JSON_CONTENT_TYPE)
    correlation = fact.correlation_id or (cause.correlation_id if cause is not None else identity)
    parent = fact.traceparent or (cause.traceparent if cause is not None else "")
    envelope = Envelope(
        id=identity,
        type=event_type,
        source=source,
        subject=fact.subject or key,
        time_ms=now_ms,
        dataschema=dataschema_of(event_type, body.MAJOR if body is not None else 1),
        correlation_id=correlation,
        causation_id=cause.id if cause is not None else "",
        tenant=getattr(body, "tenant", ""),
        traceparent=traceparent_of(correlation, identity, parent) if fact.stream.traced else "",
        stamp=fact.stamp,
        content_type=content_type,
    )
    return Encoded(topic=fact.stream.name, key=key.encode(), value=value, headers=to_headers(envelope))


def _tombstone_type(stream: Stream) -> str:
    if not stream.compacted:
        raise FieldRefused("body", f"{stream.name} is not compacted and takes no tombstones")
    return stream.carries[0]


def decode(record: Record, stream: Stream) -> Received | Bad:
    """Read one record of a stream. Never raises for what the record contains."""
    try:
        return _decode(record, stream)
    except EvenflowError as error:
        return Bad(record, error.code, error.message[:PROBLEM_LENGTH_MAX])


def _decode(record: Record, stream: Stream) -> Received:
    envelope = from_headers(record.headers)
    key = _key_text(record.key)
    value = record.value or b""
    if stream.stamped and envelope.stamp is None:
        raise Unsigned(f"{stream.name} takes only what carries its node's stamp; agents write it through the gateway")
    body: Contract | None = None
    if not value:
        if not stream.compacted:
            raise FieldRefused("value", f"is empty; {stream.name} takes no tombstones")
    elif envelope.type in CONTRACTS:
        if envelope.type not in stream.carries:
            raise FieldRefused("headers.ce_type", f"{envelope.type} does not travel on {stream.name}")
        body = read_body(envelope.type, value, envelope.content_type)
        wanted = key_of(body)
        if wanted is not None and wanted != key:
            raise FieldRefused("key", f"is {key[:200]!r} but the body belongs to {wanted!r}")
    return Received(
        envelope=envelope,
        body=body,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        key=key,
        value=value,
    )


def read_body(event_type: str, value: bytes, content_type: str = JSON_CONTENT_TYPE) -> Contract:
    """The body of a known type; FieldRefused names the first wrong field."""
    if content_type == AVRO_CONTENT_TYPE:
        from evenflow.platform.broker.avro import avro_wire

        return avro_wire().read(event_type, value)
    if event_type == EventType.TASK_SUBMITTED:
        return TaskSubmitted(raw=value)
    contract = CONTRACTS[event_type]
    try:
        return contract.__pydantic_validator__.validate_json(value)  # type: ignore[no-any-return]  # typed by the table
    except ValidationError as error:
        wrong = refused(error)
    raise wrong  # out here, without pydantic's error and the frames that it holds


def rewritten(event_type: str, value: bytes, wire: Wire) -> tuple[bytes, str]:
    """JSON written elsewhere, as another wire would have written it; JSON itself stays byte for byte."""
    return (value, JSON_CONTENT_TYPE) if wire is JSON else wire.write(read_body(event_type, value))


def refused(error: ValidationError, whole: str = "value") -> FieldRefused:
    """The first wrong field of a body, by its path; `whole` names the body itself."""
    first: dict[str, Any] = dict(error.errors(include_url=False, include_input=False, include_context=False)[0])
    path = ".".join(str(step) for step in first.get("loc", ()))
    return FieldRefused(path or whole, str(first.get("msg", "is not valid"))[:PROBLEM_LENGTH_MAX])


def _key_text(key: bytes | None) -> str:
    if not key:
        raise FieldRefused("key", "is missing; it decides the partition")
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise FieldRefused("key", "is not UTF-8 text") from None


def bodies(received: Sequence[Received]) -> list[Contract]:
    """The bodies that are there, in order."""
    return [one.body for one in received if one.body is not None]
