"""From samples to an estimate, and the verdict's hysteresis, at their edges."""

from __future__ import annotations

from evenflow.core.probing.estimate import (
    CONFIDENCE_FLOOR_PPM,
    Estimate,
    Sample,
    aged_confidence,
    estimate,
    is_degraded,
)


def sample(bandwidth_bits: int = 1_000, round_trip_us: int = 10_000, *, reachable: bool = True) -> Sample:
    return Sample(0, reachable, round_trip_us, 0, 0, bandwidth_bits)


def test_one_odd_sample_changes_nothing_and_a_change_shows_with_the_second() -> None:
    """The median of the newest three: an outlier is passed over, older samples do not count."""
    assert estimate([sample(1_000)] * 3 + [sample(10)]).bandwidth_bits == 1_000
    assert estimate([sample(1_000)] * 3 + [sample(10), sample(12)]).bandwidth_bits == 12


def test_scatter_costs_confidence_down_to_a_floor() -> None:
    """Equal samples are certain; wild ones leave what is always left."""
    assert estimate([sample()] * 3).confidence_ppm == 1_000_000
    assert estimate([sample(900), sample(1_000), sample(1_100)]).confidence_ppm == 800_000
    assert estimate([sample(1), sample(1_000), sample(9_000)]).confidence_ppm == CONFIDENCE_FLOOR_PPM
    assert estimate([sample(0)]).confidence_ppm == CONFIDENCE_FLOOR_PPM


def test_a_link_is_reachable_while_most_of_its_newest_samples_came_through() -> None:
    """Figures come from the samples that did."""
    found = estimate([sample(1_000), sample(0, reachable=False), sample(1_000)])
    assert (found.reachable, found.bandwidth_bits) == (True, 1_000)
    assert not estimate([sample(1_000), sample(0, reachable=False), sample(0, reachable=False)]).reachable


def test_confidence_halves_with_each_whole_half_life() -> None:
    """Never below the floor, and a clock that went back costs nothing."""
    ages = (-5, 0, 99, 100, 199, 200, 10**9)
    aged = [aged_confidence(1_000_000, age_ms=age, half_life_ms=100) for age in ages]
    assert aged == [1_000_000, 1_000_000, 1_000_000, 500_000, 500_000, 250_000, CONFIDENCE_FLOOR_PPM]


def test_a_degraded_link_must_be_clearly_better_to_recover() -> None:
    """Falls below 70 % or above twice the round trip, recovers from 85 % and within one and a half times."""

    def verdict(bandwidth_bits: int, round_trip_us: int = 10_000, *, was: bool) -> bool:
        found = Estimate(round_trip_us, 0, 0, bandwidth_bits, 1_000_000, reachable=True)
        return is_degraded(found, baseline_bits=1_000, baseline_us=10_000, was=was)

    assert [verdict(bits, was=False) for bits in (699, 700, 849)] == [True, False, False]
    assert [verdict(bits, was=True) for bits in (700, 849, 850)] == [True, True, False]
    assert [verdict(1_000, trip, was=False) for trip in (20_000, 20_001)] == [False, True]
    assert [verdict(1_000, trip, was=True) for trip in (15_000, 15_001)] == [False, True]


def test_what_can_not_be_reached_is_degraded_and_a_local_networks_noise_is_not() -> None:
    """No sample through is the worst there is; below two milliseconds the round trip says nothing."""
    away = Estimate(0, 0, 0, 1_000, 1_000_000, reachable=False)
    assert is_degraded(away, baseline_bits=1_000, baseline_us=100, was=False)
    near = Estimate(1_999, 0, 0, 1_000, 1_000_000, reachable=True)
    assert not is_degraded(near, baseline_bits=1_000, baseline_us=100, was=False)
    assert is_degraded(
        Estimate(2_000, 0, 0, 1_000, 1_000_000, reachable=True), baseline_bits=1_000, baseline_us=100, was=False
    )
