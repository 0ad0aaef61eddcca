"""Bodies of every contract, drawn from the types of its fields; a JSON Schema check that is strict about patterns."""

from __future__ import annotations

import enum
import re
import types
import typing
from pathlib import Path

import jsonschema
import pytest
from hypothesis import strategies as st
from pydantic import BaseModel

from evenflow.core.lifecycle.node import DeviceState
from evenflow.events.contract import ID_PATTERN, Document
from evenflow.events.contracts.agent import DeviceLoad, NodeHeartbeat
from evenflow.events.contracts.tasks import TaskSubmitted

ROOT = Path(__file__).resolve().parents[3]

texts = st.text(st.characters(codec="utf-8"), max_size=30)
ids = st.from_regex(ID_PATTERN.strip("^$"), fullmatch=True)
leaves = st.one_of(st.none(), st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False), texts)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3))
documents = st.dictionaries(texts, values.filter(lambda value: value not in (float("inf"), -float("inf"))), max_size=4)


def finite(value):
    """Whether JSON can hold it: no infinity anywhere."""
    if isinstance(value, float):
        return abs(value) != float("inf")
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    return all(map(finite, value)) if isinstance(value, list) else True


def bound(metadata, name, default):
    found = [getattr(one, name) for one in metadata if getattr(one, name, None) is not None]
    return found[0] if found else default


def drawn(annotation, metadata=()):
    """A strategy for one field's type."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation == Document:
        return documents.filter(finite)
    if origin is typing.Annotated:
        inner = [one for field in arguments[1:] for one in getattr(field, "metadata", ())]
        return drawn(arguments[0], inner)
    if origin in (typing.Union, types.UnionType):
        return st.one_of([st.none() if one is types.NoneType else drawn(one, metadata) for one in arguments])
    if origin is typing.Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        return st.lists(drawn(arguments[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(texts, drawn(arguments[1]), max_size=3)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return st.sampled_from(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return bodies(annotation)
    return scalar(annotation, metadata)


def scalar(annotation, metadata):
    """A strategy for one plain value, within its bounds."""
    if annotation is str:
        return ids if any(getattr(one, "pattern", None) for one in metadata) else texts
    if annotation is bool:
        return st.booleans()
    assert annotation is int, annotation
    return st.integers(bound(metadata, "ge", -(2**53)), bound(metadata, "le", 2**53))


def bodies(contract):
    """A strategy for whole bodies."""
    if contract is TaskSubmitted:
        return st.builds(TaskSubmitted, raw=st.one_of(st.binary(max_size=50), texts.map(str.encode)))
    fields = {name: drawn(field.annotation, field.metadata) for name, field in contract.model_fields.items()}
    if contract is NodeHeartbeat:  # its device columns are equally long
        fields = {name: one for name, one in fields.items() if not name.startswith("device_")}
        loads = st.builds(DeviceLoad, st.sampled_from(DeviceState), *[st.integers(0, 2**53)] * 3)
        return st.builds(NodeHeartbeat.of, st.lists(loads, max_size=3), **fields)
    return st.builds(contract, **fields)


def matches(validator, pattern, instance, schema):
    """The keyword `pattern` as JSON Schema means it: an ECMA expression, whose $ is the end and not a line's end."""
    if validator.is_type(instance, "string") and not re.search(pattern.replace("$", r"\Z"), instance):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


Strict = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"pattern": matches})


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def body_of():
    """contract → strategy."""
    return bodies


@pytest.fixture(scope="session")
def strict():
    """schema → validator."""
    return Strict
