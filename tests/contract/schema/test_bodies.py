"""JSON Schemas of events against the contracts themselves, on drawn and on damaged bodies."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from evenflow.core.lifecycle.event_types import EventType
from evenflow.events.envelope import dataschema_of
from evenflow.events.schema.json_schema import json_schema
from evenflow.events.types import CONTRACTS

few = settings(max_examples=12, deadline=None, derandomize=True, database=None)
BODIES = sorted(name for name in CONTRACTS if name != EventType.TASK_SUBMITTED)
DAMAGE = [None, True, -1, 0, 1.5, 2**53 + 1, "", "a", "A b", "x" * 4097, [], [None], {}, {"a": 1}]


def is_read(contract, document):
    try:
        contract.__pydantic_validator__.validate_json(json.dumps(document))
    except ValidationError:
        return False
    return True


@pytest.fixture(scope="module")
def validators(strict):
    return {name: strict(json_schema(CONTRACTS[name])) for name in BODIES}


@pytest.mark.parametrize("name", BODIES)
@few
@given(data=st.data())
def test_what_is_written_is_good_by_its_schema(body_of, validators, name, data):
    """Proves for any body that the bytes on the log pass the published schema."""
    body = data.draw(body_of(CONTRACTS[name]))
    document = json.loads(body.__pydantic_serializer__.to_json(body))
    assert [error.message for error in validators[name].iter_errors(document)] == []


@pytest.mark.parametrize("name", BODIES)
@few
@given(data=st.data())
def test_what_the_schema_takes_is_read(body_of, validators, name, data):
    """Proves that a producer who keeps to the schema is understood, also without optional and with unknown fields."""
    contract = CONTRACTS[name]
    document = json.loads(data.draw(body_of(contract)).model_dump_json())
    # How long columns are beside one another is a rule that JSON Schema has no words for.
    names = [one for one in document if name != EventType.NODE_HEARTBEAT or not one.startswith("device_")]
    field = data.draw(st.sampled_from([*names, "surplus"]))
    if data.draw(st.booleans()):
        document.pop(field, None)
    else:
        document[field] = data.draw(st.sampled_from(DAMAGE))
    if validators[name].is_valid(document):
        assert is_read(contract, document), document
    if contract.model_fields.get(field) and contract.model_fields[field].annotation is not bool:
        assert validators[name].is_valid(document) == is_read(contract, document), document


@pytest.mark.parametrize("name", sorted(CONTRACTS))
def test_a_schema_is_named_like_the_envelope_names_it(name):
    """Proves that ce_dataschema leads to the file: both are the same URN."""
    assert json_schema(CONTRACTS[name])["$id"] == dataschema_of(name, CONTRACTS[name].MAJOR)
