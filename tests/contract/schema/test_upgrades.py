"""docs/upgrades.md: a pool in which writers and readers are of different releases, with every form ever released."""

from __future__ import annotations

import dataclasses
import io
import json
import struct
from dataclasses import dataclass
from typing import Any

import fastavro
import pytest
from pydantic import BaseModel

from evenflow.core.lifecycle.event_types import EventType
from evenflow.events import streams
from evenflow.events.contract import Contract
from evenflow.events.envelope import AVRO_CONTENT_TYPE
from evenflow.events.keys import key_of
from evenflow.events.schema.avro_schema import to_avro
from evenflow.events.schema.released import Released, WireForm, schemas_folder
from evenflow.events.types import CONTRACTS
from evenflow.platform.broker.avro import avro_wire
from evenflow.platform.broker.codec import Bad, Fact, Received, decode, encode, make_wire
from evenflow.testkit.examples import examples

RELEASED = Released(schemas_folder())
#: Forms that are not the newest of their type: what an earlier release wrote, and reads.
EARLIER = [form for form in RELEASED.all() if form is not RELEASED.revisions(form.event_type, form.major)[0]]
JSON_BODIES = sorted(name for name in CONTRACTS if name != EventType.TASK_SUBMITTED)


@dataclass(frozen=True)
class Record:
    """A record as a consumer gives it."""

    topic: str
    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]
    partition: int = 0
    offset: int = 7
    timestamp: int = 0


def record(body: Contract, wire: str, **changed: bytes) -> tuple[Record, Any]:
    """A body's record, with other headers than it would have, and its stream."""
    stream = next(one for one in streams.topics() if body.TYPE in one.carries and not one.stamped)
    fact = Fact(stream, body, key=key_of(body) or "some/key")
    encoded = encode(fact, source="test", now_ms=0, new_id="i-1", wire=make_wire(wire))
    headers = [(name, changed.get(name, value)) for name, value in encoded.headers]
    return Record(encoded.topic, encoded.key, encoded.value or b"", headers), stream


def written_by(form: WireForm, body: Contract) -> bytes:
    """The record that a release with this form would have written of the same facts."""
    out = io.BytesIO(struct.pack(">bI", 0, form.id))
    out.seek(5)
    fastavro.schemaless_writer(out, fastavro.parse_schema(form.schema), to_avro(body))
    return out.getvalue()


def names(schema: dict[str, Any]) -> set[str]:
    return {field["name"] for field in schema["fields"]}


def test_there_are_earlier_releases_to_be_read() -> None:
    """Proves that the tests below have something to show."""
    assert len(EARLIER) >= 5
    assert {"task.assigned", "node.changed", "attempt.reclaimed"} <= {form.event_type for form in EARLIER}


@pytest.mark.parametrize("form", EARLIER, ids=lambda form: form.file)
def test_what_an_earlier_release_wrote_is_read_today(form: WireForm) -> None:
    """Proves for every released form: what it says is kept, what it lacks takes its default."""
    body = examples()[form.event_type]
    read = avro_wire().read(form.event_type, written_by(form, body))
    lacking = set(type(body).model_fields) - names(form.schema)
    assert lacking
    for name, field in type(body).model_fields.items():
        default = field.get_default(call_default_factory=True)
        assert getattr(read, name) == (default if name in lacking else getattr(body, name)), name


@pytest.mark.parametrize("form", EARLIER, ids=lambda form: form.file)
def test_what_is_written_today_is_read_by_an_earlier_release(form: WireForm) -> None:
    """Proves it with Avro's own resolution: the writer's form from schemas/, the reader's its own earlier one."""
    body = examples()[form.event_type]
    value, _ = avro_wire().write(body)
    newest = RELEASED.revisions(form.event_type, form.major)[0]
    writer, reader = fastavro.parse_schema(newest.schema), fastavro.parse_schema(form.schema)
    read: Any = fastavro.schemaless_reader(io.BytesIO(value[5:]), writer, reader)
    told = to_avro(body)
    assert set(read) == names(form.schema)
    assert all(read[name] == told[name] for name in read)


def with_surplus(value: Any) -> Any:
    """The same JSON with a field that nobody knows in every map."""
    if isinstance(value, dict):
        return {**{name: with_surplus(each) for name, each in value.items()}, "of_a_later_release": {"a": [1]}}
    return [with_surplus(each) for each in value] if isinstance(value, list) else value


def free(contract: type[BaseModel]) -> bool:
    """Whether a body holds a document of free form, in which a surplus field is content."""
    return "dict[str, typing.Any]" in str([field.annotation for field in contract.model_fields.values()])


@pytest.mark.parametrize("name", [name for name in JSON_BODIES if not free(CONTRACTS[name])])
def test_a_later_writer_s_fields_are_passed_over(name: str) -> None:
    """Proves for JSON that an optional field of a later release stops no reader, at any depth."""
    body = examples()[name]
    whole = body.model_dump(mode="json")
    # A map whose names are content, as offsets by partition, has no fields to add.
    maps = {field for field, one in type(body).model_fields.items() if str(one.annotation).startswith("dict[")}
    later = with_surplus({field: value for field, value in whole.items() if field not in maps})
    later.update({field: whole[field] for field in maps})
    assert type(body).__pydantic_validator__.validate_json(json.dumps(later).encode()) == body


@pytest.mark.parametrize("name", JSON_BODIES)
def test_an_earlier_writer_s_missing_fields_take_their_defaults(name: str) -> None:
    """Proves for JSON that each optional field may be absent, alone and with all others."""
    body = examples()[name]
    whole = body.model_dump(mode="json")
    optional = [field for field, one in type(body).model_fields.items() if not one.is_required()]
    for absent in [[field] for field in optional if not field.startswith("device_")] + [optional]:
        earlier = json.dumps({field: value for field, value in whole.items() if field not in absent}).encode()
        read = type(body).__pydantic_validator__.validate_json(earlier)
        for field in absent:
            assert getattr(read, field) == type(body).model_fields[field].get_default(call_default_factory=True)


@pytest.mark.parametrize("wire", ["json", "avro"])
def test_a_type_of_a_later_release_is_skipped(wire: str) -> None:
    """Proves that a word that is not on the list ends nobody: no body, nothing parked, the partition goes on."""
    one, stream = record(
        examples()["task.assigned"], wire, ce_type=b"task.praised", ce_dataschema=b"urn:evenflow:task.praised:1"
    )
    received = decode(one, stream)
    assert isinstance(received, Received)
    assert (received.body, received.tombstone) == (None, False)


@pytest.mark.parametrize("wire", ["json", "avro"])
def test_another_major_is_parked_and_says_so(wire: str) -> None:
    """Proves that a body of an unknown major is never guessed at: it waits as a dead letter with its reason."""
    one, stream = record(examples()["task.assigned"], wire, ce_dataschema=b"urn:evenflow:task.assigned:2")
    found = decode(one, stream)
    assert isinstance(found, Bad)
    assert found.code == "unknown-major"
    assert "knows urn:evenflow:task.assigned:1" in found.problem


def test_an_avro_form_that_this_release_does_not_ship_is_parked_and_names_its_id() -> None:
    """Proves why Avro readers are upgraded before writers: without the form nobody can read the bytes."""
    one, stream = record(examples()["task.assigned"], "avro")
    assert dict(one.headers)["content-type"] == AVRO_CONTENT_TYPE.encode()
    found = decode(dataclasses.replace(one, value=struct.pack(">bI", 0, 99_999) + one.value[5:]), stream)
    assert isinstance(found, Bad)
    assert "schema 99999, which this reader does not have" in found.problem
