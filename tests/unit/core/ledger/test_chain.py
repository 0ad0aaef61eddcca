"""The hash chain of a ledger: whatever is altered, left out, added or moved shows at the first line that it touches."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from evenflow.core.ledger.chain import GENESIS, first_break, line_hash

Line = dict[str, Any]


def chain(*amounts: int) -> list[Line]:
    lines: list[Line] = []
    previous, balance = GENESIS, 0
    for number, amount in enumerate(amounts, start=1):
        balance += amount
        fields: Line = {"number": number, "amount_micro": amount, "balance_micro": balance, "note": "é"}
        hashed = line_hash(previous, fields)
        lines.append({**fields, "previous": previous, "hash": hashed})
        previous = hashed
    return lines


def test_an_untouched_chain_has_no_break() -> None:
    """Of any length, nothing at all included."""
    assert first_break([]) is None
    assert first_break(chain(5)) is None
    assert first_break(chain(5, -3, 0, 7)) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [("amount_micro", 4), ("balance_micro", 99), ("note", "e"), ("number", 3), ("hash", "0" * 64), ("previous", "x")],
)
def test_a_line_that_was_altered_is_found(field: str, value: object) -> None:
    """Whichever field it is, the line itself is named."""
    lines = chain(5, 6, 7)
    lines[1][field] = value
    assert first_break(lines) == 2


def test_lines_that_were_left_out_doubled_or_moved_are_found() -> None:
    """The break stands where the order first differs."""
    lines = chain(1, 2, 3, 4)
    assert first_break(lines[1:]) == 1
    assert first_break([lines[0], *lines[2:]]) == 2
    assert first_break([lines[0], lines[0], *lines[1:]]) == 2
    assert first_break([lines[1], lines[0], *lines[2:]]) == 1


def test_a_line_made_anew_does_not_heal_the_chain() -> None:
    """Who alters a line and its hash is found at the next one."""
    lines = copy.deepcopy(chain(5, 6, 7))
    lines[1]["note"] = "forged"
    lines[1]["hash"] = line_hash(lines[1]["previous"], lines[1])
    assert first_break(lines) == 3


def test_the_hash_covers_names_and_not_their_order() -> None:
    """The same fields in another order are the same line; a renamed field is another."""
    assert line_hash(GENESIS, {"a": 1, "b": 2}) == line_hash(GENESIS, {"b": 2, "a": 1})
    assert line_hash(GENESIS, {"a": 1}) != line_hash(GENESIS, {"b": 1})
    assert line_hash(GENESIS, {"a": 1}) != line_hash("1" + GENESIS[1:], {"a": 1})
