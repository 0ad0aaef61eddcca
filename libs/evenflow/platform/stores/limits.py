"""What every store backend accepts, checked in one place before any of them is touched.

A document or path that one backend takes and another refuses would make the profiles differ, so the narrowest rule of
all holds everywhere: JSON values with 64-bit integers and finite floats, text that is valid UTF-8, keys that MongoDB
can hold, paths that a file system and an object store spell alike.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from evenflow.core.errors import Refused

BODY_BYTES_MAX: Final = 8 * 2**20
ID_BYTES_MAX: Final = 512
DEPTH_MAX: Final = 32
SCAN_COUNT_MAX: Final = 10_000
BATCH_COUNT_MAX: Final = 10_000
FRAME_BYTES_MAX: Final = 16 * 2**20
OBJECT_BYTES_MAX: Final = 2**30
PATH_CHARACTERS_MAX: Final = 800
VERSION_TRIES_MAX: Final = 64

_INTEGER_MAX: Final = 2**63 - 1
_COLLECTION: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_SEGMENT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=+@:-]{0,199}")


def check_collection(name: str) -> None:
    """Refuse a collection name outside [a-z][a-z0-9_]{0,63}."""
    if not _COLLECTION.fullmatch(name):
        raise Refused(f"collection {name!r:.80} must match [a-z][a-z0-9_]{{0,63}}", collection=name[:80])


def check_id(id: str) -> None:
    """Refuse a document id that is empty, longer than 512 bytes, or holds NUL or broken Unicode."""
    size = _utf8_size(id)
    if size is None or not 0 < size <= ID_BYTES_MAX or "\0" in id:
        raise Refused(f"id {id!a:.80} must be 1 to {ID_BYTES_MAX} bytes of UTF-8 without NUL", id=ascii(id)[:80])


def encode_body(body: Mapping[str, Any]) -> str:
    """The body as compact JSON text; Refused, naming the path, when a backend could not keep it exactly."""
    if not isinstance(body, dict):
        raise Refused("a document must be a JSON object")
    _check_value(body, "", 0)
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    size = len(text) if text.isascii() else len(text.encode())
    if size > BODY_BYTES_MAX:
        raise Refused(f"document of {size} bytes is larger than {BODY_BYTES_MAX}; split it, or keep it as an object")
    return text


def decode_body(text: str) -> dict[str, Any]:
    """The inverse of `encode_body`."""
    body: dict[str, Any] = json.loads(text)
    return body


def check_page(prefix: str, after: str, limit: int) -> None:
    """Refuse a page of documents outside 1 … 10,000, or bounded by what can be no part of an id."""
    for name, text in (("prefix", prefix), ("after", after)):
        size = _utf8_size(text)
        if size is None or size > ID_BYTES_MAX or "\0" in text:
            raise Refused(f"{name} {text!a:.80} must be at most {ID_BYTES_MAX} bytes of UTF-8 without NUL")
    if not 1 <= limit <= SCAN_COUNT_MAX:
        raise Refused(f"limit {limit} must be 1 to {SCAN_COUNT_MAX}; read further pages with `after`")


def check_batch(count: int) -> None:
    """Refuse a batch of more than 10,000 documents."""
    if count > BATCH_COUNT_MAX:
        raise Refused(f"{count} documents in one batch; at most {BATCH_COUNT_MAX}")


def prefix_end(prefix: str) -> str | None:
    """The smallest text greater than every text with that prefix; None when there is no end."""
    for index in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[index]) + 1
        if 0xD800 <= code <= 0xDFFF:  # surrogates are no characters; step over them
            code = 0xE000
        if code <= 0x10FFFF:
            return prefix[:index] + chr(code)
    return None


def check_site(site: str) -> None:
    """Refuse a site's name that is no path segment."""
    if not _SEGMENT.fullmatch(site):
        raise Refused(f"site {site!a:.80} must match {_SEGMENT.pattern}", site=ascii(site)[:80])


def check_frame(frame: bytes) -> None:
    """Refuse a load frame above 16 MiB."""
    if len(frame) > FRAME_BYTES_MAX:
        raise Refused(f"load frame of {len(frame)} bytes is larger than {FRAME_BYTES_MAX}")


def check_path(path: str) -> None:
    """Refuse an object's path or key unless it is plain segments joined by '/'.

    A segment starts with a letter or digit, so nothing climbs out of the root and names starting with '_' stay the
    store's own.
    """
    if len(path) > PATH_CHARACTERS_MAX or not all(_SEGMENT.fullmatch(part) for part in path.split("/")):
        raise Refused(
            f"path {path!a:.120} must be segments of {_SEGMENT.pattern} joined by '/'", path=ascii(path)[:120]
        )


def check_prefix(prefix: str) -> None:
    """Refuse a prefix that is neither empty nor a path ending in '/'."""
    if prefix:
        if not prefix.endswith("/"):
            raise Refused(f"prefix {prefix!a:.120} must end with '/'")
        check_path(prefix[:-1])


def check_object(data: bytes) -> None:
    """Refuse an object above 1 GiB."""
    if len(data) > OBJECT_BYTES_MAX:
        raise Refused(f"object of {len(data)} bytes is larger than {OBJECT_BYTES_MAX}; write it in parts")


def _utf8_size(text: str) -> int | None:
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return None


def _check_value(value: object, path: str, depth: int) -> None:
    """Walk a JSON value; the path is built only on the way to an error's message."""
    if isinstance(value, dict | list | tuple):
        if depth >= DEPTH_MAX:
            raise Refused(f"{path[:80]}…: nested deeper than {DEPTH_MAX}")
        if isinstance(value, dict):
            for key, inner in value.items():
                _check_key(key, path)
                _check_value(inner, f"{path}.{key}" if path else key, depth + 1)
        else:
            for index, inner in enumerate(value):
                _check_value(inner, f"{path}[{index}]", depth + 1)
    else:
        problem = _scalar_problem(value)
        if problem:
            raise Refused(f"{path or 'document'}: {problem}")


def _check_key(key: object, path: str) -> None:
    if not isinstance(key, str) or key.startswith("$") or "\0" in key or _utf8_size(key) is None:
        raise Refused(f"{path or 'document'}: key {key!a:.80} must be text without leading '$' and NUL")


def _scalar_problem(value: object) -> str | None:
    if isinstance(value, str):
        return None if _utf8_size(value) is not None else "text is not valid Unicode"
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return None if -_INTEGER_MAX - 1 <= value <= _INTEGER_MAX else "integer does not fit 64 bits"
    if isinstance(value, float):
        return None if math.isfinite(value) else "number must be finite"
    return f"{type(value).__name__} is no JSON value"
