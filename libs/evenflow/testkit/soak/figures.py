"""What was sampled, and the judgement over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SLOPE_MB_PER_MINUTE_MAX: Final = 0.5
DESCRIPTORS_GROWTH_MAX: Final = 5
MB: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at the process: moment since its start, memory held, descriptors open, records unread, tasks ended."""

    at_s: float
    memory_bytes: int
    descriptors: int
    lag: int
    done: int


def slope_mb_per_minute(samples: Sequence[Sample]) -> float:
    """Growth of memory by least squares, in 10^6 bytes a minute; 0 for fewer than two samples."""
    count = len(samples)
    if count < 2:
        return 0.0
    mean_s = sum(one.at_s for one in samples) / count
    mean_bytes = sum(one.memory_bytes for one in samples) / count
    spread = sum((one.at_s - mean_s) ** 2 for one in samples)
    together = sum((one.at_s - mean_s) * (one.memory_bytes - mean_bytes) for one in samples)
    return together / spread * 60 / MB if spread else 0.0


def descriptors_growth(samples: Sequence[Sample]) -> int:
    """By how many descriptors the last third holds more than the first, median against median."""
    third = max(1, len(samples) // 3)
    return _median([one.descriptors for one in samples[-third:]]) - _median(
        [one.descriptors for one in samples[:third]]
    )


def _median(values: Sequence[int]) -> int:
    return sorted(values)[len(values) // 2] if values else 0


def broken(samples: Sequence[Sample], lag_left: int) -> list[str]:
    """Bounds that do not hold, over the samples after the warm-up."""
    problems = []
    slope = slope_mb_per_minute(samples)
    growth = descriptors_growth(samples)
    if slope > SLOPE_MB_PER_MINUTE_MAX:
        problems.append(f"memory grows by {slope:.2f} MB a minute, at most {SLOPE_MB_PER_MINUTE_MAX}")
    if growth > DESCRIPTORS_GROWTH_MAX:
        problems.append(f"descriptors grew by {growth}, at most {DESCRIPTORS_GROWTH_MAX}")
    if lag_left:
        problems.append(f"{lag_left} records are left unread")
    if not samples:
        problems.append("nothing was sampled after the warm-up")
    return problems
