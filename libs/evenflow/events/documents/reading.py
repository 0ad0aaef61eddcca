"""Turn bytes into a document: JSON or YAML, strictly, within fixed bounds.

What comes out holds only None, bool, int, float, str, list and dict with text as keys. Everything that JSON and YAML
leave to chance is an error here: a key given twice, anchors, aliases, tags, bytes that are not UTF-8, nesting that
would break a stack, numbers too long to be meant. NaN and the infinities are read as numbers, so that the field they
stand in refuses them by name.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import yaml

from evenflow.core.errors import Refused
from evenflow.events.documents.quantities import LongNumber

BYTES_MAX: Final = 2**20
DEPTH_MAX: Final = 32
#: Longest number, in characters: 2**53 with all its places is a third of this.
NUMBER_TEXT_MAX: Final = 64
#: Most scalars, maps and lists of one document: a bound on memory that the size alone does not give.
NODES_MAX: Final = 200_000

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\Z")
#: A string, even one that never ends: each character is looked at once, whatever was sent.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
_WORDS: Final[dict[str, object]] = {
    "": None,
    "null": None,
    "true": True,
    "false": False,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "+Infinity": float("inf"),
    "-Infinity": float("-inf"),
}


class Unreadable(Refused):
    """The bytes are no document at all; `line` and `column` (from 1) say where, when that is known."""

    code = "unreadable"

    def __init__(self, source: str, problem: str, *, line: int | None = None, column: int | None = None) -> None:
        where = source if line is None else f"{source}:{line}:{column}"
        super().__init__(f"{where}: {problem}", source=source, line=line, column=column)
        self.source = source
        self.problem = problem
        self.line = line
        self.column = column


class _Broken(ValueError):
    """A problem found inside a hook of the JSON reader, before its place is known."""


def read_document(data: bytes | str, *, source: str) -> object:
    """Read a file that a person wrote: JSON, or YAML whose plain scalars mean what they mean in JSON.

    `source` names the file in errors. Raises Unreadable.
    """
    content = _decoded(data, source).removeprefix("\ufeff")
    if content.lstrip()[:1] in ("{", "["):
        try:
            return _parsed_json(content, source)
        except json.JSONDecodeError:
            pass  # A YAML flow map begins like JSON; YAML then says what is wrong, or that nothing is.
    return _parsed_yaml(content, source)


def read_json(data: bytes | str, *, source: str) -> object:
    """Read one JSON value from the wire. Raises Unreadable; never RecursionError, whatever the nesting."""
    content = _decoded(data, source)
    try:
        return _parsed_json(content, source)
    except json.JSONDecodeError as error:
        raise Unreadable(source, f"is not JSON: {error.msg}", line=error.lineno, column=error.colno) from None


def _decoded(data: bytes | str, source: str) -> str:
    if len(data) > BYTES_MAX:
        raise Unreadable(source, f"has {len(data)} bytes; at most {BYTES_MAX} are read")
    if isinstance(data, str):
        return data
    try:
        return bytes(data).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(source, f"is not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}") from None


# --- numbers ------------------------------------------------------------------------------------------------------


def _whole(digits: str) -> int | float:
    if len(digits) > NUMBER_TEXT_MAX:
        raise _Broken(f"a number has {len(digits)} characters; at most {NUMBER_TEXT_MAX} are read")
    value = int(digits)
    return -0.0 if not value and digits[0] == "-" else value


def _fraction(digits: str) -> float:
    if len(digits) > NUMBER_TEXT_MAX:
        raise _Broken(f"a number has {len(digits)} characters; at most {NUMBER_TEXT_MAX} are read")
    value = float(digits)
    # Up to 15 digits a float keeps every decimal; an exponent may still leave its range.
    if (len(digits) > 16 or not 1e-9 <= abs(value) <= 1e15) and not _keeps(value, digits):
        return LongNumber(digits)
    return value


def _keeps(value: float, digits: str) -> bool:
    """Whether the float says exactly what was written."""
    if value in (float("inf"), float("-inf")):
        return True  # Refused by its field as not finite.
    mantissa, _, exponent = digits.lower().partition("e")
    shown, _, shown_exponent = repr(value).lower().partition("e")
    return _digits(mantissa, exponent) == _digits(shown, shown_exponent)


def _digits(mantissa: str, exponent: str) -> tuple[str, int]:
    """Significant digits and the power of ten of their last one."""
    whole, _, rest = mantissa.lstrip("-").partition(".")
    power = int(exponent or "0") - len(rest)
    digits = (whole + rest).lstrip("0")
    kept = digits.rstrip("0")
    return (kept, power + len(digits) - len(kept)) if kept else ("", 0)


# --- JSON ---------------------------------------------------------------------------------------------------------


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Broken(f"the key {json.dumps(key[:64])} is given twice")
            seen.add(key)
    return result


# Made once: making a decoder costs about as much as reading a small document.
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_whole, parse_float=_fraction, parse_constant=_WORDS.__getitem__
)


def _parsed_json(content: str, source: str) -> object:
    if content.count("[") + content.count("{") > DEPTH_MAX:
        _check_depth(content, source)
    try:
        return _DECODER.decode(content)
    except _Broken as error:
        raise Unreadable(source, str(error)) from None


def _check_depth(content: str, source: str) -> None:
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub("", content)):
        if bracket.group() in "[{":
            depth += 1
            if depth > DEPTH_MAX:
                raise Unreadable(source, f"is nested more than {DEPTH_MAX} deep")
        else:
            depth -= 1


# --- YAML ---------------------------------------------------------------------------------------------------------


def _parsed_yaml(content: str, source: str) -> object:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Composer(source).compose(yaml.parse(content, Loader=loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = f"is not YAML: {error.problem or error.context or 'it can not be read'}"
        raise _at(source, problem, mark) from None
    except yaml.YAMLError as error:
        raise Unreadable(source, f"is not YAML: {str(error).splitlines()[0]}") from None
    except UnicodeEncodeError:
        raise Unreadable(source, "has half of a surrogate pair, which is no text") from None


def _at(source: str, problem: str, mark: Any) -> Unreadable:
    if mark is None:
        return Unreadable(source, problem)
    return Unreadable(source, problem, line=mark.line + 1, column=mark.column + 1)


_NO_KEY: Final = object()


class _Composer:
    """Builds the document out of YAML events with a stack of its own, so that depth is a number and not a crash."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._stack: list[dict[str, object] | list[object]] = []
        self._keys: list[object] = []
        self._result: object = _NO_KEY
        self._nodes = 0

    def compose(self, events: Any) -> object:
        """Build the one document of the stream."""
        for event in events:
            self._take(event)
        if self._result is _NO_KEY:
            raise Unreadable(self._source, "is empty")
        return self._result

    def _take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._refuse_extras(event)
            if self._awaits_key():
                self._set_key(event)
            else:
                self._put(self._scalar(event), event)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._refuse_extras(event)
            self._open({} if isinstance(event, yaml.MappingStartEvent) else [], event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._stack.pop()
            self._keys.pop()
        elif isinstance(event, yaml.AliasEvent):
            raise _at(self._source, "aliases (*name) are not allowed", event.start_mark)
        elif isinstance(event, yaml.DocumentStartEvent):
            if self._result is not _NO_KEY:
                raise _at(self._source, "holds more than one document", event.start_mark)
            if event.tags or event.version:
                raise _at(self._source, "directives (%) are not allowed", event.start_mark)

    def _refuse_extras(self, event: Any) -> None:
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise _at(self._source, f"has more than {NODES_MAX} values", event.start_mark)
        if event.anchor is not None:
            raise _at(self._source, "anchors (&name) are not allowed", event.start_mark)
        if event.tag is not None:
            raise _at(self._source, "tags (!name) are not allowed", event.start_mark)

    def _awaits_key(self) -> bool:
        return bool(self._stack) and isinstance(self._stack[-1], dict) and self._keys[-1] is _NO_KEY

    def _set_key(self, event: Any) -> None:
        key = str(event.value)
        if key in self._stack[-1]:
            raise _at(self._source, f"the key {json.dumps(key[:64])} is given twice", event.start_mark)
        self._keys[-1] = key

    def _open(self, value: dict[str, object] | list[object], event: Any) -> None:
        if self._awaits_key():
            raise _at(self._source, "a key must be text", event.start_mark)
        if len(self._stack) >= DEPTH_MAX:
            raise _at(self._source, f"is nested more than {DEPTH_MAX} deep", event.start_mark)
        self._put(value, event)
        self._stack.append(value)
        self._keys.append(_NO_KEY)

    def _put(self, value: object, event: Any) -> None:
        if not self._stack:
            self._result = value
            return
        holder = self._stack[-1]
        if isinstance(holder, list):
            holder.append(value)
        else:
            holder[str(self._keys[-1])] = value
            self._keys[-1] = _NO_KEY

    def _scalar(self, event: Any) -> object:
        written = str(event.value)
        if event.style:
            return written
        if written in _WORDS:
            return _WORDS[written]
        if written[0] not in "-0123456789":
            return written
        match = _NUMBER.match(written)
        if match is None:
            return written
        try:
            return _fraction(written) if match.group(1) or match.group(2) else _whole(written)
        except _Broken as error:
            raise _at(self._source, str(error), event.start_mark) from None
