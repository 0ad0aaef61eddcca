"""Readers of numbers: decimals, sizes, rates, money and degrees become exact integers of one unit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from decimal import Decimal
from typing import Final, Self

from evenflow.core import units
from evenflow.events.documents import forms
from evenflow.events.documents.fields import FieldProblem, Reader, nature, refuse

#: Longest text of a quantity, in characters: 2**53 with its places and unit is far below.
QUANTITY_TEXT_MAX: Final = 64
#: Floats from here on are read digit by digit.
FAST_BELOW: Final = 1e9


class LongNumber(float):
    """A number with more digits than a float keeps. It prints as it was written, and every field refuses it."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        """Keep the nearest float for those who only print, and the text for the doors."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __repr__(self) -> str:
        """Print the number as it was written."""
        return self.text


def integer(low: int, high: int) -> Reader:
    """Make a reader of whole numbers from `low` to `high`. Text is refused: a count is written as a number."""

    def read(value: object) -> int:
        if type(value) is int and low <= value <= high:
            return value
        return _rare_integer(value, low, high)

    return forms.described(read, forms.Whole(low, high))


def _rare_integer(value: object, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        refuse(f"must be a whole number, not {nature(value)}")
    number = _exact(value, 1)
    if not low <= number <= high:
        refuse(f"must be from {low} to {high}")
    return number


def _exact(value: object, scale: int) -> int:
    """Read `value` × `scale` exactly, with the message of core.units when it can't be."""
    if isinstance(value, LongNumber):
        refuse("has more digits than are kept")
    if isinstance(value, str) and len(value) > QUANTITY_TEXT_MAX:
        refuse(f"has {len(value)} characters; a quantity has at most {QUANTITY_TEXT_MAX}")
    try:
        return units.scaled(value, scale)
    except ValueError as error:
        raise FieldProblem(str(error)) from None
    except ArithmeticError:
        raise FieldProblem("must be a finite number of ordinary size") from None


def scaled(scale: int, *, low: int = 0, high: int = units.QUANTITY_MAX) -> Reader:
    """Make a reader of decimals kept as whole numbers of 1/`scale`, from `low` to `high` of those."""
    whole_max = high // scale

    def read(value: object) -> int:
        number = -1
        if type(value) is int:
            if 0 <= value <= whole_max:
                number = value * scale
        elif type(value) is float and 0.0 < value < FAST_BELOW:
            # With at most 15 digits the nearest float to n/scale is that of exactly one n, so this proves the value.
            near = round(value * scale)
            if near / scale == value:
                number = near
        if number < 0:
            number = _exact(value, scale)
        if not low <= number <= high:
            if number < low and low == 1:
                refuse("must be above zero")
            refuse(f"must be from {units.decimal_text(low, scale)} to {units.decimal_text(high, scale)}")
        return number

    return forms.described(read, forms.Decimal(scale, low, high))


def milli_written(value: int) -> int | str:
    """Write milli-units as the number or decimal text that `scaled(1000)` reads back."""
    whole, rest = divmod(value, units.MILLI)
    return whole if not rest else units.milli_text(value)


def micro_written(value: int) -> int | str:
    """Write millionths as the number or decimal text that `scaled(1000000)` reads back."""
    whole, rest = divmod(value, units.MICRO)
    return whole if not rest else units.decimal_text(value, units.MICRO)


def degrees(limit: int) -> Reader:
    """Make a reader of degrees from -`limit` to `limit` in millionths: the one quantity that may carry a sign."""
    read_size = scaled(units.MICRO, high=limit * units.MICRO)

    def read(value: object) -> int:
        if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
            return -int(read_size(-value))
        if isinstance(value, str) and value.startswith("-"):
            return -int(read_size(value[1:]))
        return int(read_size(value))

    return forms.described(read, forms.Decimal(units.MICRO, 0, limit * units.MICRO, signed=True))


@functools.lru_cache(maxsize=1_024)
def _size_of(value: str) -> int:
    return units.size_bytes(value)


@functools.lru_cache(maxsize=1_024)
def _rate_of(value: str) -> int:
    return units.rate_bits(value)


def _with_unit(value: object, convert: Callable[[str], int], wanted: str) -> int:
    if isinstance(value, str):
        if len(value) > QUANTITY_TEXT_MAX:
            refuse(f"has {len(value)} characters; a quantity has at most {QUANTITY_TEXT_MAX}")
        try:
            return convert(value)
        except ValueError as error:
            raise FieldProblem(str(error)) from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(f"must be {wanted}, not {nature(value)}")
    return _exact(value, 1)


def size(low: int = 0) -> Reader:
    """Make a reader of sizes in bytes: a number of bytes or text such as 16GiB."""

    def read(value: object) -> int:
        number = _with_unit(value, _size_of, "a number of bytes or a size such as 16GiB")
        if number < low:
            refuse("must be above zero")
        return number

    return forms.described(read, forms.Amount(units.SIZES, low, units.QUANTITY_MAX))


def rate(low: int = 1) -> Reader:
    """Make a reader of rates in bits per second: a number or text such as 10Gbit/s."""

    def read(value: object) -> int:
        number = _with_unit(value, _rate_of, "a number of bits per second or a rate such as 10Gbit/s")
        if number < low:
            refuse("must be above zero")
        return number

    return forms.described(read, forms.Amount(units.RATES, low, units.QUANTITY_MAX))


@forms.takes(forms.Money(units.MICRO, units.QUANTITY_MAX))
def read_money(value: object) -> int:
    """Read money, always text so that no program on its way rounds it, as micro-units."""
    if not isinstance(value, str):
        refuse(f'must be a decimal text such as "7.00", not {nature(value)}; quote it')
    return _exact(value, units.MICRO)
