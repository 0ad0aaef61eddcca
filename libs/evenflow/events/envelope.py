"""The envelope: CloudEvents attributes as record headers, plus correlation, causation and an agent's stamp.

    ce_specversion ce_id ce_source ce_type ce_time ce_subject ce_dataschema content-type
    correlation_id causation_id tenant traceparent
    node session sequence attempt member epoch signature      (only where an agent speaks)
    signer signature                                          (only where a producer signs what it asks of tasks)

Header values are UTF-8 text. `id` is stable: the same fact published again carries the same id.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from evenflow.core.errors import FieldRefused
from evenflow.core.lifecycle.event_types import EventType

SPECVERSION: Final = "1.0"
JSON_CONTENT_TYPE: Final = "application/json"
AVRO_CONTENT_TYPE: Final = "application/vnd.confluent.avro"
DATASCHEMA_PREFIX: Final = "urn:evenflow:"
HEADER_COUNT_MAX: Final = 64
HEADER_BYTES_MAX: Final = 8_192
#: Correlation ids whose trace is remembered: a miss costs a microsecond, an entry a third of a kilobyte.
TRACES_MAX: Final = 512
OWN_TIME_LENGTH: Final = 24
TRACEPARENT_LENGTH: Final = 55
DERIVED_LENGTH: Final = 32
_DERIVED: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class AgentStamp:
    """What an agent signs besides the value's exact bytes. `signature` is hexadecimal; empty before signing."""

    node: str
    session: str
    sequence: int
    attempt: int = 0
    member: int = 0
    epoch: int = 0
    signature: str = ""


@dataclass(frozen=True, slots=True)
class SubmitterStamp:
    """Who signed a request about a task: a signer's name, and the signature as hexadecimal."""

    signer: str
    signature: str


@dataclass(slots=True)  # never changed; not frozen, which triples the cost of what is made for every record
class Envelope:
    """Attributes of one event. `time_ms` is the writer's wall clock, for people only.

    `content_type` says which form the value has; all but Avro is read as JSON.
    """

    id: str
    type: str
    source: str
    subject: str
    time_ms: int
    dataschema: str
    correlation_id: str
    causation_id: str = ""
    tenant: str = ""
    traceparent: str = ""
    stamp: AgentStamp | None = None
    content_type: str = JSON_CONTENT_TYPE
    submitter: SubmitterStamp | None = None


class UnknownMajor(FieldRefused):
    """The body's major version is not known here: parked, never guessed."""

    code = "unknown-major"


_SCHEMAS: Final = {str(member): f"{DATASCHEMA_PREFIX}{member}:1" for member in EventType}


def dataschema_of(event_type: str, major: int) -> str:
    """The dataschema attribute: urn:evenflow:<type>:<major>."""
    return f"{DATASCHEMA_PREFIX}{event_type}:{major}"


def derived_id(*parts: object) -> str:
    """A stable id for a fact that follows from others: the same parts give the same id in every process."""
    text = "\x1f".join(str(part) for part in parts)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _hexadecimal(identity: str, length: int) -> str:
    """So many hexadecimal digits of an id: of a derived one its own, of any other a digest's."""
    if len(identity) == DERIVED_LENGTH and _DERIVED.fullmatch(identity):
        return identity[:length]
    return hashlib.blake2b(identity.encode(), digest_size=length // 2).hexdigest()


@lru_cache(maxsize=TRACES_MAX)
def _trace_of(correlation_id: str) -> str:
    """A task's records follow each other and share one trace."""
    return _hexadecimal(correlation_id, 32)


def traceparent_of(correlation_id: str, event_id: str, parent: str = "") -> str:
    """The W3C trace context of one event: a trace per correlation, a span per event, the same in every process.

    A parent's trace is gone on with; otherwise the trace id follows from the correlation id, so that a task's whole
    course is one trace without anybody having to hand it on.
    """
    if len(parent) >= TRACEPARENT_LENGTH and parent.startswith("00-"):
        trace, flags = parent[3:35], parent[53:55]
    else:
        trace, flags = _trace_of(correlation_id), "01"
    return f"00-{trace}-{span_id_of(event_id)}-{flags}"


def span_id_of(event_id: str) -> str:
    """The span of an event, as its own record and the records that name it as their cause know it."""
    return _hexadecimal(event_id, 16)


def time_text(time_ms: int) -> str:
    """RFC 3339 with milliseconds, UTC."""
    return f"{_second_text(time_ms // 1000)}.{time_ms % 1000:03d}Z"


@lru_cache(maxsize=64)
def _second_text(second: int) -> str:
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}"


@lru_cache(maxsize=64)
def _day_ms(day: str) -> int:
    return round(datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp() * 1000)


def time_of(text: str) -> int:
    """Milliseconds of an RFC 3339 time; ValueError when it is none. The product's own form is read without a parser."""
    if len(text) == OWN_TIME_LENGTH and text[10] == "T" and text[23] == "Z" and text[19] == ".":
        hours, minutes, seconds, rest = int(text[11:13]), int(text[14:16]), int(text[17:19]), int(text[20:23])
        if hours < 24 and minutes < 60 and seconds < 60 and text[13] == text[16] == ":":
            return _day_ms(text[:10]) + ((hours * 60 + minutes) * 60 + seconds) * 1000 + rest
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time needs its zone")
    return round(moment.timestamp() * 1000)


def to_headers(envelope: Envelope) -> list[tuple[str, bytes]]:
    """The envelope as record headers."""
    pairs = [
        ("ce_specversion", SPECVERSION),
        ("ce_id", envelope.id),
        ("ce_source", envelope.source),
        ("ce_type", envelope.type),
        ("ce_time", time_text(envelope.time_ms)),
        ("ce_subject", envelope.subject),
        ("ce_dataschema", envelope.dataschema),
        ("content-type", envelope.content_type),
        ("correlation_id", envelope.correlation_id),
    ]
    if envelope.causation_id:
        pairs.append(("causation_id", envelope.causation_id))
    if envelope.tenant:
        pairs.append(("tenant", envelope.tenant))
    if envelope.traceparent:
        pairs.append(("traceparent", envelope.traceparent))
    if (stamp := envelope.stamp) is not None:
        pairs += [
            ("node", stamp.node),
            ("session", stamp.session),
            ("sequence", str(stamp.sequence)),
            ("attempt", str(stamp.attempt)),
            ("member", str(stamp.member)),
            ("epoch", str(stamp.epoch)),
            ("signature", stamp.signature),
        ]
    return [(name, value.encode()) for name, value in pairs]


def from_headers(headers: Sequence[tuple[str, bytes | None]]) -> Envelope:
    """Read an envelope; FieldRefused names the header that is missing or wrong.

    A later header of the same name wins. An event type that is not on the closed list is returned as it is: the reader
    skips and counts it.
    """
    if len(headers) > HEADER_COUNT_MAX:
        raise FieldRefused("headers", f"there are {len(headers)}, at most {HEADER_COUNT_MAX} are read")
    try:
        found = {name: value.decode() for name, value in headers}  # type: ignore[union-attr]  # None is caught below
        if len("".join(found.values())) > HEADER_BYTES_MAX and max(map(len, found.values())) > HEADER_BYTES_MAX:
            raise _wrong_header(headers)
    except (UnicodeDecodeError, AttributeError):
        raise _wrong_header(headers) from None
    event_type = _required(found, "ce_type")
    event_id = _required(found, "ce_id")
    if found.get("ce_specversion", SPECVERSION) != SPECVERSION:
        raise FieldRefused("headers.ce_specversion", f"must be {SPECVERSION}")
    get = found.get
    return Envelope(
        event_id,
        event_type,
        _required(found, "ce_source"),
        get("ce_subject", ""),
        _time(found),
        _dataschema(found, event_type),
        get("correlation_id") or event_id,
        get("causation_id", ""),
        get("tenant", ""),
        get("traceparent", ""),
        _stamp(found) if "node" in found or "session" in found else None,
        get("content-type", JSON_CONTENT_TYPE),
        SubmitterStamp(found["signer"], get("signature", "")) if "signer" in found else None,
    )


def _wrong_header(headers: Sequence[tuple[str, bytes | None]]) -> FieldRefused:
    for name, value in headers:
        if value is None:
            return FieldRefused(f"headers.{name}", "has no value; send an empty text or leave the header out")
        if len(value) > HEADER_BYTES_MAX:
            return FieldRefused(f"headers.{name}", f"is longer than {HEADER_BYTES_MAX} bytes")
        try:
            value.decode()
        except UnicodeDecodeError:
            return FieldRefused(f"headers.{name}", "is not UTF-8 text")
    return FieldRefused("headers", "can't be read")


def _required(found: dict[str, str], name: str) -> str:
    value = found.get(name, "")
    if not value:
        raise FieldRefused(f"headers.{name}", "is missing; every record carries the CloudEvents attributes as headers")
    return value


def _time(found: dict[str, str]) -> int:
    try:
        return time_of(_required(found, "ce_time"))
    except (ValueError, OverflowError):
        raise FieldRefused("headers.ce_time", "is not an RFC 3339 time such as 2026-01-01T00:00:00.000Z") from None


def _dataschema(found: dict[str, str], event_type: str) -> str:
    wanted = _SCHEMAS.get(event_type)
    value = found.get("ce_dataschema") or wanted or dataschema_of(event_type, 1)
    if wanted is not None and value != wanted:
        raise UnknownMajor("headers.ce_dataschema", f"is {value[:120]!r}; this reader knows {wanted}")
    return value


def _stamp(found: dict[str, str]) -> AgentStamp:
    return AgentStamp(
        node=_required(found, "node"),
        session=_required(found, "session"),
        sequence=_number(found, "sequence"),
        attempt=_number(found, "attempt"),
        member=_number(found, "member"),
        epoch=_number(found, "epoch"),
        signature=found.get("signature", ""),
    )


def _number(found: dict[str, str], name: str) -> int:
    text = found.get(name, "0")
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise FieldRefused(f"headers.{name}", "must be a non-negative integer")
    return int(text)
