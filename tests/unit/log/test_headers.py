"""Record headers as the file keeps them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.platform.broker.embedded.headers import decode_headers, encode_headers, headers_size

NAMES = st.one_of(st.sampled_from(["ce_id", "tenant", "50%", 'quoted"', "größe", "a\\b", ""]), st.text(max_size=8))
VALUES = st.one_of(st.none(), st.binary(max_size=20), st.sampled_from([b'"', b"\\", b"%s", b"%b", b"\x7f", b"\n"]))


def printable(name: str) -> bool:
    """Half a surrogate pair can't be encoded."""
    return not any(0xD800 <= ord(letter) < 0xE000 for letter in name)


@settings(max_examples=300)
@given(st.lists(st.tuples(NAMES.filter(printable), VALUES), max_size=6))
def test_headers_come_back_as_they_were(headers):
    """Proves that any names and values survive the file, and that the file is JSON for whoever reads it outside."""
    text = encode_headers(headers)
    assert decode_headers(text) == headers
    assert [name for name, _ in json.loads(text)] == [name for name, _ in headers]
    expected = sum(2 + len(name.encode()) + len(value or b"") for name, value in headers)
    assert headers_size(headers) == expected


@pytest.mark.parametrize(
    ("headers", "error"),
    [
        ([(b"name", b"v")], TypeError),
        ([(1, b"v")], TypeError),
        ([("name", "text")], TypeError),
        ([("name", 5)], TypeError),
        ([("\ud800", b"v")], UnicodeEncodeError),
    ],
)
def test_what_no_record_may_carry_is_refused(headers, error):
    """Proves that a wrong header is refused where it is sent, whatever was sent before."""
    for _ in range(2):
        with pytest.raises(error):
            headers_size(headers)
