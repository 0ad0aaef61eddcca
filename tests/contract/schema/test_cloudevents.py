"""Records are CloudEvents 1.0 in the binary mode of its Kafka binding, by the rules of the specification."""

import re
from datetime import datetime
from urllib.parse import urlsplit

import pytest

from evenflow.events import streams
from evenflow.events.envelope import AgentStamp, from_headers
from evenflow.events.keys import key_of
from evenflow.platform.broker.codec import Fact, Received, encode, make_wire
from evenflow.platform.broker.dead_letters import parked
from evenflow.testkit.examples import examples

#: Context attributes of the specification; ours beyond them are plain headers, without the prefix.
REQUIRED = ("id", "source", "specversion", "type")
OPTIONAL = ("subject", "time", "dataschema")
MEDIA_TYPE = re.compile(r"[a-z]+/[a-z0-9.+-]+(; ?[a-z]+=[a-z0-9-]+)*\Z")
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)\Z")


def record(name, wire="json"):
    body = examples()[name]
    stream = next(one for one in streams.topics() if name in one.carries)
    stamp = AgentStamp("zrh-01", "s-1", 12, 1, 0, 4, "00ff") if "agents" in stream.writers else None
    fact = Fact(stream, body, key=key_of(body) or "some/key", stamp=stamp)
    return encode(fact, source="placement", now_ms=1_767_225_600_123, new_id="a-1", wire=make_wire(wire))


def attributes(headers):
    """The event's context attributes as the Kafka binding reads them: headers prefixed with ce_."""
    assert len({name for name, _ in headers}) == len(headers), "a header stands twice"
    return {name[3:]: value.decode("utf-8") for name, value in headers if name.startswith("ce_")}


@pytest.mark.parametrize("wire", ["json", "avro"])
@pytest.mark.parametrize("name", sorted(examples()))
def test_a_record_is_a_cloudevent_in_binary_mode(name, wire):
    """Proves the rules on attributes: the four required ones are non-empty, the others of their type, none invented."""
    encoded = record(name, wire)
    found = attributes(encoded.headers)
    assert sorted(found) == sorted((*REQUIRED, *OPTIONAL))
    assert all(re.fullmatch("[a-z0-9]+", attribute) for attribute in found)
    assert all(found.values())
    assert found["specversion"] == "1.0"
    assert found["type"] == name
    assert RFC3339.match(found["time"])
    assert datetime.fromisoformat(found["time"]).utcoffset().total_seconds() == 0
    assert urlsplit(found["dataschema"]).scheme, "dataschema is an absolute URI"
    assert not re.search(r"[\s<>\"{}|\\^`]", found["source"] + found["dataschema"]), "URIs hold none of these"
    content_type = dict(encoded.headers)["content-type"].decode()
    assert MEDIA_TYPE.match(content_type)
    assert not content_type.startswith("application/cloudevents"), "that would be structured mode"


@pytest.mark.parametrize("name", sorted(examples()))
def test_the_data_is_the_value_and_the_key_the_record_s(name):
    """Proves that value and key are the body and its partition key alone, with no wrapping."""
    encoded = record(name)
    body = examples()[name]
    if name == "task.submitted":
        assert encoded.value == body.raw
    else:
        assert body.model_validate_json(encoded.value) == body
    assert encoded.key.decode() == (key_of(body) or "some/key")


def test_our_own_headers_are_no_attributes():
    """Proves that correlation, tenant and the agent's stamp stay outside the CloudEvents namespace and its rules."""
    names = [name for name, _ in record("attempt.started").headers if not name.startswith("ce_")]
    assert names == [
        "content-type", "correlation_id", "tenant", "traceparent", "node", "session", "sequence", "attempt", "member",
        "epoch", "signature",
    ]  # fmt: skip


def test_the_same_fact_has_the_same_id_and_source_and_two_have_not():
    """Proves that id and source together name one event, as the specification asks."""
    one, again, other = record("task.ended"), record("task.ended"), record("task.queued")
    assert attributes(one.headers)["id"] == attributes(again.headers)["id"]
    caused = [
        encode(Fact(streams.ASSIGNMENTS, examples()[name], cause=received), source="placement", now_ms=0)
        for received in [decoded(other)]
        for name in ("task.assigned", "task.ended")
    ]
    assert len({attributes(one.headers)["id"] for one in caused}) == 2


def decoded(encoded):
    """The encoded fact as a reader holds it."""
    envelope = from_headers(encoded.headers)
    return Received(envelope, None, encoded.topic, 0, 0, 0, encoded.key.decode(), encoded.value)


def test_a_dead_letter_has_the_required_attributes_too():
    """Proves that a tool which reads CloudEvents can read what was parked."""
    received = type("R", (), {"topic": "evenflow.runs.v1", "partition": 4, "offset": 9, "key": b"k", "value": b"?"})
    received.headers = []
    letter = parked(received, code="x", problem="y", service="placement", now_ms=0)
    found = attributes(letter.headers)
    assert all(found[attribute] for attribute in REQUIRED)
    assert found["specversion"] == "1.0"
