"""The hash chain of a queue's ledger: an altered byte anywhere breaks every later line.

hash = SHA-256(previous hash as text, newline, canonical JSON of every other field); the first line's previous hash is
sixty-four zeros.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

GENESIS: Final = "0" * 64
_LINKS: Final = frozenset({"previous", "hash"})


def line_hash(previous: str, fields: Mapping[str, Any]) -> str:
    """The hash of a line with these fields (its `previous` and `hash` are left out) after `previous`."""
    body = {name: value for name, value in fields.items() if name not in _LINKS}
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()


def first_break(lines: Iterable[Mapping[str, Any]]) -> int | None:
    """The number of the first line of one queue that does not follow from the one before; None when all do.

    Checks the hashes, that numbers count up from 1, and that each balance is the one before plus the amount.
    """
    previous, balance = GENESIS, 0
    for number, line in enumerate(lines, start=1):
        balance += int(line["amount_micro"])
        follows = (
            line["previous"] == previous
            and line["number"] == number
            and line["balance_micro"] == balance
            and line["hash"] == line_hash(previous, line)
        )
        if not follows:
            return number
        previous = line["hash"]
    return None
