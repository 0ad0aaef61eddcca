"""Drafts to records and rows to bytes and back. Bodies are written once; a specification is put in as it was kept."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import blake2b
from typing import Any, Final

from pydantic_core import from_json, to_json

from evenflow.core.errors import Ended, EvenflowError
from evenflow.core.lifecycle.event_types import EventType
from evenflow.events.documents.reading import read_json
from evenflow.events.documents.task_specification import parse_task
from evenflow.events.envelope import (
    AVRO_CONTENT_TYPE,
    JSON_CONTENT_TYPE,
    SPECVERSION,
    dataschema_of,
    time_text,
    traceparent_of,
)
from evenflow.events.streams import MESSAGE_BYTES_MAX, PLACEMENT_STATE
from evenflow.placement.deciding.draft import Said
from evenflow.placement.memory.rows import (
    STATE_VERSION,
    Row,
    TaskRow,
    plain_row_of,
    row_document,
    task_row_document,
    task_row_of,
)
from evenflow.platform.broker.codec import JSON, Encoded, Wire, rewritten
from evenflow.platform.broker.transactions import STUCK

_VERSION: Final = b'{"state_version":%d,"row":' % STATE_VERSION
_SPECIFICATION: Final = b'"specification":'
_DECODER: Final = json.JSONDecoder()
#: Room that headers and framing take of a message.
_HEADROOM_BYTES: Final = 4_096


_Pair = tuple[str, bytes]


class Writer:
    """Turns what one round says into records. Ids come from pool, epoch, round, type and key, so they are stable."""

    def __init__(self, pool: str, epoch: int, round_number: int, now_ms: int, wire: Wire = JSON) -> None:
        self._stem = f"{pool}\x1f{epoch}\x1f{round_number}\x1f"
        self._wire = wire
        self._time = time_text(now_ms).encode()
        self._shared: dict[str, tuple[_Pair, ...]] = {}
        self._seen: dict[str, int] = {}

    def encode(self, said: Said) -> Encoded:
        """One fact as a record."""
        type_, key = said.type.value, said.key
        name = f"{self._stem}{type_}\x1f{key}"
        again = self._seen.get(name, 0)
        self._seen[name] = again + 1
        identity = blake2b((f"{name}\x1f{again}" if again else name).encode(), digest_size=16).hexdigest()
        encoded_key = key.encode()
        encoded_id = identity.encode()
        value, content_type = said.value, JSON_CONTENT_TYPE
        if value is not None and self._wire is not JSON and said.type is not EventType.STATE_RECORDED:
            value, content_type = rewritten(type_, value, self._wire)  # but a row, which is for this service alone
        headers: list[_Pair] = [
            *(self._shared.get(type_) or self._share(type_)),
            _CONTENT_TYPES[content_type],
            ("ce_id", encoded_id),
            ("ce_subject", encoded_key),
            ("correlation_id", said.correlation_id.encode() if said.correlation_id else encoded_id),
        ]
        if said.causation_id:
            headers.append(("causation_id", said.causation_id.encode()))
        if said.stream.traced:
            headers.append(("traceparent", traceparent_of(said.correlation_id or identity, identity).encode()))
        if said.tenant:
            headers.append(("tenant", said.tenant.encode()))
        return Encoded(said.stream.name, encoded_key, value, headers)

    def _share(self, type_: str) -> tuple[_Pair, ...]:
        """The pairs that all records of a type share in this round; nobody changes a pair, so they are made once."""
        self._shared[type_] = shared = (
            ("ce_specversion", SPECVERSION.encode()),
            ("ce_source", b"placement"),
            ("ce_type", type_.encode()),
            ("ce_time", self._time),
            ("ce_dataschema", dataschema_of(type_, 1).encode()),
        )
        return shared

    def encode_row(self, key: str, row: Row | None) -> Encoded:
        """One row of the state; None forgets its key."""
        value = row_bytes(row) if row is not None else None
        return self.encode(Said(PLACEMENT_STATE, EventType.STATE_RECORDED, key, value))


_CONTENT_TYPES: Final = {name: ("content-type", name.encode()) for name in (JSON_CONTENT_TYPE, AVRO_CONTENT_TYPE)}


def row_bytes(row: Row) -> bytes:
    """A row as the body of state.recorded. A task's specification comes first, as the bytes it is kept in."""
    if isinstance(row, TaskRow):
        body = to_json(task_row_document(row))
        if row.specification:
            return b"%s{%s%s,%s}" % (_VERSION, _SPECIFICATION, row.specification, body[1:])
    else:
        body = to_json(row_document(row))
    return b"%s%s}" % (_VERSION, body)


def row_of(key: str, value: bytes) -> Row:
    """Read a row back. Raises Ended for one that a newer build wrote or that can't be read: nobody may lead over it."""
    try:
        document: dict[str, Any] = from_json(value, cache_strings="keys")  # the values would fill the cache
        version = document["state_version"]
        if version > STATE_VERSION:
            message = f"the state row {key} has version {version}; this build writes {STATE_VERSION}: run the newer one"
            raise Ended(message, exit_code=STUCK)
        row: dict[str, Any] = document["row"]
        if not key.startswith("task/"):
            return plain_row_of(key, row)
        if row.pop("specification", None) is None:
            return task_row_of(row, b"", None)
        return _with_specification(value, row)
    except (EvenflowError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, Ended):
            raise
        raise Ended(f"the state row {key} can't be read: {type(error).__name__}: {error}", exit_code=STUCK) from error


def _with_specification(value: bytes, row: dict[str, Any]) -> TaskRow:
    text = value.decode()
    start = text.index(_SPECIFICATION.decode()) + len(_SPECIFICATION)
    _, end = _DECODER.raw_decode(text, start)
    specification = text[start:end].encode()
    task = parse_task(read_json(specification, source="state"), new_id=lambda: row["id"])
    if task.priority != row["priority"]:
        task = replace(task, priority=row["priority"])
    return task_row_of(row, specification, task)


def fits(record: Encoded) -> bool:
    """Whether a record is small enough for the log."""
    size = len(record.key) + len(record.value or b"") + sum(len(name) + len(value) for name, value in record.headers)
    return size + _HEADROOM_BYTES <= MESSAGE_BYTES_MAX


def cut(record: Encoded) -> Encoded:
    """A dead letter small enough for the log: its value is cut, and a header says so."""
    if fits(record):
        return record
    headers = [*record.headers, ("x-dlq-cut", str(len(record.value or b"")).encode())]
    used = len(record.key) + sum(len(name) + len(value) for name, value in headers) + _HEADROOM_BYTES
    kept = (record.value or b"")[: max(0, MESSAGE_BYTES_MAX - used)]
    return Encoded(record.topic, record.key, kept, headers)


def document_bytes(document: Any) -> bytes:
    """A document as JSON with sorted keys: same content, same bytes."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
