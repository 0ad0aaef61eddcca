"""When progress is saved, and what a member does with the time it is given to stop."""

from __future__ import annotations

from enum import StrEnum
from math import isqrt
from typing import Final

#: Mean time between failures that `checkpoint.every_s: auto` assumes of a node: one day.
FAILURE_PERIOD_MS: Final = 86_400_000
PERIOD_MS_MIN: Final = 60_000


def save_period_ms(every_ms: int | None, cost_ms: int) -> int:
    """Run time between two saves.

    None means auto: sqrt(2 × cost × mean time between failures), at least a minute. Source: Young, "A first order
    approximation to the optimum checkpoint interval", 1974.
    """
    if every_ms is not None:
        return max(1, every_ms)
    return max(PERIOD_MS_MIN, isqrt(2 * cost_ms * FAILURE_PERIOD_MS))


class LastMove(StrEnum):
    """What to do with a stop's grace."""

    FINISH = "finish"
    SAVE = "save"
    STOP = "stop"


def last_move(*, left_ms: int | None, grace_ms: int, saves: bool, cost_ms: int) -> LastMove:
    """Finish when the rest of the work fits the grace, else save when a save fits, else stop at once.

    `left_ms` is the run time that the work still needs, None = not known. A task that cannot resume does not finish
    either: its stop was asked for, and only saved progress is worth waiting for.
    """
    if not saves or grace_ms <= 0:
        return LastMove.STOP
    if left_ms is not None and left_ms <= grace_ms:
        return LastMove.FINISH
    return LastMove.SAVE if cost_ms <= grace_ms else LastMove.STOP
