"""Breaks R61: the catalogue keeps a copy of a dataset that was dropped, or that an agent did not find."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from evenflow.inventory.catalogue import Catalogue
from evenflow.testkit.mutants.replacing import replaced


def _kept(*_told: Any) -> list[Any]:
    return []


def without_struck_copies() -> AbstractContextManager[None]:
    """Copies that stay in the catalogue for ever while entered."""
    return replaced(Catalogue, "_without", _kept)
