"""The hash that chains a queue's ledger lines, worked out anew from a line's bytes."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def line_hash(value: bytes) -> str:
    """SHA-256, in hexadecimal, over the previous hash and the canonical JSON of every other field of a line."""
    fields: dict[str, Any] = json.loads(value)
    fields.pop("hash", None)
    previous = str(fields.pop("previous", ""))
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(previous.encode() + text.encode()).hexdigest()
