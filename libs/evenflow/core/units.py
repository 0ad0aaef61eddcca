"""Exact quantities: the only place where text becomes a number and back.

Inside the product every number is an integer of one unit:

    devices and shares   milli-devices      1 device  = 1,000
    processor cores      milli-cores        1 core    = 1,000
    memory, disk, data   bytes
    time                 milliseconds
    money                micro-units of one named currency, 1.00 = 1,000,000
    rates                bits per second

No float decides admission. Decimals are read by `decimal`, refused when they need more places than the unit has,
and written back without loss.
"""

from __future__ import annotations

import decimal
import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

MILLI: Final = 1_000
MICRO: Final = 1_000_000
MS_PER_S: Final = 1_000
MS_PER_HOUR: Final = 3_600_000

#: Largest integer any quantity may have: fits a signed 64-bit column with room for sums over 100,000 rows.
QUANTITY_MAX: Final = 2**53

_PLAIN = re.compile(r"(0|[1-9][0-9]{0,17})(\.[0-9]{1,9})?")
_SIZE = re.compile(r"((?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,9})?)\s?(B|[kMGTP]B|[KMGTP]iB)")
_RATE = re.compile(r"((?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,9})?)\s?([kMGT]?bit/s)")

#: unit of a size → bytes
SIZES: Final = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "PB": 10**15,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "PiB": 2**50,
}
#: unit of a rate → bits per second
RATES: Final = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9, "Tbit/s": 10**12}


#: The same few quantities are written again and again; so many texts are remembered.
TEXTS_MAX: Final = 4_096
#: Wide enough for every quantity times its scale: nothing is ever rounded.
_EXACT: Final = decimal.Context(prec=60)


def _decimal(value: object) -> Decimal:
    """Read a JSON number or a plain decimal string; ValueError says what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError("must be a number or a decimal string")
    if isinstance(value, str):
        if not _PLAIN.fullmatch(value):
            raise ValueError("must be a plain decimal such as 0.25: no sign, exponent, space or other notation")
        return Decimal(value)
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise ValueError("must be finite")
    if number.is_signed():
        raise ValueError("must not be negative or carry a sign")
    return number


def scaled(value: object, scale: int) -> int:
    """`value` × `scale` as an exact integer.

    Raises ValueError when the value is not a finite decimal without sign, needs finer steps than 1/scale, or is too
    large.
    """
    return _scaled_text(value, scale) if isinstance(value, str) else _scaled(value, scale)


@lru_cache(maxsize=TEXTS_MAX)
def _scaled_text(value: str, scale: int) -> int:
    return _scaled(value, scale)


def _scaled(value: object, scale: int) -> int:
    product = _EXACT.multiply(_decimal(value), Decimal(scale))
    if product != product.to_integral_value(context=_EXACT):
        raise ValueError(f"has more decimal places than the unit keeps (steps of 1/{scale})")
    if product > QUANTITY_MAX:
        raise ValueError(f"is larger than {QUANTITY_MAX // scale}")
    return int(product)


def milli(value: object) -> int:
    """Cores or device shares to milli-units, at most three decimal places."""
    return scaled(value, MILLI)


def micro(value: object) -> int:
    """Money to micro-units, at most six decimal places."""
    return scaled(value, MICRO)


def milliseconds(value: object) -> int:
    """Seconds to milliseconds, at most three decimal places."""
    return scaled(value, MS_PER_S)


def size_bytes(value: object) -> int:
    """Bytes: an integer, or a string such as 16GiB or 1.5GB that gives whole bytes."""
    return _size_text(value) if isinstance(value, str) else scaled(value, 1)


@lru_cache(maxsize=TEXTS_MAX)
def _size_text(value: str) -> int:
    return _text_with_unit(value, _SIZE, SIZES, "a number of bytes or a size such as 16GiB or 50GB")


def rate_bits(value: object) -> int:
    """Bits per second: an integer, or a string such as 10Gbit/s."""
    return _rate_text(value) if isinstance(value, str) else scaled(value, 1)


@lru_cache(maxsize=TEXTS_MAX)
def _rate_text(value: str) -> int:
    return _text_with_unit(value, _RATE, RATES, "a rate such as 10Gbit/s")


def _text_with_unit(value: str, pattern: re.Pattern[str], units: dict[str, int], wanted: str) -> int:
    match = pattern.fullmatch(value)
    if match is None:
        if _PLAIN.fullmatch(value):
            return scaled(value, 1)
        raise ValueError(f"must be {wanted}")
    return scaled(match.group(1), units[match.group(2)])


def decimal_text(value: int, scale: int) -> str:
    """An integer of 1/scale steps as the shortest exact decimal: 300 milli is 0.3."""
    sign, value = ("-", -value) if value < 0 else ("", value)
    whole, rest = divmod(value, scale)
    if not rest:
        return f"{sign}{whole}"
    return f"{sign}{whole}.{str(rest).zfill(len(str(scale)) - 1).rstrip('0')}"


def milli_text(value: int) -> str:
    """Milli-units as a decimal: 250 is 0.25."""
    return decimal_text(value, MILLI)


def cores_text(value: int) -> str:
    """Milli-cores as cores: 1_500 is 1.5 cores."""
    return f"{milli_text(value)} cores"


def devices_text(value: int) -> str:
    """Milli-devices as devices: 250 is 0.25 devices."""
    return f"{milli_text(value)} devices"


def size_text(value: int) -> str:
    """Bytes in the largest binary unit that keeps them whole: 2**34 is 16 GiB."""
    for name, unit in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value and value % unit == 0:
            return f"{value // unit} {name}"
    return f"{value} B"


def money_text(value: int) -> str:
    """Micro-units as money with at least two decimals: 1_250_000 is 1.25, 8_000_000 is 8.00."""
    text = decimal_text(value, MICRO)
    whole, _, rest = text.partition(".")
    return f"{whole}.{rest.ljust(2, '0')}"


def divide_half_even(numerator: int, denominator: int) -> int:
    """numerator / denominator rounded half to even, exactly: the one rounding of a ledger entry."""
    if denominator <= 0:
        raise ValueError("denominator must be positive")
    quotient, rest = divmod(numerator, denominator)
    twice = 2 * rest
    if twice > denominator or (twice == denominator and quotient & 1):
        quotient += 1
    return quotient
