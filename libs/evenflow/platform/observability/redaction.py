"""What a log line may hold: no secrets, and no more than a line's worth.

A value is hidden by its key's name, at any depth, and inside text where it has a form that is always secret: the
password of a URL, a bearer token, an access or join token, a private key in PEM form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

HIDDEN: Final = "[hidden]"
TEXT_CHARACTERS_MAX: Final = 2_000
ITEM_COUNT_MAX: Final = 50
DEPTH_MAX: Final = 4

_SECRET_KEY: Final = re.compile(
    r"passw|secret|credential|authorization|cookie|api[_-]?key|private[_-]?key|session[_-]?key|access[_-]?key"
    r"|(^|[_-])(token|passphrase|jwt|dsn)s?($|[_-](?!count|id))",
    re.IGNORECASE,
)
_SECRET_TEXT: Final = re.compile(
    r"(?P<before>://[^\s/@:]*:)[^\s/@]+(?=@)"
    r"|(?P<bearer>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}"
    r"|(?P<token>\bev[jt]_[0-9a-f]{16}_)[0-9a-f]+"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_TOKEN: Final = re.compile(r"\b(ev[jt]_[0-9a-f]{16}_)[0-9a-f]+", re.IGNORECASE)


def redact(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as plain JSON values, secrets hidden, long text cut, deep or wide values shortened."""
    return {str(key): _value(str(key), value, 0) for key, value in fields.items()}


def redact_text(text: str) -> str:
    """Text with what looks like a secret hidden, cut to 2,000 characters."""
    # Cut generously before the search, so that its cost is bounded; finally after it.
    text = text[: 4 * TEXT_CHARACTERS_MAX]
    if "://" in text or "_" in text or " " in text:
        text = _SECRET_TEXT.sub(_hide, text)
    if len(text) > TEXT_CHARACTERS_MAX:
        return f"{text[:TEXT_CHARACTERS_MAX]}…"
    return text


def hide_tokens(text: str) -> str:
    """Text of people, as it was written but for the secrets of access and join tokens."""
    return _TOKEN.sub(rf"\1{HIDDEN}", text)


def is_secret_key(key: str) -> bool:
    """True when a field of that name is never shown."""
    return _SECRET_KEY.search(key) is not None


def _hide(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return f"{groups['before'] or groups['bearer'] or groups['token'] or ''}{HIDDEN}"


def _value(key: str, value: Any, depth: int) -> Any:
    if key and is_secret_key(key):
        return HIDDEN
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"[{len(value)} bytes]"
    if isinstance(value, Mapping) and depth < DEPTH_MAX:
        shown = {str(name): _value(str(name), inner, depth + 1) for name, inner in list(value.items())[:ITEM_COUNT_MAX]}
        if len(value) > ITEM_COUNT_MAX:
            shown["…"] = f"{len(value) - ITEM_COUNT_MAX} more"
        return shown
    if isinstance(value, list | tuple) and depth < DEPTH_MAX:
        items = [_value("", inner, depth + 1) for inner in value[:ITEM_COUNT_MAX]]
        return [*items, f"… {len(value) - ITEM_COUNT_MAX} more"] if len(value) > ITEM_COUNT_MAX else items
    if isinstance(value, Mapping | list | tuple):
        return f"[{type(value).__name__} of {len(value)}]"
    return redact_text(str(value))
