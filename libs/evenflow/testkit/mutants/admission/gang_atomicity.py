"""Breaks R09: of a gang that does not fit as a whole, as many members as fit are placed."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from evenflow.core.placement import engine
from evenflow.core.placement.plan import Demand, Plan
from evenflow.testkit.mutants.replacing import replaced

_plan = engine._Round.plan  # noqa: SLF001  the mutant works inside


def _greedy(self: Any, demands: Iterable[Demand]) -> Plan:
    plan = _plan(self, demands)
    for wait in plan.waits:
        for members in range(wait.demand.task.members - 1, 0, -1):
            part = replace(wait.demand, task=replace(wait.demand.task, members=members))
            self._placements, self._waiting = [], []
            tried = _plan(self, [part])
            if tried.placements:
                placed = replace(tried.placements[0], demand=wait.demand)
                rest = tuple(other for other in plan.waits if other is not wait)
                return replace(plan, placements=(*plan.placements, placed), waits=rest)
    return plan


def without_gang_atomicity() -> AbstractContextManager[None]:
    """Half-placed gangs while entered."""
    return replaced(engine._Round, "plan", _greedy)  # noqa: SLF001  the mutant works inside
