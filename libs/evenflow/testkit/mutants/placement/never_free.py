"""Breaks the reckoning of waits: a site where the task can never be held counts as free at once, and nobody crosses.

So does a site whose only nodes the task avoids.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.core.placement.classes import DemandClass
from evenflow.core.placement.forecast import Forecast
from evenflow.core.placement.plan import Demand
from evenflow.testkit.mutants.replacing import replaced

_wait_ms = Forecast.wait_ms


def _never_is_now(forecast: Forecast, demand: Demand, classes: tuple[DemandClass, ...], site: str) -> int | None:
    return _wait_ms(forecast, demand, classes, site) or 0


def without_never_free() -> AbstractContextManager[None]:
    """Waits of no end that count as none while entered."""
    return replaced(Forecast, "wait_ms", _never_is_now)
