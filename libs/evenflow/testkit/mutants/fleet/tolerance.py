"""Breaks R39: there is no tolerance, whoever is suspect is lost at once."""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.core.probing.liveness import Tolerance
from evenflow.inventory.silence import Silence
from evenflow.testkit.mutants.replacing import replaced

_tolerance = Silence.tolerance


def _none(silence: Silence) -> Tolerance:
    limits = _tolerance.__get__(silence)
    return Tolerance(limits.suspect_ms, limits.suspect_ms, limits.blind_max_ms)


def without_tolerance() -> AbstractContextManager[None]:
    """Suspects that are lost while entered."""
    return replaced(Silence, "tolerance", property(_none))
