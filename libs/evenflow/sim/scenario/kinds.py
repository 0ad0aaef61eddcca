"""Kinds of values in a scenario file. Each reads into the product's units or refuses with the field's path."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from evenflow.core import units
from evenflow.core.errors import FieldRefused
from evenflow.sim.scenario.schema import LIST_MARK, Form, Kind, Reading

#: Longest list in a file: steps, nodes, expectations.
LIST_MAX: Final = 100_000
TEXT_MAX: Final = 65_536
SIGNED_SECONDS_MAX: Final = 10**9

_ID = re.compile(r"^[a-z0-9][a-z0-9._-]{0,127}\Z")
_TEMPLATE = re.compile(r"^(?:[a-z0-9]|\{i\})(?:[a-z0-9._-]|\{i\}){0,127}\Z")
_PATTERN = re.compile(r"^[a-z0-9*?][a-z0-9._*?/-]{0,255}\Z")
_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?(Z|[+-]\d\d:\d\d)\Z")


def _kind(name: str, convert: Callable[[object], Any]) -> Kind:
    def read(value: object, path: str, _reading: Reading) -> Any:
        try:
            return convert(value)
        except ValueError as error:
            raise FieldRefused(path, str(error)) from None

    return Kind(name, read)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")
    if len(value) > TEXT_MAX:
        raise ValueError(f"is longer than {TEXT_MAX} characters")
    return value


def _matching(pattern: re.Pattern[str], wanted: str) -> Callable[[object], str]:
    def convert(value: object) -> str:
        if not isinstance(value, str) or not pattern.match(value):
            raise ValueError(f"must be {wanted}")
        return value

    return convert


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _stamp(value: object) -> int:
    if not isinstance(value, str) or not _STAMP.match(value):
        raise ValueError("must be a moment such as 2026-03-28T23:00:00Z")
    moment = datetime.datetime.fromisoformat(value)
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return (moment - epoch) // datetime.timedelta(milliseconds=1)


def _signed_seconds(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > SIGNED_SECONDS_MAX:
        raise ValueError("must be a number of seconds, negative for the past")
    return -units.milliseconds(-value) if value < 0 else units.milliseconds(value)


def _number(value: object) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) == float("inf"):  # noqa: PLR0124  only NaN differs from itself
        raise ValueError("must be a finite number")
    return value


def integer(low: int, high: int) -> Kind:
    """A whole number from `low` to `high`."""

    def convert(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return value

    return _kind("whole number", convert)


def choice(*names: str) -> Kind:
    """One of a closed list of texts."""

    def convert(value: object) -> str:
        if value not in names:
            raise ValueError(f"must be one of {', '.join(names)}")
        return str(value)

    return _kind(" | ".join(names), convert)


def either(*kinds: Kind) -> Kind:
    """The first of several kinds that reads the value."""

    def read(value: object, path: str, reading: Reading) -> Any:
        problems: list[str] = []
        for kind in kinds:
            try:
                return kind.read(value, path, reading)
            except FieldRefused as refusal:
                problems.append(refusal.problem if refusal.path == path else str(refusal))
        raise FieldRefused(path, ", or ".join(problems))

    return Kind(" | ".join(kind.name for kind in kinds), read, next((kind.form for kind in kinds if kind.form), None))


def list_of(kind: Kind, *, least: int = 0, most: int = LIST_MAX) -> Kind:
    """A list of values of one kind."""

    def read(value: object, path: str, reading: Reading) -> list[Any]:
        if not isinstance(value, list):
            raise FieldRefused(path, f"must be a list of {kind.name}")
        if not least <= len(value) <= most:
            raise FieldRefused(path, f"must have {least} to {most} entries")
        return [kind.read(entry, f"{path}[{number}]", reading) for number, entry in enumerate(value)]

    return Kind(f"list of {kind.name}", read, kind.form)


def map_of(kind: Kind) -> Kind:
    """A mapping from texts to values of one kind."""

    def read(value: object, path: str, reading: Reading) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise FieldRefused(path, "must be a mapping")
        return {str(name): kind.read(entry, f"{path}.{name}", reading) for name, entry in value.items()}

    return Kind(f"map of {kind.name}", read)


def one_or_more(kind: Kind) -> Kind:
    """One value, or a list of them; read as a list."""

    def read(value: object, path: str, reading: Reading) -> list[Any]:
        return many.read(value, path, reading) if isinstance(value, list) else [kind.read(value, path, reading)]

    many = list_of(kind, least=1)
    return Kind(f"{kind.name}, or a list", read)


def range_of(kind: Kind) -> Kind:
    """`{min, max}`, either may be left out, or one bare value that is both; read as (min, max)."""

    def read(value: object, path: str, reading: Reading) -> tuple[Any, Any]:
        if not isinstance(value, Mapping):
            exact = kind.read(value, path, reading)
            return exact, exact
        for name in value:
            if name not in ("min", "max"):
                raise FieldRefused(f"{path}.{name}", "unknown field; a range knows min, max")
        found = {name: kind.read(entry, f"{path}.{name}", reading) for name, entry in value.items()}
        return found.get("min"), found.get("max")

    return Kind(f"range of {kind.name}", read)


def _raw(value: object, _path: str, _reading: Reading) -> object:
    return value


def _raw_map(value: object, path: str, _reading: Reading) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise FieldRefused(path, "must be a mapping")
    return dict(value)


ANYTHING: Final = Kind("anything", _raw)
ANY_MAP: Final = Kind("mapping", _raw_map)
TEXT: Final = _kind("text", _text)
ID: Final = _kind("id", _matching(_ID, "an id: [a-z0-9][a-z0-9._-]{0,127}"))
ID_TEMPLATE: Final = _kind("id, {i} numbers it", _matching(_TEMPLATE, "an id, with {i} where the number goes"))
PATTERN: Final = _kind("id or pattern", _matching(_PATTERN, "an id, or a pattern with * and ?"))
BOOLEAN: Final = _kind("true | false", _boolean)
SECONDS: Final = _kind("seconds", units.milliseconds)
SIGNED_SECONDS: Final = _kind("seconds, signed", _signed_seconds)
MILLI: Final = _kind("decimal, three places", units.milli)
NUMBER: Final = _kind("number", _number)
SIZE: Final = _kind("size", units.size_bytes)
RATE: Final = _kind("rate", units.rate_bits)
MONEY: Final = _kind("money", units.micro)
MOMENT: Final = _kind("moment", _stamp)
COUNT: Final = integer(0, units.QUANTITY_MAX)


def form_list(form: Form) -> Kind:
    """A list of mappings of one form."""
    return list_of(form.kind())


def path_of_list(name: str, number: int) -> str:
    """How an entry of a list is named in messages: `steps[3]`."""
    return f"{name}{LIST_MARK[0]}{number}{LIST_MARK[1]}"
