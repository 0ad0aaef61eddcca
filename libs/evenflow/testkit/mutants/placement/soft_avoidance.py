"""Breaks the softness of what is avoided: a node where a start failed is never tried again, even with no other."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from evenflow.core.placement.plan import Demand
from evenflow.placement.deciding import planning
from evenflow.testkit.mutants.replacing import replaced


def _as_it_is(_draft: Any, _capacity: Any, demand: Demand) -> Demand:
    return demand


def without_soft_avoidance() -> AbstractContextManager[None]:
    """Avoiding for ever while entered."""
    return replaced(planning, "_with_somewhere_to_go", _as_it_is)
