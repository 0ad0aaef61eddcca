"""Services whose bodies travel as Avro say the same as on JSON, and those who pass JSON on still get JSON."""

import json

import pytest

from evenflow.core.errors import FieldRefused
from evenflow.core.lifecycle.event_types import EventType
from evenflow.events import streams
from evenflow.events.contracts.agent import NodeAnnounced
from evenflow.events.contracts.billing import LedgerEntry
from evenflow.events.contracts.inventory import NodeStatus
from evenflow.events.contracts.tasks import TaskSubmitted
from evenflow.events.envelope import AVRO_CONTENT_TYPE, JSON_CONTENT_TYPE
from evenflow.gateway.desired import DesiredSets
from evenflow.gateway.settings import GatewaySettings
from evenflow.hosting.surroundings import HostSettings, Surroundings
from evenflow.placement.deciding.draft import Said
from evenflow.placement.encoding import Writer
from evenflow.platform.broker.codec import Fact, Received, body_bytes, decode, encode, make_wire
from evenflow.platform.settings import load_settings
from evenflow.testkit.examples import examples
from evenflow.testkit.pool import run

KEPT = {"inventory": streams.NODES, "billing": streams.BILLING}


class Record:
    """A record as a consumer gives it."""

    partition, offset, timestamp = 0, 0, 0

    def __init__(self, encoded):
        self.topic, self.key, self.value, self.headers = encoded.topic, encoded.key, encoded.value, encoded.headers


def told(wire):
    """What inventory and billing state about one story, and the content types they wrote."""
    found = []

    async def story(pool):
        await pool.start("inventory")
        await pool.start("billing")
        document = {"id": "zrh-01", "site": "zurich", "cpu": 8}
        body = NodeAnnounced(node="zrh-01", session="s", document=document, agent_version="0.1")
        await pool.publish(Fact(streams.TELEMETRY, body))
        await pool.publish(Fact(streams.ASSIGNMENTS, examples()["task.assigned"]))
        await pool.publish(Fact(streams.ASSIGNMENTS, examples()["task.ended"]))
        await pool.pass_s(5)
        for stream in KEPT.values():
            found.extend(await pool.facts(stream))
        assert await pool.dead_letters(streams.TELEMETRY) == []
        assert await pool.dead_letters(streams.ASSIGNMENTS) == []

    run(story, wire=wire)
    return [one.body for one in found], {one.envelope.content_type for one in found}


def test_two_services_state_the_same_on_either_wire():
    """Proves that the wire is a setting and nothing more: registration, ledger and its hash chain come out equal."""
    on_json, on_avro = told(make_wire("json")), told(make_wire("avro"))
    assert on_json[0] == on_avro[0]
    assert any(isinstance(body, NodeStatus) for body in on_avro[0])
    assert any(isinstance(body, LedgerEntry) for body in on_avro[0])
    assert (on_json[1], on_avro[1]) == ({JSON_CONTENT_TYPE}, {AVRO_CONTENT_TYPE})


@pytest.mark.parametrize("wire", ["json", "avro"])
async def test_the_wire_is_a_setting_of_the_host(wire):
    """Proves that one word in the environment reaches every service, and that another word is refused by name."""
    settings = load_settings(HostSettings, "host", environment={"EVENFLOW_HOST_WIRE": wire})
    around = Surroundings(settings)
    try:
        assert around.runtime("inventory").wire is make_wire(wire)
    finally:
        await around.close()
    with pytest.raises(FieldRefused, match="wire"):
        load_settings(HostSettings, "host", environment={"EVENFLOW_HOST_WIRE": "xml"})


def received(name, wire, stream):
    fact = Fact(stream, examples()[name], key="zrh-01/vision/train-7/1/0" if stream is streams.DISPATCH else "")
    one = decode(Record(encode(fact, source="x", now_ms=0, new_id="i", wire=make_wire(wire))), stream)
    assert isinstance(one, Received), one
    return one


@pytest.mark.parametrize(
    ("name", "stream"), [("attempt.desired", streams.DISPATCH), ("node.probe-requested", streams.NODE_REQUESTS)]
)
def test_agents_get_json_from_the_gateway_whatever_the_log_holds(name, stream):
    """Proves that the setting ends at the gateway: an agent two versions back needs no Avro."""
    shown = []
    for wire in ("json", "avro"):
        sets = DesiredSets(GatewaySettings(), lambda: 0)
        sets.apply(received(name, wire, stream))
        entry = sets._nodes["zrh-01"]
        shown.append([row.value for row in entry.rows.values()] + [asked.value for asked in entry.asked])
    assert shown[0] == shown[1] == [body_bytes(examples()[name])]


def test_a_decider_writes_facts_on_its_wire_and_its_rows_as_they_are():
    """Proves that placement's own writer keeps to the setting, and that its state needs no schema to be restored."""
    writer = Writer("main", 4, 218, 0, make_wire("avro"))
    body = examples()["task.assigned"]
    value = body_bytes(body)
    fact = decode(
        Record(writer.encode(Said(streams.ASSIGNMENTS, EventType.TASK_ASSIGNED, "vision/train-7", value))),
        streams.ASSIGNMENTS,
    )
    assert fact.body == body
    assert fact.envelope.content_type == AVRO_CONTENT_TYPE
    row = writer.encode(
        Said(streams.PLACEMENT_STATE, EventType.STATE_RECORDED, "task/a", b'{"state_version":1,"row":{}}')
    )
    assert json.loads(row.value) == {"state_version": 1, "row": {}}
    assert dict(row.headers)["content-type"] == JSON_CONTENT_TYPE.encode()
    gone = writer.encode(Said(streams.DISPATCH, EventType.ATTEMPT_DESIRED, "n/t/a/1/0", None))
    assert gone.value is None


def test_a_submission_s_own_text_is_what_its_door_reads():
    """Proves that the digest of a used id is of the author's text on either wire."""
    raw = b'{"id": "train-7",  "run": {}}'
    for wire in ("json", "avro"):
        fact = Fact(streams.TASKS, TaskSubmitted(raw=raw), key="default/train-7")
        one = decode(Record(encode(fact, source="x", now_ms=0, new_id="i", wire=make_wire(wire))), streams.TASKS)
        assert one.json == raw
