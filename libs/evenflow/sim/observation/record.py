"""One record of the log as the observer sees it, and as a line of `events.jsonl`."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from typing import Any, Final

from pydantic_core import from_json

TYPE_HEADER: Final = "ce_type"
ID_HEADER: Final = "ce_id"


@dataclass(slots=True)
class Seen:
    """A record in the order of the log. `t_ms` counts from the start of the run."""

    t_ms: int
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    type: str = field(init=False)
    id: str = field(init=False)
    _body: Any = field(init=False, default=None)
    _read: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.type = self.header(TYPE_HEADER)
        self.id = self.header(ID_HEADER)

    def header(self, name: str) -> str:
        """The last header of that name as text; empty when absent."""
        found = b""
        for header, value in self.headers:
            if header == name:
                found = value or b""
        return found.decode("utf-8", "replace")

    @property
    def key_text(self) -> str:
        """The key as text."""
        return "" if self.key is None else self.key.decode("utf-8", "replace")

    @property
    def body(self) -> Mapping[str, Any]:
        """The value as a mapping; empty when it is none."""
        if not self._read:
            self._read = True
            self._body = _json_of(self.value)
        return self._body if isinstance(self._body, Mapping) else {}

    def line(self) -> bytes:
        """The line of `events.jsonl`. A value that is a line of JSON stands in it as its own bytes."""
        value = self.value
        names = dict(self.headers)
        plain = value and value[:1] in b"{[" and b"\n" not in value and len(names) == len(self.headers)
        self._read or self.body  # noqa: B018  reads the value once
        if not plain or self._body is _NOT_JSON or None in names.values():
            return json_line(self.row()).encode() + b"\n"
        try:
            key = "null" if self.key is None else encode_basestring(self.key.decode())
            headers = ",".join(
                [
                    f"{encode_basestring(name)}:{encode_basestring((said or b'').decode())}"
                    for name, said in names.items()
                ]
            )
        except UnicodeDecodeError:
            return json_line(self.row()).encode() + b"\n"
        head = (
            f'{{"t":{self.t_ms / 1000!r},"topic":"{self.topic}","partition":{self.partition},"offset":{self.offset},'
            f'"key":{key},"type":{encode_basestring(self.type)},"headers":{{{headers}}},"value":'
        )
        return b"".join((head.encode(), value or b"", b"}\n"))

    def row(self) -> dict[str, Any]:
        """The same as a mapping; bytes that are not JSON or text are base64."""
        self._read or self.body  # noqa: B018  reads the value once
        return {
            "t": self.t_ms / 1000,
            "topic": self.topic,
            "partition": self.partition,
            "offset": self.offset,
            "key": None if self.key is None else _text_or_base64(self.key),
            "type": self.type,
            "headers": {name: None if value is None else _text_or_base64(value) for name, value in self.headers},
            "value": self._value_row(),
        }

    def _value_row(self) -> Any:
        if self.value is None:
            return None
        if self._body is not _NOT_JSON:
            return self._body
        return _text_or_base64(self.value)


class _NotJson:
    """Marks a value that is not JSON."""


_NOT_JSON: Final = _NotJson()


def _json_of(value: bytes | None) -> Any:
    if not value:
        return _NOT_JSON
    try:
        return from_json(value, cache_strings="keys")
    except ValueError:
        pass  # half surrogates and other encodings than UTF-8 are for the patient reader
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _text_or_base64(value: bytes) -> Any:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def json_line(row: Mapping[str, Any]) -> str:
    """A row as one line: keys in their order, text as it is, numbers as JSON writes them."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))
