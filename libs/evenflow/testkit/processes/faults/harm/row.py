"""One fault."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from evenflow.testkit.processes.faults.world import World

#: Longer than the sessions of this world (3 s), and shorter.
STAND_S: Final = 8.0
PAUSE_S: Final = 2.0
AWAY_S: Final = 4.0

Do = Callable[[World], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Row:
    """One fault, which `do` does and returns from when it is over. `group` is what it is about.

    `brief` rows are those of every run; `log` is the kind of log that the row needs.
    """

    name: str
    group: str
    do: Do
    brief: bool = True
    log: str = "kafka"
