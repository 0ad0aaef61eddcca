"""Hostile quantities for the doors' readers, with a second opinion: exact fractions, read by another grammar.

A text or number is either refused, or the reader's integer is exactly what fractions say. Nothing between.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from evenflow.core.errors import FieldRefused
from evenflow.core.units import QUANTITY_MAX
from evenflow.events.documents.task_specification import parse_task

_DIGITS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
_UNITS: Final[dict[str, int]] = {
    "": 1,
    "B": 1,
    **{f"{letter}B": 10 ** (3 * (power + 1)) for power, letter in enumerate("kMGTP")},
    **{f"{letter}iB": 2 ** (10 * (power + 1)) for power, letter in enumerate("KMGTP")},
}

#: What a field of the specification becomes: where it stands, units of the result per unit written, how it is read.
_MILLI, _MICRO = 1_000, 1_000_000


@dataclass(frozen=True, slots=True)
class Quantity:
    """A field, how to reach it in the parsed task, and its scale. `sized`: text with a unit of bytes."""

    path: str
    read: Callable[[Any], Any]
    scale: int
    sized: bool = False
    text_only: bool = False
    zero: bool = True


QUANTITIES: Final = (
    Quantity("resources.cpu", lambda task: task.resources.cpu_milli, _MILLI),
    Quantity("resources.memory", lambda task: task.resources.memory_bytes, 1, sized=True),
    Quantity("resources.disk", lambda task: task.resources.disk_bytes, 1, sized=True),
    Quantity("resources.devices.share", lambda task: task.resources.devices.share_milli, _MILLI, zero=False),
    Quantity("resources.devices.memory", lambda task: task.resources.devices.memory_bytes, 1, sized=True),
    Quantity("run.work_s", lambda task: task.run.work_ms, _MILLI),
    Quantity("run.fail_at_s", lambda task: task.run.fail_at_ms, _MILLI),
    Quantity("declared_s", lambda task: task.declared_ms, _MILLI, zero=False),
    Quantity("deadline_s", lambda task: task.deadline_ms, _MILLI, zero=False),
    Quantity("ready_timeout_s", lambda task: task.ready_timeout_ms, _MILLI, zero=False),
    Quantity("budget", lambda task: task.budget_micro, _MICRO, text_only=True),
    Quantity("output.size", lambda task: task.output.size_bytes, 1, sized=True),
)

_PIECES: Final = st.sampled_from(
    ["0", "1", "9", "5", ".", "-", "+", " ", "e", "E", "x", "_", ",", "\u0661", "\u00bd", "\uff11", "\n", "\x00",
     "NaN", "inf", "GiB", "MB", "kB", "KB", "gib", "B", "TiB", "PB", "\u2212", "00", "000", "001",
     "999999999999999"]
)  # fmt: skip
_PLAIN: Final = st.builds(
    lambda whole, places: f"{whole}.{places}" if places else f"{whole}",
    st.integers(0, 2**60), st.text("0123456789", max_size=10),
)  # fmt: skip
_SIZED: Final = st.builds(
    lambda number, gap, unit: f"{number}{gap}{unit}",
    _PLAIN,
    st.sampled_from(["", "", " ", "  "]),
    st.sampled_from([*_UNITS, "KB", "kiB", "EB"]),
)
HOSTILE: Final = st.one_of(
    _PLAIN, _SIZED, st.lists(_PIECES, max_size=6).map("".join), st.text(max_size=8), st.integers(),
    st.integers(0, 4_000), st.integers(-(10**30), 10**30), st.floats(),
    st.floats(0, 1e6).map(lambda number: round(number, 3)), st.booleans(), st.none(), st.decimals(),
    st.decimals(0, 10**6, places=3), st.just([]), st.just({}), st.just([1]), st.binary(max_size=4),
    st.complex_numbers(max_magnitude=2),
)  # fmt: skip


def expected(quantity: Quantity, value: object) -> Fraction | None:
    """The exact value in the field's unit by plain rules; None where the value is no quantity at all."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return None
    if isinstance(value, str):
        found = _DIGITS.match(value)
        if found is None or (value[0] == "0" and len(found[0].partition(".")[0]) > 1):
            return None
        unit = value[found.end() :]
        unit = unit.removeprefix(" ") if len(unit) > 1 and unit[1:2] != " " else unit
        if unit and (not quantity.sized or unit not in _UNITS):
            return None
        return Fraction(found[0]) * _UNITS[unit] * quantity.scale
    finite = value.is_finite() if isinstance(value, Decimal) else (isinstance(value, int) or math.isfinite(value))
    if quantity.text_only or not finite:
        return None
    number = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    return number * quantity.scale


def judged(quantity: Quantity, value: object) -> str:
    """What is wrong with how a value was read; empty when it was refused by its field or read exactly."""
    document: dict[str, Any] = {"id": "t"}
    at = document
    *parents, last = quantity.path.split(".")
    for parent in parents:
        at = at.setdefault(parent, {})
    at[last] = value
    try:
        got = quantity.read(parse_task(document))
    except FieldRefused as refusal:
        near = refusal.path == quantity.path or refusal.path.startswith((f"{quantity.path}.", f"{quantity.path}["))
        return "" if near else f"refused at {refusal.path}"
    except Exception as error:  # noqa: BLE001  anything else that comes out of a door is a fault
        return f"{type(error).__name__}: {error}"
    wanted = expected(quantity, value)
    if wanted is None:
        return f"read as {got} but it is no quantity"
    if wanted.denominator != 1 or wanted != got:
        return f"read as {got} but it is {wanted}"
    if type(got) is not int or not 0 <= got <= QUANTITY_MAX or (got == 0 and not quantity.zero):
        return f"read as {got!r}, out of bounds"
    return ""


@dataclass(slots=True)
class QuantityFigures:
    """How many were tried; `problems` are wrongly read ones."""

    tried: int = 0
    numbers: int = 0
    problems: list[str] = field(default_factory=list)


def fuzz_quantities(count: int, seed_number: int) -> QuantityFigures:
    """Try so many values at every field that holds a quantity, the same for the same seed."""
    figures = QuantityFigures()

    @seed(f"{seed_number}/quantities")
    @settings(
        max_examples=count, phases=[Phase.generate], database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(HOSTILE)
    def attempt(value: object) -> None:
        for quantity in QUANTITIES:
            figures.tried += 1
            figures.numbers += expected(quantity, value) is not None
            wrong = judged(quantity, value)
            if wrong:
                figures.problems.append(f"{quantity.path}: {value!r:.80} {wrong}")

    attempt()
    return figures
