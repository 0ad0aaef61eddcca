"""What each reader takes, as a plain value: the published schemas are derived from it, so that they can't drift.

Whoever makes a reader says its form beside it. A form says less than its reader where JSON Schema can't say it: byte
lengths, places of a number, whole bytes of a binary size, rules between entries of a list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

Reader = Callable[[object], Any]
R = TypeVar("R", bound=Reader)


@dataclass(frozen=True, slots=True)
class Truth:
    """True or false."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from `low` to `high`, never text."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Decimal:
    """A number or decimal text from `low` to `high` steps of 1/`scale`; only degrees carry a sign."""

    scale: int
    low: int
    high: int
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Money:
    """Decimal text with at most as many places as `scale` has zeros."""

    scale: int
    high: int


@dataclass(frozen=True, slots=True)
class Amount:
    """A whole number of the smallest unit, or decimal text with one of `units` behind it."""

    units: Mapping[str, int]
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Choice:
    """One word of a closed list."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """Text that matches a whole pattern, written in the part of regular expressions that every dialect shares."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Text:
    """Free text of at most `bytes_max` bytes; `lines` allows line ends and other control characters but NUL."""

    bytes_max: int
    lines: bool
    empty: bool


@dataclass(frozen=True, slots=True)
class Items:
    """A list of `count_min` to `count_max` entries of one kind."""

    entry: Reader
    count_min: int
    count_max: int


@dataclass(frozen=True, slots=True)
class Pairs:
    """A free map: names matching `key`, values of one kind."""

    key: str
    entry: Reader
    count_max: int


@dataclass(frozen=True, slots=True)
class Fields:
    """A map of known fields. `rules` are those between its fields, in JSON Schema's words."""

    readers: Mapping[str, Reader]
    required: tuple[str, ...] = ()
    rules: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Either:
    """Any one of several forms."""

    forms: tuple[Form, ...]


Form = Truth | Whole | Decimal | Money | Amount | Choice | Pattern | Text | Items | Pairs | Fields | Either

_FORMS: Final[dict[Reader, Form]] = {}


def described(reader: R, form: Form) -> R:
    """Keep the form of a reader; gives the reader back."""
    _FORMS[reader] = form
    return reader


def takes(form: Form) -> Callable[[R], R]:
    """Say the form of the reader that follows."""
    return lambda reader: described(reader, form)


def form_of(reader: Reader) -> Form:
    """What a reader takes. Raises TypeError for one whose maker did not say it."""
    form = _FORMS.get(reader)
    if form is None:
        raise TypeError(f"{reader!r} has no form: say it where the reader is made")
    return form
