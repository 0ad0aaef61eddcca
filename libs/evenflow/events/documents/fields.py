"""Readers of single fields: each takes what was written and gives an exact value, or says what is wrong with it.

A reader raises `FieldProblem`, which carries paths relative to the field it was given. `read_map` puts them together,
so that one pass finds every problem of a document. Nothing here knows a particular document; readers of numbers are in
`quantities`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, NoReturn, TypeVar

from evenflow.core.errors import FieldRefused
from evenflow.events.documents import forms

Reader = forms.Reader
Problem = tuple[str, str]
T = TypeVar("T")

#: How many problems of one document are listed; a document with more is wrong in a way that a longer list can't help.
PROBLEMS_MAX: Final = 100
#: Longest id, in characters.
ID_MAX: Final = 128
#: Most entries of any list of ids.
IDS_MAX: Final = 1_024

ID_GRAMMAR: Final = "[a-z0-9][a-z0-9._-]{0,127}"
_ID = re.compile(rf"{ID_GRAMMAR}\Z")
_LABEL_KEY = "[A-Za-z0-9][A-Za-z0-9._/-]{0,127}"
_VARIABLE = "[A-Za-z_][A-Za-z0-9_]{0,127}"
_PRINTABLE_KEY = re.compile(r"[A-Za-z0-9_$][A-Za-z0-9._$/-]{0,63}\Z")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_UNCARRIED = re.compile("[\x00\ud800-\udfff]")

LABELS_MAX: Final = 64
LABEL_VALUE_MAX: Final = 1_024


class FieldProblem(ValueError):
    """What is wrong with a field: (path below the field, problem) for each thing found, first found first."""

    def __init__(self, problem: str = "", *, below: list[Problem] | None = None) -> None:
        super().__init__(problem)
        self.problems: list[Problem] = [("", problem)] if below is None else below


def refuse(problem: str) -> NoReturn:
    """Say what is wrong with the field at hand."""
    raise FieldProblem(problem)


def key_text(key: object) -> str:
    """Print a field's name for a path: as it is when plain, quoted, escaped and cut when it could mislead."""
    if isinstance(key, str) and _PRINTABLE_KEY.match(key):
        return str(key)
    if not isinstance(key, str):
        return f"({type(key).__name__} as a name)"
    cut = key[:61]
    return json.dumps(cut) if len(cut) == len(key) else f'{json.dumps(cut)[:-1]}…"'


def join(path: str, below: str) -> str:
    """Join a path and what is below it: `a` and `b` give `a.b`, `a` and `[0]` give `a[0]`."""
    if not path or not below or below.startswith("["):
        return path + below
    return f"{path}.{below}"


def nature(value: object) -> str:
    """Name a value by its JSON kind, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    for kinds, name in (((int, float, Decimal), "a number"), ((str,), "text"), ((dict,), "a map"), ((list,), "a list")):
        if isinstance(value, kinds):
            return name
    return f"a {type(value).__name__}"


def read_map(value: object, readers: Mapping[str, Reader]) -> dict[str, Any]:
    """Read a map of known fields; every problem of every field is found before FieldProblem is raised."""
    if not isinstance(value, dict):
        refuse(f"must be a map of fields, not {nature(value)}")
    result: dict[str, Any] = {}
    problems: list[Problem] = []
    for key, item in value.items():
        reader = readers.get(key) if type(key) is str else None
        if reader is None:
            problems.append((key_text(key), _unknown(readers)))
        elif item is None:
            problems.append((key, "is null; leave the field out instead"))
        else:
            try:
                result[key] = reader(item)
            except FieldProblem as error:
                problems.extend((join(key, path), problem) for path, problem in error.problems)
        if len(problems) >= PROBLEMS_MAX:
            break
    if problems:
        raise FieldProblem(below=problems[:PROBLEMS_MAX])
    return result


def map_of(
    readers: Mapping[str, Reader], *required: str, rules: tuple[Mapping[str, Any], ...] = ()
) -> Callable[[Callable[[dict[str, Any]], T]], Callable[[object], T]]:
    """Make a reader of maps out of what builds a value from the fields that were given.

    `rules` say for the published schema what the builder refuses beyond its fields.
    """

    def decorate(build: Callable[[dict[str, Any]], T]) -> Callable[[object], T]:
        def read(value: object) -> T:
            given = read_map(value, readers)
            if required:
                require(given, *required)
            return build(given)

        return forms.described(read, forms.Fields(readers, required, rules))

    return decorate


def parsed(reader: Callable[[object], T], document: object) -> T:
    """Read a whole document; raises FieldRefused for its first problem."""
    try:
        return reader(document)
    except FieldProblem as error:
        raise FieldRefused(*error.problems[0]) from None


def problems_of(reader: Reader, document: object) -> list[Problem]:
    """List every problem of a document as (path, problem), at most PROBLEMS_MAX; empty when it is good."""
    try:
        reader(document)
    except FieldProblem as error:
        return error.problems
    return []


def _unknown(readers: Mapping[str, Reader]) -> str:
    known = ", ".join(sorted(readers))
    return f"is not a known field; known are {known}" if known else "is not a known field"


def require(fields: Mapping[str, Any], *names: str) -> None:
    """Refuse a map that lacks one of the named fields."""
    missing = [(name, "is required") for name in names if name not in fields]
    if missing:
        raise FieldProblem(below=missing)


def read_list(value: object, reader: Reader, count_max: int) -> tuple[Any, ...]:
    """Read a list of at most `count_max` entries."""
    if not isinstance(value, list):
        refuse(f"must be a list, not {nature(value)}")
    if len(value) > count_max:
        refuse(f"has {len(value)} entries; at most {count_max} are kept")
    result: list[Any] = []
    problems: list[Problem] = []
    for index, item in enumerate(value):
        try:
            result.append(reader(item))
        except FieldProblem as error:
            problems.extend((join(f"[{index}]", path), problem) for path, problem in error.problems)
            if len(problems) >= PROBLEMS_MAX:
                break
    if problems:
        raise FieldProblem(below=problems)
    return tuple(result)


def list_of(reader: Reader, count_max: int = IDS_MAX) -> Reader:
    """Make a reader of lists out of a reader of entries."""
    return forms.described(lambda value: read_list(value, reader, count_max), forms.Items(reader, 0, count_max))


# --- text ---------------------------------------------------------------------------------------------------------


@forms.takes(forms.Pattern(ID_GRAMMAR))
def read_id(value: object) -> str:
    """Read an id of the one grammar all ids share."""
    if type(value) is str and _ID.match(value):
        return value
    if not isinstance(value, str):
        refuse(f"must be an id as text, not {nature(value)}")
    if len(value) > ID_MAX:
        refuse(f"has {len(value)} characters; an id has at most {ID_MAX}")
    refuse("must be an id: small letters a-z, digits, '.', '_' and '-', beginning with a letter or digit")


@forms.takes(forms.Truth())
def read_bool(value: object) -> bool:
    """Read true or false, and nothing that merely looks so."""
    if isinstance(value, bool):
        return value
    refuse(f"must be true or false, not {nature(value)}")


def one_of(*choices: str) -> Reader:
    """Make a reader of one word out of a closed list."""
    known = frozenset(choices)
    listing = ", ".join(choices)

    def read(value: object) -> str:
        if isinstance(value, str) and value in known:
            return value
        refuse(f"must be one of {listing}")

    return forms.described(read, forms.Choice(choices))


def text(bytes_max: int, *, lines: bool = False, empty: bool = True) -> Reader:
    """Make a reader of text kept byte for byte, of at most `bytes_max` bytes in UTF-8.

    Control characters are refused, for one such name would break a log line or a terminal; with `lines` only NUL is,
    for scripts and settings carry line ends and no process can be given a NUL. Lone surrogates are no text at all.
    """
    forbidden = _UNCARRIED if lines else _CONTROL

    def read(value: object) -> str:
        if not isinstance(value, str):
            refuse(f"must be text, not {nature(value)}; quote it")
        size = len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
        if size > bytes_max:
            refuse(f"has {size} bytes; at most {bytes_max} are kept")
        found = forbidden.search(value)
        if found is not None:
            refuse(
                f"has the character U+{ord(found.group()):04X} at position {found.start()}, which is not allowed here"
            )
        if not empty and not value:
            refuse("must not be empty")
        return str(value)

    return forms.described(read, forms.Text(bytes_max, lines, empty))


def pairs(key_grammar: str, key_rule: str, reader: Reader, count_max: int) -> Reader:
    """Make a reader of free maps: name to value, sorted by name, so that order never tells two equal maps apart."""
    key_pattern = re.compile(rf"{key_grammar}\Z")

    def read(value: object) -> tuple[tuple[str, Any], ...]:
        if not isinstance(value, dict):
            refuse(f"must be a map, not {nature(value)}")
        if len(value) > count_max:
            refuse(f"has {len(value)} entries; at most {count_max} are kept")
        result: list[tuple[str, Any]] = []
        problems: list[Problem] = []
        for key, item in value.items():
            if not isinstance(key, str) or not key_pattern.match(key):
                problems.append((key_text(key), key_rule))
                continue
            try:
                result.append((str(key), reader(item)))
            except FieldProblem as error:
                problems.extend((join(key_text(key), path), problem) for path, problem in error.problems)
        if problems:
            raise FieldProblem(below=problems[:PROBLEMS_MAX])
        result.sort()
        return tuple(result)

    return forms.described(read, forms.Pairs(key_grammar, reader, count_max))


#: Labels: at most 64, names of at most 128 characters, values of at most 1,024 bytes.
read_labels: Final = pairs(
    _LABEL_KEY,
    "is no name of a label: letters, digits, '.', '_', '/', '-', at most 128, beginning with a letter or digit",
    text(LABEL_VALUE_MAX),
    LABELS_MAX,
)


def variables(reader: Reader, count_max: int) -> Reader:
    """Make a reader of environment variables."""
    rule = "is no name of a variable: letters, digits and '_', at most 128, not beginning with a digit"
    return pairs(_VARIABLE, rule, reader, count_max)
