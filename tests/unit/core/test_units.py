"""Exact quantities: text becomes an integer of one unit and back, or is refused; nothing is rounded in silence."""

from __future__ import annotations

from decimal import Decimal

import pytest

from evenflow.core import units


@pytest.mark.parametrize(
    ("value", "milli"),
    [
        (0, 0), ("0", 0), (1, 1_000), (0.1, 100), ("0.25", 250), ("0.001", 1), (Decimal("2.5"), 2_500),
        ("1.500000", 1_500), (1e3, 1_000_000), (units.QUANTITY_MAX // 1_000, units.QUANTITY_MAX // 1_000 * 1_000),
    ],
)  # fmt: skip
def test_a_decimal_is_read_exactly(value: object, milli: int) -> None:
    """Numbers and plain decimal text give the same integer; zeros behind the last kept place do no harm."""
    assert units.milli(value) == milli


@pytest.mark.parametrize(
    "value",
    [
        "", " 1", "1 ", "1\n", "+1", "-1", "01", "1.", ".5", "1e3", "0x10", "1_000", "\u0661", "NaN", "1.0000000001",
        float("nan"), float("inf"), -1, -0.0, 0.0001, True, None, [1], units.QUANTITY_MAX,
    ],
)  # fmt: skip
def test_what_is_no_exact_decimal_is_refused(value: object) -> None:
    """Signs, exponents in text, other digits, line ends, finer steps and what is too large are all ValueError."""
    with pytest.raises(ValueError, match=r"must|decimal places|larger"):
        units.milli(value)


@pytest.mark.parametrize(
    ("value", "size"),
    [(5, 5), ("5", 5), ("5B", 5), ("16GiB", 2**34), ("16 GiB", 2**34), ("1.5GB", 1_500_000_000), ("0.5KiB", 512)],
)
def test_a_size_gives_whole_bytes(value: object, size: int) -> None:
    """Binary and decimal units are told apart, and half a unit is fine where it is whole bytes."""
    assert units.size_bytes(value) == size


@pytest.mark.parametrize("value", ["16GiB\n", "16gib", "16G", "16 giga", "0.3B", "1.5kibit", "GiB", "16  GiB", "9PiB"])
def test_a_size_of_another_form_is_refused(value: str) -> None:
    """A wrong unit, a part of a byte, a line end behind it, or more than any quantity may be."""
    with pytest.raises(ValueError, match=r"must|decimal places|larger"):
        units.size_bytes(value)


def test_a_rate_counts_bits_a_second() -> None:
    """Rates are decimal only."""
    assert [units.rate_bits(text) for text in ("10Gbit/s", "1.5 kbit/s", "7")] == [10**10, 1_500, 7]
    with pytest.raises(ValueError, match="must be a rate"):
        units.rate_bits("10Gibit/s")
    with pytest.raises(ValueError, match="must be a rate"):
        units.rate_bits("10Gbit/s\n")


@pytest.mark.parametrize("number", [0, 1, 10, 250, 999, 1_000, 1_001, 1_500, 123_456, units.QUANTITY_MAX])
def test_a_decimal_that_was_written_is_read_back_the_same(number: int) -> None:
    """Writing loses nothing, in milli and in millionths."""
    for scale in (units.MILLI, units.MICRO):
        assert units.scaled(units.decimal_text(number, scale), scale) == number


def test_texts_for_people_are_the_shortest_exact_ones() -> None:
    """Money keeps two places at least, sizes take the largest unit that keeps them whole, a correction its sign."""
    assert [units.money_text(amount) for amount in (0, 8_000_000, 1_250_000, 1, -500_000)] == [
        "0.00", "8.00", "1.25", "0.000001", "-0.50",
    ]  # fmt: skip
    assert [units.size_text(size) for size in (0, 1, 1_024, 2**34, 2**34 + 1)] == [
        "0 B", "1 B", "1 KiB", "16 GiB", "17179869185 B",
    ]  # fmt: skip
    assert (units.cores_text(1_500), units.devices_text(250)) == ("1.5 cores", "0.25 devices")


@pytest.mark.parametrize(
    ("numerator", "denominator", "rounded"),
    [
        (1, 2, 0), (3, 2, 2), (5, 2, 2), (7, 2, 4), (1, 3, 0), (2, 3, 1), (-1, 2, 0), (-3, 2, -2), (-5, 2, -2),
        (10**30 + 4, 7, 10**30 // 7 + 1),
    ],
)  # fmt: skip
def test_an_amount_is_rounded_half_to_even(numerator: int, denominator: int, rounded: int) -> None:
    """Ties go to the even neighbour on both sides of zero; large numbers are exact."""
    assert units.divide_half_even(numerator, denominator) == rounded


def test_nothing_is_divided_by_zero() -> None:
    """A missing denominator is an error of the caller, not an amount."""
    with pytest.raises(ValueError, match="positive"):
        units.divide_half_even(1, 0)
