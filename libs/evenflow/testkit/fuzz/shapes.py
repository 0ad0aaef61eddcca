"""From a JSON Schema to values: a strategy for what a schema allows, with names that mean something in the world.

Only what our own schemas use is understood. A value may still break a rule that a schema can't say: that is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from evenflow.core.units import QUANTITY_MAX

Schema = Mapping[str, Any]
Strategy = SearchStrategy[Any]

#: Strings without a pattern are seldom longer than this.
TEXT_MAX: Final = 24
ITEMS_MAX: Final = 3
DEPTH_MAX: Final = 5
_SMALL: Final = 4

_ANYTHING: Final[Strategy] = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**53 + 1) | st.text(max_size=TEXT_MAX) | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=ITEMS_MAX) | st.dictionaries(st.text(max_size=8), inner, max_size=ITEMS_MAX),
    max_leaves=6,
)


class Shapes:
    """Strategies for the schemas of one document; `known` gives values by field name that are preferred."""

    def __init__(self, root: Schema, known: Mapping[str, Sequence[Any]]) -> None:
        self._root = root
        self._known = known
        self._made: dict[tuple[str, str], Strategy] = {}

    def of(self, schema: Schema, name: str = "", depth: int = 0) -> Strategy:
        """Values that the schema allows; `name` is the field that holds them."""
        if "$ref" in schema:
            reference = str(schema["$ref"])
            if depth > DEPTH_MAX:
                return st.none()
            if (reference, name) not in self._made:
                self._made[reference, name] = self.of(self._found(reference), name, depth + 1)
            return self._made[reference, name]
        plain = self._plain(schema, name, depth)
        preferred = self._known.get(name)
        if preferred and schema.get("type") not in ("object", "array"):
            return st.one_of(st.sampled_from(preferred), st.sampled_from(preferred), plain)
        return plain

    def _found(self, reference: str) -> Schema:
        found: Any = self._root
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]
        return dict(found)

    def _plain(self, schema: Schema, name: str, depth: int) -> Strategy:
        if "const" in schema:
            return st.just(schema["const"])
        if "enum" in schema:
            return st.sampled_from(list(schema["enum"]))
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                return st.one_of([self.of(one, name, depth) for one in schema[choice]])
        kind = schema.get("type")
        if isinstance(kind, list):
            return st.one_of([self._plain({**schema, "type": one}, name, depth) for one in kind])
        made: dict[str, Callable[[], Strategy]] = {
            "object": lambda: self._object(schema, depth),
            "array": lambda: self._array(schema, name, depth),
            "string": lambda: _text(schema),
            "integer": lambda: _integer(schema),
            "number": lambda: _number(schema),
            "boolean": st.booleans,
            "null": st.none,
        }
        return made[kind]() if kind in made else _ANYTHING

    def _array(self, schema: Schema, name: str, depth: int) -> Strategy:
        least = int(schema.get("minItems", 0))
        most = min(int(schema.get("maxItems", ITEMS_MAX)), max(least, ITEMS_MAX))
        inner = self.of(schema.get("items", {}), name.removesuffix("s"), depth + 1)
        return st.lists(inner, min_size=least, max_size=most)

    def _object(self, schema: Schema, depth: int) -> Strategy:
        properties: Mapping[str, Schema] = schema.get("properties", {})
        if not properties:
            values = schema.get("additionalProperties", {})
            inner = self.of(values if isinstance(values, Mapping) else {}, "", depth + 1)
            names = _text(schema.get("propertyNames", {}))
            return st.dictionaries(names, inner, max_size=ITEMS_MAX)
        required = schema.get("required", ())
        fields = {name: self.of(each, name, depth + 1) for name, each in properties.items()}
        must = {name: each for name, each in fields.items() if name in required}
        may = {name: each for name, each in fields.items() if name not in required}
        if len(may) <= _SMALL:
            return st.fixed_dictionaries(must, optional=may)
        # Few optional fields at a time: with many of them nearly every value would break some rule between two.
        ready = [name for name in may if "x-readiness" not in properties[name]]
        some = st.lists(st.sampled_from([*ready, *ready, *ready, *may]), unique=True, max_size=_SMALL)
        return some.flatmap(lambda names: st.fixed_dictionaries({**must, **{name: may[name] for name in names}}))


def _text(schema: Schema) -> Strategy:
    most = min(int(schema.get("maxLength", TEXT_MAX)), TEXT_MAX)
    least = int(schema.get("minLength", 0))
    if "pattern" in schema:
        return st.from_regex(str(schema["pattern"]).removesuffix("$") + r"\Z", fullmatch=True)
    return st.text(min_size=least, max_size=max(most, least))


def _number(schema: Schema) -> Strategy:
    low, high = float(schema.get("minimum", -1e15)), float(schema.get("maximum", 1e15))
    return st.floats(low, high, allow_nan=False) | st.integers(0, 100).filter(lambda n: low <= n <= high)


def _integer(schema: Schema) -> Strategy:
    low = int(schema.get("minimum", -QUANTITY_MAX))
    high = int(schema.get("maximum", QUANTITY_MAX))
    edges = [edge for edge in (low, high, 0, 1, 1_000) if low <= edge <= high]
    near = st.integers(max(low, min(0, high)), min(high, max(low, 0) + _SMALL))
    return st.one_of(near, st.sampled_from(edges), st.integers(low, high))
