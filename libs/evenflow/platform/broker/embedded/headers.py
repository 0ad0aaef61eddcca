"""Record headers: what they weigh, and how the file keeps them.

Writers use few sets of header names, each in one order. What follows from the names alone is worked out once for each
set, so that a record costs only its values.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from pydantic_core import to_json

Headers = Sequence[tuple[str, bytes | None]]

#: Varints of one header: the lengths of its name and its value.
HEADER_OVERHEAD_BYTES: Final = 2
#: Sets of names remembered; others are worked out again.
SHAPES_MAX: Final = 4_096
#: What JSON escapes in a string, and what is no ASCII.
_ESCAPED: Final = bytes([*range(0x20), *b'"\\', *range(0x7F, 0x100)])


class _Shape(NamedTuple):
    """`size` counts names and overhead; `template` is the JSON of the headers with a place for each value."""

    size: int
    template: bytes


@lru_cache(maxsize=SHAPES_MAX)
def _shape(names: tuple[str, ...]) -> _Shape:
    "".join(names)  # a TypeError for what is no string
    encoded = [name.encode() for name in names]
    pairs = [b'[%s,"%%b"]' % to_json(name).replace(b"%", b"%%") for name in names]
    return _Shape(sum(map(len, encoded)) + HEADER_OVERHEAD_BYTES * len(names), b"[%s]" % b",".join(pairs))


def headers_size(headers: Headers) -> int:
    """Bytes of headers within a record, a few bytes of varints apart.

    Raises TypeError when a name is no string or a value no bytes, UnicodeEncodeError for a name with half a surrogate
    pair.
    """
    if not headers:
        return 0
    names, contents = zip(*headers, strict=True)
    size = _shape(names).size
    if None in contents:  # rare
        contents = tuple(content for content in contents if content is not None)
    return size + len(b"".join(contents))


def encode_headers(headers: Headers) -> bytes:
    """Headers as JSON: a list of [name, value as Latin-1 or null]."""
    if not headers:
        return b"[]"
    names, contents = zip(*headers, strict=True)
    if None not in contents:
        values = b"".join(contents)
        if len(values.translate(None, _ESCAPED)) == len(values):
            return _shape(names).template % contents
    return to_json([(name, None if content is None else content.decode("latin-1")) for name, content in headers])


def decode_headers(text: bytes) -> list[tuple[str, bytes]]:
    """The reverse of `encode_headers`."""
    if text == b"[]":
        return []
    pairs: list[tuple[str, bytes]] = [(k, None if v is None else v.encode("latin-1")) for k, v in json.loads(text)]  # type: ignore[misc]  # a header may be null on the wire
    return pairs
