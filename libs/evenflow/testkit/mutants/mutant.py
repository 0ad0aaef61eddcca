"""What one switch is, and where it shows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One switch. `breaks` are stems of scenario files that fail while `switched` is entered.

    `seed` is a seed of exploration whose world goes wrong under it and holds without it; the search begins there.
    """

    about: str
    switched: Callable[[], AbstractContextManager[None]]
    breaks: tuple[str, ...]
    seed: int = 0
