"""The Avro form of contracts: what each kind of field becomes."""

from typing import ClassVar, Literal

import pytest

from evenflow.core.lifecycle.causes import Cause
from evenflow.core.lifecycle.event_types import EventType
from evenflow.events.contract import Contract, Count, Document, Id, Part, Text
from evenflow.events.contracts.placement import AttemptDesired
from evenflow.events.contracts.tasks import TaskSubmitted
from evenflow.events.schema.avro_schema import JSON_TEXT, avro_schema, from_avro, to_avro, wire_form
from evenflow.testkit.examples import example


class Inner(Part):
    """A part."""

    id: Id


class Sample(Contract):
    """One field of each kind."""

    TYPE: ClassVar = EventType.TASK_CHANGED
    count: Count = 3
    note: Text | None = None
    cause: Cause | None = Cause.IDLE
    kind: Literal["a", "b"]
    first: Inner
    second: tuple[Inner, ...] = ()
    offsets: dict[str, int]
    free: Document
    frees: tuple[Document, ...] = ()
    maybe: Document | None = None
    yes: bool


def field(name):
    return next(one for one in avro_schema(Sample)["fields"] if one["name"] == name)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("count", {"type": "long", "default": 3}),
        ("note", {"type": ["null", "string"], "default": None}),
        ("cause", {"type": [{"type": "string", "closedList": "Cause"}, "null"], "default": "idle"}),
        ("kind", {"type": "string"}),
        ("second", {"type": {"type": "array", "items": "evenflow.Inner"}, "default": []}),
        ("offsets", {"type": {"type": "map", "values": "long"}}),
        ("free", {"type": JSON_TEXT}),
        ("frees", {"type": {"type": "array", "items": JSON_TEXT}, "default": []}),
        ("maybe", {"type": ["null", JSON_TEXT], "default": None}),
        ("yes", {"type": "boolean"}),
    ],
)
def test_a_field_has_the_form_of_its_type(name, written):
    """Proves the table at the head of the module: defaults kept, the default's side of a union first."""
    assert field(name) == {"name": name, **written}


def test_a_part_is_written_out_once_and_then_named():
    """Proves that a schema is good Avro, where a name may be defined once only."""
    assert field("first")["type"]["name"] == "Inner"
    assert field("second")["type"]["items"] == "evenflow.Inner"


def test_documentation_and_defaults_do_not_change_the_bytes():
    """Proves what decides on a new revision: names, order and types, and nothing else."""
    schema = avro_schema(Sample)
    plain = {
        **schema,
        "doc": "Other.",
        "fields": [{"name": one["name"], "type": one["type"]} for one in schema["fields"]],
    }
    assert wire_form(plain) == wire_form(schema)
    swapped = [schema["fields"][1], schema["fields"][0], *schema["fields"][2:]]
    assert wire_form({**schema, "fields": swapped}) != wire_form(schema)


def test_free_documents_come_back_wherever_they_stand():
    """Proves that documents inside lists and unions are text on the way and maps again behind it."""
    body = Sample(
        kind="a", first=Inner(id="i"), offsets={"x": 1}, free={"a": [1, {"b": None}]}, frees=({}, {"c": 1}),
        maybe={"d": "é"}, yes=True,
    )  # fmt: skip
    values = to_avro(body)
    assert values["free"] == '{"a":[1,{"b":null}]}'
    assert values["frees"] == ["{}", '{"c":1}']
    assert from_avro(Sample, values) == body


def test_a_submission_is_its_author_s_text():
    """Proves that not even spaces change between the author and the door."""
    body = TaskSubmitted(raw=b'{ "id" :\t"t" }')
    assert to_avro(body) == {"document": '{ "id" :\t"t" }'}
    assert from_avro(TaskSubmitted, to_avro(body)) == body


def test_a_type_without_a_form_is_named():
    """Proves that a new kind of field fails when it is written, not when a record is read."""
    with pytest.raises(TypeError, match="no Avro form"):
        avro_schema(
            type(
                "Bad",
                (Contract,),
                {"__annotations__": {"x": complex}, "__doc__": "", "model_config": {"arbitrary_types_allowed": True}},
            )
        )


def test_an_example_is_the_same_each_time():
    """Proves that examples take nothing from clock, chance or order."""
    assert example(AttemptDesired) == example(AttemptDesired)
    assert example(AttemptDesired).specification["id"] == example(AttemptDesired).task
