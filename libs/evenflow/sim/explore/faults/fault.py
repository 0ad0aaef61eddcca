"""One kind of fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evenflow.sim.explore.scene import Scene


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault. `plan` adds the steps of one occurrence or a few to a scene."""

    kind: str
    about: str
    plan: Callable[[Scene], None]
