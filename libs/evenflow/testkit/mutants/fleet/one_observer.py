"""Breaks the seat of those who conclude from all that they hear: every copy works, on its part of what nodes say."""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.platform.service import EventService
from evenflow.testkit.mutants.replacing import replaced


def _beside_others(_service: EventService, _session_timeout_ms: int) -> None:
    return


def without_one_observer() -> AbstractContextManager[None]:
    """Copies that all work at once while entered."""
    return replaced(EventService, "work_alone", _beside_others)
