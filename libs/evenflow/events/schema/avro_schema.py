"""Avro schemas of the contracts, and the step between a body and what an Avro library takes.

    int             long                     closed list     string that names its list: a new word stays compatible
    str, bool       string, boolean          X | None        union; the default's side comes first
    float           double                   Document        string holding JSON
    tuple[X, ...]   array                    nested Part     record, written out where it stands first
    dict[str, X]    map

A submission's body is its author's own text, so its record has the one field `document`.
"""

from __future__ import annotations

import enum
import functools
import json
import types
import typing
from collections.abc import Callable, Hashable
from typing import Any, Final

import pydantic_core
from fastavro.schema import to_parsing_canonical_form
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from evenflow.core.errors import FieldRefused
from evenflow.events.contract import Contract, Document
from evenflow.events.contracts.tasks import TaskSubmitted

NAMESPACE: Final = "evenflow"
JSON_TEXT: Final = {"contentMediaType": "application/json", "type": "string"}
_PRIMITIVES: Final[dict[Any, str]] = {int: "long", float: "double", str: "string", bool: "boolean"}
_SUBMISSION: Final = {
    "type": "record",
    "name": TaskSubmitted.__name__,
    "namespace": NAMESPACE,
    "doc": "A submission: the specification's text, exactly as its author wrote it.",
    "fields": [{"name": "document", "type": JSON_TEXT}],
}

Schema = dict[str, Any]


def avro_schema(contract: type[Contract]) -> Schema:
    """The Avro record of a contract. Raises TypeError for a field whose type has no Avro form."""
    return dict(_SUBMISSION) if contract is TaskSubmitted else _record(contract, {contract.__name__: None})


def wire_form(schema: Schema) -> str:
    """What decides the bytes: Avro's canonical form, without documentation, defaults and other remarks."""
    return to_parsing_canonical_form(schema)


def _record(model: type[BaseModel], seen: dict[str, None]) -> Schema:
    fields = [_field(name, field, seen) for name, field in model.model_fields.items()]
    schema = {"type": "record", "name": model.__name__, "namespace": NAMESPACE, "fields": fields}
    if model.__doc__:
        schema["doc"] = " ".join(model.__doc__.split())
    return schema


def _field(name: str, field: FieldInfo, seen: dict[str, None]) -> Schema:
    written = _type(field.annotation, seen)
    if field.is_required():
        return {"name": name, "type": written}
    default = field.get_default(call_default_factory=True)
    if default is not None and isinstance(written, list):
        written = [*written[1:], written[0]]
    return {"name": name, "type": written, "default": _default(field.annotation, default)}


def _default(annotation: Any, value: Any) -> Any:
    folded = _mapped(annotation, value, _folded)
    if isinstance(folded, BaseModel):
        return folded.model_dump(mode="json")
    return json.loads(pydantic_core.to_json(folded))


def _type(annotation: Any, seen: dict[str, None]) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation == Document:
        return JSON_TEXT
    if annotation in _PRIMITIVES:
        return _PRIMITIVES[annotation]
    if origin is typing.Annotated:
        return _type(arguments[0], seen)
    if origin in (typing.Union, types.UnionType):
        return ["null", *(_type(one, seen) for one in arguments if one is not types.NoneType)]
    if origin is typing.Literal:
        return "string"
    if origin is tuple:
        return {"type": "array", "items": _type(arguments[0], seen)}
    if origin is dict:
        return {"type": "map", "values": _type(arguments[1], seen)}
    if isinstance(annotation, type) and issubclass(annotation, enum.StrEnum):
        return {"type": "string", "closedList": annotation.__name__}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        name = annotation.__name__
        if name in seen:
            return f"{NAMESPACE}.{name}"
        seen[name] = None
        return _record(annotation, seen)
    raise TypeError(f"no Avro form for {annotation!r}")


# --- values -------------------------------------------------------------------------------------------------------


def to_avro(body: Contract) -> dict[str, Any]:
    """A body as plain values of its Avro schema. Raises ValueError when it holds what neither JSON nor Avro can."""
    if isinstance(body, TaskSubmitted):
        return {"document": body.raw.decode()}
    plain: dict[str, Any] = _mapped(type(body), body.model_dump(mode="json"), _folded)
    return plain


def from_avro(contract: type[Contract], values: dict[str, Any]) -> Contract:
    """The body out of values read by the contract's Avro schema.

    Raises FieldRefused for a free document that is none, pydantic's ValidationError for a value out of its bounds.
    """
    if contract is TaskSubmitted:
        return TaskSubmitted(raw=values["document"].encode())
    return contract.model_validate(_mapped(contract, values, _unfolded))


def _folded(document: Any) -> str:
    return pydantic_core.to_json(document).decode()


def _unfolded(text: str) -> Any:
    try:
        document = pydantic_core.from_json(text)
    except ValueError as error:
        raise FieldRefused("value", f"holds a free document that is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise FieldRefused("value", "holds a free document that is no map")
    return document


def _holds(annotation: Any) -> bool:
    """Whether a free document may stand somewhere below."""
    return _holds_document(annotation)


@functools.cache
def _holds_document(annotation: Hashable) -> bool:
    if annotation == Document:
        return True
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return any(_holds(field.annotation) for field in annotation.model_fields.values())
    return any(_holds(one) for one in typing.get_args(annotation))


def _mapped(annotation: Any, value: Any, change: Callable[[Any], Any]) -> Any:
    """`value` with `change` applied to each free document in it; the rest stays as it is."""
    if value is None or not _holds(annotation):
        return value
    if annotation == Document:
        return change(value)
    if isinstance(value, dict) and isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields
        return {name: _mapped(fields[name].annotation, one, change) for name, one in value.items()}
    arguments = [one for one in typing.get_args(annotation) if one is not types.NoneType]
    if isinstance(value, list | tuple):
        return [_mapped(arguments[0], one, change) for one in value]
    if isinstance(value, dict) and typing.get_origin(annotation) is dict:
        return {name: _mapped(arguments[1], one, change) for name, one in value.items()}
    return _mapped(arguments[0], value, change)
