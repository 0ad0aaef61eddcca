"""The gate: whether a contract may follow what was released.

Avro decides: every released wire form of the same major version and the contract's own must read each other. On top of
that, a word of a closed list and a bound may be widened, never narrowed. What is refused needs a new major version,
or a new event type.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from evenflow.core.errors import Refused

Schema = dict[str, Any]

_LOWER_ONLY: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_RAISE_ONLY: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")


def incompatibilities(new: Schema, released: Schema) -> list[str]:
    """Why two Avro schemas can't read each other's records; empty when they can.

    Raises Refused when the checker is not installed.
    """
    try:
        import avro.compatibility
        import avro.schema
    except ImportError:
        raise Refused("schemas are checked with the avro package: install evenflow[dev]") from None
    mine, theirs = (avro.schema.parse(json.dumps(_plain(schema))) for schema in (new, released))
    found: list[str] = []
    for reader, writer, who in ((mine, theirs, "can't read released records"), (theirs, mine, "can't be read")):
        checker: Any = avro.compatibility.ReaderWriterCompatibilityChecker
        result = checker().get_compatibility(reader, writer)
        if result.compatibility is not avro.compatibility.SchemaCompatibilityType.compatible:
            found.append(f"{who}: {'; '.join(sorted(result.messages))}")
    return found


def _plain(schema: Any) -> Any:
    """A schema without remarks, which the checker would print as warnings."""
    if isinstance(schema, dict):
        return {key: _plain(value) for key, value in schema.items() if key not in ("closedList", "contentMediaType")}
    return [_plain(one) for one in schema] if isinstance(schema, list) else schema


def narrowings(new: Schema, released: Schema) -> list[str]:
    """Where a JSON Schema accepts less than its released version did: lost words, tighter bounds, more required."""
    return sorted(dict.fromkeys(_narrowed(_Place(new, new), _Place(released, released), "")))


@dataclass(frozen=True, slots=True)
class _Place:
    """A schema within its file; a reference is looked up at once."""

    root: Schema
    schema: Any

    def at(self, schema: Any) -> _Place:
        if isinstance(schema, dict) and "$ref" in schema:
            return self.at(self.root["$defs"][schema["$ref"].rsplit("/", 1)[-1]])
        return _Place(self.root, schema if isinstance(schema, dict) else {})


def _narrowed(new: _Place, released: _Place, path: str) -> Iterator[str]:
    here = path or "the body"
    now, before = new.schema, released.schema
    if "enum" in now:
        lost = [str(word) for word in before.get("enum", ["any other text"]) if word not in now["enum"]]
        if lost:
            yield f"{here} loses {', '.join(lost)}"
    if "pattern" in now and now["pattern"] != before.get("pattern"):
        yield f"{here} must match {now['pattern']}, was {before.get('pattern', 'any')}"
    required = [name for name in now.get("required", ()) if name not in before.get("required", ())]
    if required:
        yield f"{here} requires {', '.join(required)}"
    for keys, sign in ((_LOWER_ONLY, 1), (_RAISE_ONLY, -1)):
        for key in keys:
            if key in now and (key not in before or (now[key] - before[key]) * sign > 0):
                yield f"{here} has {key} {now[key]}, was {before.get(key, 'without')}"
    for name, schema in before.get("properties", {}).items():
        if name in now.get("properties", {}):
            inner = new.at(now["properties"][name]), released.at(schema)
            yield from _narrowed(*inner, f"{path}.{name}".lstrip("."))
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if key in before and key in now:
            yield from _narrowed(new.at(now[key]), released.at(before[key]), path + mark)
    for mine, theirs in zip(now.get("anyOf", ()), before.get("anyOf", ()), strict=False):
        yield from _narrowed(new.at(mine), released.at(theirs), path)
