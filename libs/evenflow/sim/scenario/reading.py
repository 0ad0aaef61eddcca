"""YAML and JSON files, strictly: plain scalars as JSON reads them, no duplicate key, no anchor, no tag.

A file that two readers could understand differently is refused, with the line.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import yaml
from yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from evenflow.core.errors import FieldRefused

FILE_BYTES_MAX: Final = 16 * 2**20
DEPTH_MAX: Final = 64

_NUMBER = re.compile(r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?\Z")
_WORDS: Final[dict[str, Any]] = {
    "null": None,
    "true": True,
    "false": False,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
    "": None,
}
#: Digits of the longest whole number that is read as a number; longer ones would be refused by every field anyway.
_DIGITS_MAX: Final = 400


def read_document(data: bytes) -> Any:
    """The one document of a YAML or JSON file. Raises FieldRefused with the line of what is wrong."""
    if len(data) > FILE_BYTES_MAX:
        raise FieldRefused("", f"the file is larger than {FILE_BYTES_MAX} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FieldRefused("", f"the file is not UTF-8: {error.reason} at byte {error.start}") from None
    try:
        return _Builder(list(yaml.parse(text, Loader=yaml.SafeLoader))).document()
    except yaml.YAMLError as error:
        raise FieldRefused("", " ".join(str(error).split())) from None
    except RecursionError:
        raise FieldRefused("", f"nested deeper than {DEPTH_MAX}") from None


class _Builder:
    """Builds plain values from the parser's events."""

    def __init__(self, events: list[Event]) -> None:
        self._events = events
        self._at = 0

    def document(self) -> Any:
        self._expect(StreamStartEvent)
        if isinstance(self._events[self._at], StreamEndEvent):
            raise FieldRefused("", "the file is empty")
        self._expect(DocumentStartEvent)
        value = self._value(0)
        self._expect(DocumentEndEvent)
        if not isinstance(self._events[self._at], StreamEndEvent):
            raise FieldRefused("", "the file holds more than one document")
        return value

    def _expect(self, kind: type[Event]) -> None:
        if not isinstance(self._events[self._at], kind):
            raise FieldRefused("", f"unexpected {type(self._events[self._at]).__name__}")
        self._at += 1

    def _value(self, depth: int) -> Any:
        event = self._events[self._at]
        self._at += 1
        if depth > DEPTH_MAX:
            raise self._wrong(event, f"nested deeper than {DEPTH_MAX}")
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None) is not None:
            raise self._wrong(event, "anchors and aliases are not allowed")
        if isinstance(event, ScalarEvent | CollectionStartEvent) and event.tag is not None:
            raise self._wrong(event, "tags are not allowed")
        if isinstance(event, ScalarEvent):
            return event.value if event.style is not None else _plain(event.value)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(depth)
        if isinstance(event, MappingStartEvent):
            return self._mapping(depth)
        raise self._wrong(event, "unexpected content")

    def _sequence(self, depth: int) -> list[Any]:
        found: list[Any] = []
        while not isinstance(self._events[self._at], SequenceEndEvent):
            found.append(self._value(depth + 1))
        self._at += 1
        return found

    def _mapping(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(self._events[self._at], MappingEndEvent):
            key = self._events[self._at]
            if not isinstance(key, ScalarEvent) or key.anchor is not None or key.tag is not None:
                raise self._wrong(key, "a key must be a plain text")
            self._at += 1
            if key.value in found:
                raise self._wrong(key, f"the key {key.value!r} stands twice")
            found[key.value] = self._value(depth + 1)
        self._at += 1
        return found

    @staticmethod
    def _wrong(event: Event, problem: str) -> FieldRefused:
        line = 0 if event.start_mark is None else event.start_mark.line + 1
        return FieldRefused("", f"line {line}: {problem}")


def _plain(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.match(text) and len(text) <= _DIGITS_MAX:
        return json.loads(text)
    return text
