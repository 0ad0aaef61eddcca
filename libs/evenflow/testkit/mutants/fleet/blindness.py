"""Breaks rule 6: the observer never doubts itself, so when it hears nobody everybody is lost."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from evenflow.core.probing import liveness
from evenflow.testkit.mutants.replacing import replaced


def _sees(*_contacts: Any, **_limits: Any) -> str:
    return ""


def without_blindness() -> AbstractContextManager[None]:
    """An observer that is never blind while entered."""
    return replaced(liveness, "_blind", _sees)
