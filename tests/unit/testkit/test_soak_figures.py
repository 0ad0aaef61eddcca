"""The judgement over a soak's samples: slopes by least squares, descriptors by medians, what is broken."""

from __future__ import annotations

import pytest

from evenflow.testkit.soak.figures import Sample, broken, descriptors_growth, slope_mb_per_minute


def samples(*memory_mb: float, descriptors: int = 40, grows: int = 0) -> list[Sample]:
    return [
        Sample(10.0 * index, round(each * 1e6), descriptors + index * grows, 0, index)
        for index, each in enumerate(memory_mb)
    ]


@pytest.mark.parametrize(
    ("memory", "slope"), [((100, 100, 100), 0.0), ((100, 101, 102), 6.0), ((102, 101, 100), -6.0), ((100,), 0.0)]
)
def test_the_slope_is_that_of_the_line_nearest_to_all(memory, slope):
    """Proves the figure by hand: one MB in ten seconds are six a minute."""
    assert slope_mb_per_minute(samples(*memory)) == pytest.approx(slope)


def test_flat_memory_and_descriptors_break_nothing():
    """Proves that noise around a level is no growth."""
    assert broken(samples(100, 100.02, 99.98, 100.01, 99.99, 100), 0) == []


def test_each_bound_breaks_by_itself():
    """Proves that memory, descriptors, lag and an empty soak are all found."""
    assert "memory" in broken(samples(100, 101, 102), 0)[0]
    growing = samples(*[100] * 9, grows=1)
    assert descriptors_growth(growing) == 6
    assert "descriptors" in broken(growing, 0)[0]
    assert "unread" in broken(samples(100, 100, 100), 3)[0]
    assert "nothing was sampled" in broken([], 0)[0]
