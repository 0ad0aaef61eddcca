"""The shape of a verb: its arguments' kind and what it does to the stage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from evenflow.sim.scenario.schema import Kind, Status
from evenflow.sim.stage import Stage

Act = Callable[[Stage, Any], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb of the scenario format. `act` gets the arguments as `arguments` read them."""

    name: str
    about: str
    arguments: Kind
    act: Act
    status: Status = "ready"
