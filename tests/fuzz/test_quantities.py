"""Hostile quantities at the task specification: refused by their field, or exactly what fractions say."""

from __future__ import annotations

from fractions import Fraction

import pytest

from evenflow.testkit.fuzz.quantities import QUANTITIES, expected, fuzz_quantities, judged

SIZED = next(one for one in QUANTITIES if one.sized)
CORES = QUANTITIES[0]


def test_generated_quantities_are_exact_or_refused():
    """Proves for a fixed seed what `make fuzz` proves for many more."""
    figures = fuzz_quantities(500, 1)
    assert not figures.problems, "\n".join(figures.problems)
    assert figures.numbers > figures.tried // 5


@pytest.mark.parametrize(
    ("quantity", "value", "wanted"),
    [
        (CORES, "1.5", Fraction(1500)),
        (CORES, 0.1, Fraction(100)),
        (CORES, "1e3", None),
        (CORES, "01", None),
        (CORES, True, None),
        (CORES, float("nan"), None),
        (SIZED, "1.5KiB", Fraction(1536)),
        (SIZED, "0.5 B", Fraction(1, 2)),
        (SIZED, "1KB", None),
        (SIZED, "1  GiB", None),
    ],
)
def test_the_second_opinion_knows_the_rules(quantity, value, wanted):
    """Proves that what quantities are compared with is itself right."""
    assert expected(quantity, value) == wanted


def test_a_wrongly_read_quantity_is_found():
    """Proves that the comparison can fail."""
    assert judged(CORES, "1.5") == ""
    wrong = type(CORES)(CORES.path, lambda task: task.resources.cpu_milli + 1, CORES.scale)
    assert "but it is 1500" in judged(wrong, "1.5")
