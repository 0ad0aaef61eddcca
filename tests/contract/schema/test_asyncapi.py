"""The AsyncAPI file: whole, resolvable, and saying what the registry of streams says."""

import json

import pytest

from evenflow.events.envelope import AgentStamp, Envelope, to_headers
from evenflow.events.streams import STREAMS, topics
from evenflow.events.types import CONTRACTS


@pytest.fixture(scope="module")
def document(root):
    return json.loads((root / "schemas/asyncapi.json").read_text(encoding="utf-8"))


def references(value):
    """Every $ref of a document."""
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for one in value.values():
            yield from references(one)
    elif isinstance(value, list):
        for one in value:
            yield from references(one)


def test_every_reference_leads_somewhere(root, document):
    """Proves that a tool can follow each pointer, inside the file and to the JSON Schemas beside it."""
    found = sorted(set(references(document)))
    assert found
    for reference in found:
        if reference.startswith("./"):
            assert (root / "schemas" / reference).is_file(), reference
            continue
        at = document
        for step in reference.removeprefix("#/").split("/"):
            assert step in at, reference
            at = at[step]


def test_every_topic_is_a_channel_with_its_settings(document):
    """Proves that partitions, cleaning, retention and key stand there as the topics are created."""
    channels = {one["address"]: one for one in document["channels"].values()}
    assert sorted(channels) == sorted(stream.name for stream in topics())
    for stream in topics():
        kafka = channels[stream.name]["bindings"]["kafka"]
        assert kafka["partitions"] == stream.partitions
        assert kafka["topicConfiguration"]["cleanup.policy"] == [stream.configs["cleanup.policy"]]
        assert str(kafka["topicConfiguration"].get("retention.ms", "")) == stream.configs.get("retention.ms", "")
        assert channels[stream.name]["x-key"] == stream.key
        assert channels[stream.name]["x-archive"] == stream.archive


def test_every_contract_is_a_message_of_some_channel(document):
    """Proves that no type is published without a stream that carries it."""
    carried = {name for channel in document["channels"].values() for name in channel["messages"]}
    assert sorted(carried) == sorted(CONTRACTS) == sorted(document["components"]["messages"])


def test_every_writer_and_reader_is_an_operation(document):
    """Proves that who sends and who receives is there for each stream, and nothing beyond."""
    operations = document["operations"]
    for stream in STREAMS:
        channel = f"#/channels/{stream.name.removeprefix('evenflow.')}"
        for action, parties in (("send", stream.writers), ("receive", stream.readers)):
            found = [
                one["tags"][0]["name"]
                for one in operations.values()
                if one["channel"]["$ref"] == channel and one["action"] == action
            ]
            assert sorted(found) == sorted(parties), stream.name
    assert len(operations) == sum(len(stream.writers) + len(stream.readers) for stream in topics())


def test_the_headers_we_write_are_those_it_describes(document, strict):
    """Proves that each header of a full envelope is described, and that an envelope passes its own schema."""
    stamp = AgentStamp("n", "s", 1, 1, 0, 4, "ab")
    envelope = Envelope("i", "t", "agent", "k", 0, "urn:evenflow:t:1", "i", "c", "x", "00-1-2-01", stamp)
    headers = {name: value.decode() for name, value in to_headers(envelope)}
    schemas = document["components"]["schemas"]
    assert sorted(headers) == sorted(schemas["agent-envelope"]["properties"])
    assert [error.message for error in strict(schemas["agent-envelope"]).iter_errors(headers)] == []
    headers.pop("ce_source")
    assert not strict(schemas["envelope"]).is_valid(headers)
