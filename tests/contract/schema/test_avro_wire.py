"""Avro on the wire: every body comes back equal, whoever reads it; nothing hostile gets through or ends the reader."""

import io
import json
import struct
from dataclasses import dataclass
from typing import ClassVar

import avro.io
import avro.schema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.core.errors import FieldRefused, Refused
from evenflow.core.lifecycle.event_types import EventType
from evenflow.events import streams
from evenflow.events.contract import Contract, Count, Id, Signed, Text
from evenflow.events.contracts.billing import BudgetChanged
from evenflow.events.contracts.console import ChargeCorrectRequested
from evenflow.events.contracts.tasks import TaskSubmitted
from evenflow.events.envelope import AVRO_CONTENT_TYPE, JSON_CONTENT_TYPE, AgentStamp, from_headers
from evenflow.events.keys import key_of
from evenflow.events.schema.files import write
from evenflow.events.schema.released import Released
from evenflow.events.types import CONTRACTS
from evenflow.platform.broker.avro import AvroWire, avro_wire
from evenflow.platform.broker.codec import Bad, Fact, Received, decode, encode, make_wire
from evenflow.testkit.examples import examples

few = settings(max_examples=12, deadline=None, derandomize=True, database=None)


@dataclass(frozen=True)
class Record:
    """A record as a consumer gives it."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: list
    partition: int = 0
    offset: int = 7
    timestamp: int = 0


def sent(body, wire, key=""):
    """The body's record and its stream."""
    stream = next(one for one in streams.topics() if body.TYPE in one.carries)
    key = key or key_of(body) or "some/key"
    fact = Fact(stream, body, key=key, stamp=AgentStamp("n1", "s1", 1) if stream.stamped else None)
    encoded = encode(fact, source="test", now_ms=0, new_id="i-1", wire=wire)
    return Record(encoded.topic, encoded.key, encoded.value, encoded.headers), stream


@pytest.mark.parametrize("name", sorted(CONTRACTS))
@few
@given(data=st.data())
def test_a_body_comes_back_equal(body_of, name, data):
    """Proves for any body of any type that the Avro form loses and invents nothing."""
    body = data.draw(body_of(CONTRACTS[name]))
    value, content_type = avro_wire().write(body)
    if content_type == AVRO_CONTENT_TYPE:
        assert avro_wire().read(name, value) == body
    else:
        assert value == body.raw


@pytest.mark.parametrize("name", sorted(CONTRACTS))
def test_a_reader_needs_no_setting(name):
    """Proves that the content type alone decides: the same decode reads records of either wire into equal bodies."""
    body = examples()[name]
    read = []
    for wire, content_type in (("json", JSON_CONTENT_TYPE), ("avro", AVRO_CONTENT_TYPE)):
        record, stream = sent(body, make_wire(wire))
        received = decode(record, stream)
        assert isinstance(received, Received), received
        assert received.envelope.content_type == content_type
        assert dict(record.headers)["content-type"] == content_type.encode()
        read.append(received)
    assert read[0].body == read[1].body == body
    assert read[0].value != read[1].value
    assert read[0].envelope.id == read[1].envelope.id


@pytest.mark.parametrize("name", sorted(CONTRACTS))
def test_another_library_reads_the_same_values(root, name):
    """Proves that the bytes are Avro for everyone: the reference implementation reads them by ids.json alone."""
    value, _ = avro_wire().write(examples()[name])
    magic, schema_id = struct.unpack(">bI", value[:5])
    ids = json.loads((root / "schemas/ids.json").read_text())
    file = next(file for file, one in ids.items() if one == schema_id)
    schema = json.loads((root / "schemas" / file).read_text())
    reader = avro.io.DatumReader(avro.schema.parse(json.dumps(schema)))
    values = reader.read(avro.io.BinaryDecoder(io.BytesIO(value[5:])))
    assert magic == 0
    assert list(values) == [field["name"] for field in schema["fields"]]
    if name != "task.submitted":
        body = CONTRACTS[name].model_validate(
            {key: json.loads(one) if key in documents(schema) else one for key, one in values.items()}
        )
        assert body == examples()[name]


def documents(schema):
    """Fields that hold a free document."""
    kinds = ((field["name"], field["type"]) for field in schema["fields"])
    return [name for name, kind in kinds if isinstance(kind, dict) and "contentMediaType" in kind]


# --- versions -----------------------------------------------------------------------------------------------------


class Older(Contract):
    """What was released first."""

    TYPE: ClassVar = EventType.BUDGET_CHANGED
    queue: Text
    spent_micro: Signed
    gone: Text = ""


Older.__name__ = "BudgetChanged"


class Newer(Contract):
    """What an updated writer writes."""

    TYPE: ClassVar = EventType.BUDGET_CHANGED
    budget_micro: Count = 5
    queue: Text
    spent_micro: Signed
    later: Id | None = None


Newer.__name__ = "BudgetChanged"


def test_a_record_of_another_revision_is_read_as_today_s(tmp_path, monkeypatch):
    """Proves that old records stay readable and new ones are for older readers: by name and default."""
    write(tmp_path, {"budget.changed": Older})
    old, _ = AvroWire(Released(tmp_path / "schemas")).write(Older(queue="q", spent_micro=-3, gone="x"))
    write(tmp_path, {"budget.changed": Newer})
    wire = AvroWire(Released(tmp_path / "schemas"))
    new, _ = wire.write(Newer(queue="q", spent_micro=9, later="a"))
    monkeypatch.setitem(CONTRACTS, "budget.changed", Newer)
    assert wire.read("budget.changed", old) == Newer(queue="q", spent_micro=-3, budget_micro=5)
    monkeypatch.setitem(CONTRACTS, "budget.changed", Older)
    assert wire.read("budget.changed", new) == Older(queue="q", spent_micro=9)


def test_a_contract_that_was_not_released_is_not_written(tmp_path):
    """Proves that no record is ever framed with an id that means something else."""
    write(tmp_path, {"budget.changed": Older})
    with pytest.raises(Refused, match="make schemas"):
        AvroWire(Released(tmp_path / "schemas")).write(BudgetChanged(queue="q", spent_micro=1, budget_micro=2))
    with pytest.raises(Refused, match="make schemas"):
        AvroWire(Released(tmp_path / "nowhere")).write(Older(queue="q", spent_micro=1))


# --- hostile ------------------------------------------------------------------------------------------------------

GOOD, _ = avro_wire().write(examples()["task.assigned"])


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"", "not framed"),
        (b"\0\0\0", "not framed"),
        (b"\1" + GOOD[1:], "not framed"),
        (b"{}", "not framed"),
        (b"\0\xff\xff\xff\xff", "4294967295"),
        (b"\0\0\0\0\0", "schema 0"),
        (GOOD + b"\0", "goes on"),
        (GOOD[:-1], "no Avro record"),
        (GOOD[:5], "no Avro record"),
        (GOOD[:5] + b"\xff" * 40, "no Avro record"),
        (GOOD[:5] + b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "no Avro record"),
        (avro_wire().write(examples()["task.queued"])[0], "task.queued"),
    ],
)
def test_a_broken_value_is_refused_with_its_reason(value, problem):
    """Proves that each way to be no record of this type has an answer that says which."""
    with pytest.raises(FieldRefused, match=problem):
        avro_wire().read("task.assigned", value)


@settings(few, max_examples=300)
@given(st.integers(5, len(GOOD) - 1), st.binary(max_size=12))
def test_no_bytes_get_past_the_contract(at, noise):
    """Proves that damaged bytes give a body within all bounds or a refusal, and nothing else."""
    try:
        body = avro_wire().read("task.assigned", GOOD[:at] + noise + GOOD[at + len(noise) :])
    except FieldRefused:
        return
    assert type(body).model_validate_json(body.model_dump_json()) == body


def test_a_bad_avro_record_is_parked_like_any_other():
    """Proves that decode never raises for it: the record comes out with code and reason."""
    record, stream = sent(examples()["task.assigned"], make_wire("avro"))
    for value in (GOOD[:-1], b"{}", avro_wire().write(examples()["task.queued"])[0]):
        bad = decode(Record(record.topic, record.key, value, record.headers), stream)
        assert isinstance(bad, Bad)
        assert bad.code == "field-refused"
        assert bad.problem


def test_a_free_document_must_be_a_map():
    """Proves that the JSON inside a record is looked at too."""
    body = examples()["task.change-requested"]
    good, _ = avro_wire().write(body)
    text = json.dumps(body.change, separators=(",", ":")).encode()
    assert text in good
    for other in (b"[" + b" " * (len(text) - 2) + b"]", b"x" * len(text), b"NaN".ljust(len(text))):
        with pytest.raises(FieldRefused, match="free document"):
            avro_wire().read("task.change-requested", good.replace(text, other))


def test_a_submission_that_is_no_text_goes_on_as_it_is():
    """Proves that its door, which names what is wrong with it, gets the author's bytes in either setting."""
    for raw in (b"\xff\xfe", b"{}", "{\u00e9}".encode()):
        record, stream = sent(TaskSubmitted(raw=raw), make_wire("avro"))
        assert decode(record, stream).body == TaskSubmitted(raw=raw)


def test_a_number_that_avro_can_not_hold_is_refused_at_the_writer():
    """Proves that nothing is cut silently."""
    body = ChargeCorrectRequested(entry="e", amount_micro=2**63, reason="")
    with pytest.raises(FieldRefused, match="Avro"):
        avro_wire().write(body)


def test_an_unknown_wire_is_refused():
    """Proves that a misspelt setting does not fall back to something."""
    with pytest.raises(Refused, match="json or avro"):
        make_wire("Avro")


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "", "text/plain"])
def test_everything_but_avro_is_read_as_json(content_type):
    """Proves that a foreign producer's content type does not make a good body unreadable."""
    record, stream = sent(examples()["task.assigned"], make_wire("json"))
    headers = [(name, content_type.encode() if name == "content-type" else one) for name, one in record.headers]
    received = decode(Record(record.topic, record.key, record.value, headers), stream)
    assert received.body == examples()["task.assigned"]
    assert from_headers(record.headers[:7]).content_type == JSON_CONTENT_TYPE
