"""What one switch is, and where it shows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One switch.

    `kinds` are the faults of which a drawn world needs one for the mutant to show; empty = any world may do. `seed` is
    a seed whose world goes wrong under the mutant and holds without it: the search begins there. `breaks` are stems of
    scenario files that fail under it.
    """

    about: str
    switched: Callable[[], AbstractContextManager[None]]
    kinds: tuple[str, ...] = ()
    seed: int = 0
    breaks: tuple[str, ...] = ()
