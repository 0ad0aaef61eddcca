"""From samples to an estimate, and from estimates to a verdict with hysteresis.

The estimate is the median of the newest three samples, so that one odd sample changes nothing and a real change shows
with the second. Confidence is 1 less the scatter of the three samples, halved for each `half_life_ms` of age. A link is
degraded when its bandwidth estimate falls below 70 % of its baseline or its round trip exceeds twice the baseline, and
recovers above 85 % and below 1.5 times. The baseline is what the link's document declares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from evenflow.core.units import MICRO

SAMPLES_KEPT: Final = 3
CONFIDENCE_FLOOR_PPM: Final = 50_000
FALLS_BELOW_PPM: Final = 700_000
RISES_ABOVE_PPM: Final = 850_000
SLOWER_THAN_PPM: Final = 2_000_000
FASTER_THAN_PPM: Final = 1_500_000
#: Round trips below this never degrade a link: they are noise of a local network.
ROUND_TRIP_NOISE_US: Final = 2_000


@dataclass(frozen=True, slots=True)
class Sample:
    """One probe's result; zero bandwidth means that only the path was probed."""

    at_ms: int
    reachable: bool
    round_trip_us: int
    jitter_us: int
    loss_ppm: int
    bandwidth_bits: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is believed of a link."""

    round_trip_us: int
    jitter_us: int
    loss_ppm: int
    bandwidth_bits: int
    confidence_ppm: int
    reachable: bool


def _median(values: list[int]) -> int:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def estimate(samples: list[Sample]) -> Estimate:
    """The estimate from the newest samples, oldest first; at least one is needed."""
    newest = samples[-SAMPLES_KEPT:]
    through = [s for s in newest if s.reachable] or newest
    widths = [s.bandwidth_bits for s in through if s.bandwidth_bits] or [0]
    middle = _median(widths)
    scatter_ppm = (max(widths) - min(widths)) * MICRO // middle if middle else MICRO
    return Estimate(
        round_trip_us=_median([s.round_trip_us for s in through]),
        jitter_us=_median([s.jitter_us for s in through]),
        loss_ppm=_median([s.loss_ppm for s in through]),
        bandwidth_bits=middle,
        confidence_ppm=max(CONFIDENCE_FLOOR_PPM, MICRO - min(MICRO, scatter_ppm)),
        reachable=sum(s.reachable for s in newest) * 2 > len(newest),
    )


def aged_confidence(confidence_ppm: int, *, age_ms: int, half_life_ms: int) -> int:
    """Confidence after `age_ms` without a new sample: halved for each whole half-life."""
    halvings = min(30, max(0, age_ms) // half_life_ms)
    return max(CONFIDENCE_FLOOR_PPM, confidence_ppm >> halvings)


def is_degraded(found: Estimate, *, baseline_bits: int, baseline_us: int, was: bool) -> bool:
    """The verdict, with hysteresis: a degraded link must be clearly better to recover."""
    if not found.reachable:
        return True
    share_ppm = found.bandwidth_bits * MICRO // baseline_bits if baseline_bits else MICRO
    slowness_ppm = found.round_trip_us * MICRO // baseline_us if baseline_us else MICRO
    if found.round_trip_us < ROUND_TRIP_NOISE_US:
        slowness_ppm = MICRO
    if was:
        return share_ppm < RISES_ABOVE_PPM or slowness_ppm > FASTER_THAN_PPM
    return share_ppm < FALLS_BELOW_PPM or slowness_ppm > SLOWER_THAN_PPM
