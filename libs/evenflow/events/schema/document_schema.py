"""JSON Schema (2020-12) of what people write: task specification, node, site, link, dataset, queue and policy.

Derived from the forms of the doors' own readers. Whatever a door accepts its schema accepts; whatever the schema
refuses the door refuses. The door is stricter only where JSON Schema has no words: bytes of a text, half surrogate
pairs, places and signs of a number, whole bytes of a binary size, and rules that compare two fields or two entries.
"""

from __future__ import annotations

import json
from typing import Any, Final

from evenflow.core.placement.policy import DEFAULT_POLICY
from evenflow.core.units import QUANTITY_MAX
from evenflow.events.documents import fields, forms, network, node, policy, queue, task_specification
from evenflow.events.documents.readiness import documented_fields

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
IDENTITY_PREFIX: Final = "urn:evenflow:document:"

_ROOTS: Final[dict[str, tuple[str, forms.Form]]] = {
    "dataset": ("A dataset and its copies.", forms.form_of(network.read_dataset)),
    "link": ("A link between two sites.", forms.form_of(network.read_link)),
    "node": ("A node: what an agent announces.", forms.form_of(node.read_node)),
    "policy": ("A policy, merged over the default key by key.", forms.form_of(policy.read_policy)),
    "queue": ("A queue: quota, place in the tree, order, budget.", forms.form_of(queue.read_queue)),
    "site": ("A site.", forms.form_of(network.read_site)),
    "task": ("A task specification: what is written to run something.", forms.Fields(task_specification.FIELDS)),
}
KINDS: Final = tuple(_ROOTS)

Schema = dict[str, Any]


def document_schema(kind: str) -> Schema:
    """The schema of one kind of document. Raises KeyError for an unknown kind."""
    description, root = _ROOTS[kind]
    shared: dict[str, Schema] = {}
    schema = _written(root, shared)
    readiness = documented_fields()[kind]
    _mark_planned(schema, shared, [path for path, state in readiness.items() if state == "planned"])
    if kind == "policy":
        _add_defaults(schema, policy.policy_document(DEFAULT_POLICY))
    return {
        "$schema": DIALECT,
        "$id": f"{IDENTITY_PREFIX}{kind}",
        "title": kind,
        "description": description,
        **schema,
        **({"$defs": shared} if shared else {}),
    }


# --- forms --------------------------------------------------------------------------------------------------------


def _written(form: forms.Form, shared: dict[str, Schema]) -> Schema:
    """A form as a schema; those that stand in many fields are put into `shared` and referred to."""
    name = _shared_name(form)
    if name is None:
        return _spelled(form, shared)
    if name not in shared:
        shared[name] = _spelled(form, shared)
    return {"$ref": f"#/$defs/{name}"}


def _shared_name(form: forms.Form) -> str | None:
    match form:
        case forms.Pattern(fields.ID_GRAMMAR):
            return "id"
        case forms.Money():
            return "money"
        case forms.Amount(units=units, low=low):
            return ("size" if "B" in units else "rate") + ("_above_zero" if low else "")
        case forms.Decimal(scale=scale, low=0 | 1 as low, high=high, signed=False) if high == QUANTITY_MAX:
            return f"steps_of_1_{scale}" + ("_above_zero" if low else "")
    return None


def _spelled(form: forms.Form, shared: dict[str, Schema]) -> Schema:
    match form:
        case forms.Items(entry, low, high):
            bounds = {"minItems": low, "maxItems": high} if low else {"maxItems": high}
            return {"type": "array", "items": _written(forms.form_of(entry), shared), **bounds}
        case forms.Pairs(key, entry, high):
            values = _written(forms.form_of(entry), shared)
            names = {"pattern": f"^{key}$"}
            return {"type": "object", "propertyNames": names, "additionalProperties": values, "maxProperties": high}
        case forms.Either(choices):
            return {"anyOf": [_written(choice, shared) for choice in choices]}
        case forms.Fields():
            return _fields(form, shared)
        case _:
            return _scalar(form)


_Scalar = (
    forms.Truth | forms.Whole | forms.Decimal | forms.Money | forms.Amount | forms.Choice | forms.Pattern | forms.Text
)


def _scalar(form: _Scalar) -> Schema:
    match form:
        case forms.Truth():
            return {"type": "boolean"}
        case forms.Whole(low, high):
            return {"type": "integer", "minimum": low, "maximum": high}
        case forms.Choice(words):
            return {"enum": list(words)}
        case forms.Pattern(pattern):
            return {"type": "string", "pattern": f"^({pattern})$" if "|" in pattern else f"^{pattern}$"}
        case forms.Decimal():
            return _decimal(form)
        case forms.Money(scale, high):
            return _decimal_text(scale, 0, high)
        case forms.Amount():
            return _amount(form)
        case forms.Text():
            return _text(form)


def _fields(form: forms.Fields, shared: dict[str, Schema]) -> Schema:
    properties = {name: _written(forms.form_of(reader), shared) for name, reader in form.readers.items()}
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if form.required:
        schema["required"] = list(form.required)
    if form.rules:
        schema["allOf"] = [json.loads(json.dumps(rule)) for rule in form.rules]
    return schema


def _text(form: forms.Text) -> Schema:
    forbidden = r"\u0000" if form.lines else r"[\u0000-\u001f\u007f-\u009f]"
    schema: Schema = {"type": "string", "maxLength": form.bytes_max, "not": {"pattern": forbidden}}
    return schema if form.empty else {**schema, "minLength": 1}


# --- numbers ------------------------------------------------------------------------------------------------------

_WHOLE: Final = "(0|[1-9][0-9]{0,17})"
_ZERO: Final = r"^-?0(\.0+)?(\s?[A-Za-z/]+)?$"


def _decimal(form: forms.Decimal) -> Schema:
    low = -form.high if form.signed else form.low
    number = {"type": "number", "minimum": _exact(low, form.scale), "maximum": _exact(form.high, form.scale)}
    return {"anyOf": [number, _decimal_text(form.scale, form.low, form.high, signed=form.signed)]}


def _exact(steps: int, scale: int) -> int | float:
    return steps // scale if steps % scale == 0 else steps / scale


def _decimal_text(scale: int, low: int, high: int, *, signed: bool = False) -> Schema:
    """Plain decimal text of at most as many places as `scale` keeps; more only when they are zeros."""
    places = _fraction(len(str(scale)) - 1)
    if high == QUANTITY_MAX:
        body = f"(0|[1-9][0-9]{{0,{len(str(high // scale)) - 1}}}){places}"
    else:
        most = high // scale
        body = rf"({_below(most)}{places}|{most}(\.0{{1,9}})?)" if most else f"0{places}"
    refused = []
    if low == 1:
        refused.append(_ZERO)
    elif low:
        refused.append(rf"^{_below(low // scale)}(\.|$)")
    schema: Schema = {"type": "string", "pattern": f"^{'-?' if signed else ''}{body}$"}
    return {**schema, "not": {"pattern": refused[0]}} if refused else schema


def _fraction(places: int) -> str:
    """At most nine places, of which those behind `places` are zeros."""
    if places >= 9:
        return r"(\.[0-9]{1,9})?"
    return rf"(\.[0-9]{{1,{places}}}0{{0,{9 - places}}})?" if places else r"(\.0{1,9})?"


def _below(bound: int) -> str:
    """Whole numbers from 0 to `bound` - 1, for `bound` from 1."""
    digits = str(bound)
    choices = ["0"]
    if len(digits) > 1:
        shorter = len(digits) - 2
        choices.append("[1-9]" + (f"[0-9]{{0,{shorter}}}" if shorter else ""))
    for index, digit in enumerate(digits):
        first = 1 if index == 0 else 0
        if int(digit) > first:
            rest = len(digits) - index - 1
            span = f"[{first}-{int(digit) - 1}]" if int(digit) - 1 > first else str(first)
            choices.append(digits[:index] + span + (f"[0-9]{{{rest}}}" if rest else ""))
    return f"({'|'.join(choices)})"


def _amount(form: forms.Amount) -> Schema:
    """A whole number, or text; where a unit is a power of ten its places are as many as give whole bytes or bits."""
    ways = [_fraction(0)]
    for name, factor in form.units.items():
        is_decimal = str(factor).strip("0") == "1"
        ways.append(rf"{_fraction(len(str(factor)) - 1 if is_decimal else 9)}\s?{name}")
    text: Schema = {"type": "string", "pattern": f"^{_WHOLE}({'|'.join(ways)})$"}
    if form.low:
        text["not"] = {"pattern": _ZERO}
    return {"anyOf": [{"type": "integer", "minimum": form.low, "maximum": form.high}, text]}


# --- remarks ------------------------------------------------------------------------------------------------------


def _mark_planned(schema: Schema, shared: dict[str, Schema], paths: list[str]) -> None:
    """Say of a field that it is read and checked, and that using it is refused until it does something."""
    for path in paths:
        at = schema
        for step in path.replace("[]", "").split("."):
            at = _inside(at, shared)["properties"][step]
        at["x-readiness"] = "planned"


def _inside(schema: Schema, shared: dict[str, Schema]) -> Schema:
    """The map that a field holds, be it in a list or one of several forms."""
    if "$ref" in schema:
        return _inside(shared[schema["$ref"].rsplit("/", 1)[-1]], shared)
    if "items" in schema:
        return _inside(schema["items"], shared)
    for choice in schema.get("anyOf", ()):
        if "items" in choice:
            return _inside(choice["items"], shared)
    return schema


def _add_defaults(schema: Schema, document: dict[str, Any]) -> None:
    for name, value in document.items():
        at = schema["properties"][name]
        if isinstance(value, dict) and "properties" in at:
            _add_defaults(at, value)
        else:
            at["default"] = value
