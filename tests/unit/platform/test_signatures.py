"""Signatures and tags cover every byte and field, and nothing can be shifted between them."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.core.errors import Refused
from evenflow.platform.security.canonical import SignedFields, canonical_form
from evenflow.platform.security.identity import key_from_seed
from evenflow.platform.security.signatures import (
    derive_session_key,
    session_tag,
    sign_receipt,
    verify_receipt,
    verify_tag,
)

KEY = key_from_seed("n1")
FIELDS = SignedFields("n1", "s1", 7, "attempt.reclaimed", "acme", "t1", 2, 0, 5)
VALUE = b'{"task":"t1"}'
SESSION_KEY = derive_session_key(b"k" * 32, node="n1", session="s1")

_IDS = st.text("abc0123:\n/|", max_size=5)
_NUMBERS = st.integers(0, 120)
_FIELDS = st.builds(SignedFields, _IDS, _IDS, _NUMBERS, _IDS, _IDS, _IDS, _NUMBERS, _NUMBERS, _NUMBERS)
_VALUES = st.binary(max_size=4)


def _with_other(name: str) -> SignedFields:
    other: Any = 9 if isinstance(getattr(FIELDS, name), int) else "x"
    return dataclasses.replace(FIELDS, **{name: other})


NAMES = [field.name for field in dataclasses.fields(FIELDS)]


def test_a_receipt_verifies_as_it_was_signed() -> None:
    """64 bytes, the same for the same input."""
    signature = sign_receipt(KEY, VALUE, FIELDS)
    assert len(signature) == 64
    assert signature == sign_receipt(KEY, VALUE, FIELDS)
    assert verify_receipt(KEY.public_key(), VALUE, FIELDS, signature)


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_field_breaks_signature_and_tag(name: str) -> None:
    """Each of the nine fields is covered."""
    other = _with_other(name)
    assert not verify_receipt(KEY.public_key(), VALUE, other, sign_receipt(KEY, VALUE, FIELDS))
    assert not verify_tag(SESSION_KEY, VALUE, other, session_tag(SESSION_KEY, VALUE, FIELDS))


def test_a_changed_value_or_key_breaks_signature_and_tag() -> None:
    """Even white space that means nothing in JSON counts; another node's key does not do."""
    signature, tag = sign_receipt(KEY, VALUE, FIELDS), session_tag(SESSION_KEY, VALUE, FIELDS)
    for value in (VALUE + b" ", b"", VALUE[:-1], VALUE.replace(b"t1", b"t2")):
        assert not verify_receipt(KEY.public_key(), value, FIELDS, signature)
        assert not verify_tag(SESSION_KEY, value, FIELDS, tag)
    assert not verify_receipt(key_from_seed("n2").public_key(), VALUE, FIELDS, signature)
    assert not verify_tag(derive_session_key(b"k" * 32, node="n1", session="s2"), VALUE, FIELDS, tag)


@pytest.mark.parametrize("signature", [b"", b"x", b"\0" * 64, b"\0" * 65])
def test_no_signature_is_no_receipt(signature: bytes) -> None:
    """Empty, short, long and zero signatures and tags are simply wrong."""
    assert not verify_receipt(KEY.public_key(), VALUE, FIELDS, signature)
    assert not verify_tag(SESSION_KEY, VALUE, FIELDS, signature)


def test_a_flipped_bit_in_any_byte_of_a_signature_is_noticed() -> None:
    """One in each of a signature's 64 bytes, and all 128 of a tag."""
    signature, tag = sign_receipt(KEY, VALUE, FIELDS), session_tag(SESSION_KEY, VALUE, FIELDS)
    for bit in range(3, 512, 8):
        flipped = bytearray(signature)
        flipped[bit // 8] ^= 1 << bit % 8
        assert not verify_receipt(KEY.public_key(), VALUE, FIELDS, bytes(flipped))
    for bit in range(128):
        flipped = bytearray(tag)
        flipped[bit // 8] ^= 1 << bit % 8
        assert not verify_tag(SESSION_KEY, VALUE, FIELDS, bytes(flipped))


@given(_VALUES, _FIELDS, _VALUES, _FIELDS)
@settings(max_examples=40)
def test_different_inputs_have_different_forms(
    value: bytes, fields: SignedFields, other_value: bytes, other_fields: SignedFields
) -> None:
    """The canonical form is injective, separators inside the texts included."""
    same = (value, fields) == (other_value, other_fields)
    assert (canonical_form("p", value, fields) == canonical_form("p", other_value, other_fields)) == same


@given(st.text("ab1:", min_size=0, max_size=12), st.integers(0, 12), st.integers(0, 12))
def test_moving_the_border_between_two_fields_changes_the_form(text: str, first: int, second: int) -> None:
    """The same characters cut at two places between tenant and task never sign alike."""
    first, second = min(first, len(text)), min(second, len(text))
    forms = [
        canonical_form("p", b"", dataclasses.replace(FIELDS, tenant=text[:cut], task=text[cut:]))
        for cut in (first, second)
    ]
    assert (forms[0] == forms[1]) == (first == second)


def test_the_form_is_fixed_for_ever() -> None:
    """Kept receipts must verify after years, so the bytes are written down here."""
    assert canonical_form("evenflow-receipt-1", b"{}", FIELDS) == (
        b"evenflow-receipt-1\n2:n12:s117:attempt.reclaimed4:acme2:t17;2;0;5;2:{}"
    )
    assert sign_receipt(KEY, b"{}", FIELDS).hex().startswith("c0cd1a27c0f2bda889a1533ccc5269b3")


def test_a_receipts_signature_is_no_telemetry_tag_nor_the_reverse() -> None:
    """The purpose is part of the form."""
    assert canonical_form("a", VALUE, FIELDS) != canonical_form("b", VALUE, FIELDS)


@pytest.mark.parametrize(
    "fields",
    [
        SignedFields("nö", "s", 1, "t"),
        SignedFields("n\ud800", "s", 1, "t"),
        SignedFields("n" * 3000, "s", 1, "t"),
        SignedFields("n", "s", 1.5, "t"),  # type: ignore[arg-type]  # a caller without types
        SignedFields("n", "s", "1", "t"),  # type: ignore[arg-type]  # a caller without types
    ],
    ids=["letter", "surrogate", "long", "fraction", "text"],
)
def test_fields_without_a_canonical_form_are_refused_when_signing_and_wrong_when_verifying(
    fields: SignedFields,
) -> None:
    """Signing is our own mistake and raises; verifying meets anybody's bytes and does not."""
    with pytest.raises(Refused):
        sign_receipt(KEY, VALUE, fields)
    assert not verify_receipt(KEY.public_key(), VALUE, fields, b"\0" * 64)
    assert not verify_tag(SESSION_KEY, VALUE, fields, b"\0" * 16)


def test_session_keys_differ_by_secret_node_and_session_and_their_border() -> None:
    """Any gateway with the secret derives the same key; nothing else gives it."""
    keys = [
        derive_session_key(secret, node=node, session=session)
        for secret in (b"k" * 32, b"l" * 32)
        for node, session in (("n1", "s"), ("n", "1s"), ("n1", "t"))
    ]
    assert len({*keys}) == len(keys)
    assert derive_session_key(b"k" * 32, node="n1", session="s") == keys[0]
    with pytest.raises(Refused):
        derive_session_key(b"short", node="n1", session="s")


def test_a_tag_takes_some_microseconds_at_most() -> None:
    """The telemetry path depends on it; the best of many short runs is held to five times what it takes when quiet."""
    value = b"x" * 300
    best = min(_tag_us(value) for _ in range(20))
    assert best < 15, f"{best:.1f} µs"


def _tag_us(value: bytes) -> float:
    start = time.perf_counter_ns()
    for _ in range(20):
        session_tag(SESSION_KEY, value, FIELDS)
    return (time.perf_counter_ns() - start) / 20_000
