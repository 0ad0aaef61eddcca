"""One incarnation of a simulated process, and the context variable by which the loop knows whose callback it runs.

Every callback of asyncio carries a `contextvars` context. A process is started in a context that holds it; everything
it schedules, at any depth and inside any library, inherits that context. So the loop can drop a dead process's
callbacks (a real kill: no `finally` runs) and keep a paused one's in order (a real stop signal).
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

#: The process whose code is running; None for what belongs to the world itself.
PROCESS: Final[contextvars.ContextVar[Process | None]] = contextvars.ContextVar("process", default=None)

#: Finished tasks are swept from a process's list once per this many new ones.
_SWEEP_EVERY: Final = 64


@dataclass(eq=False, slots=True)
class Process:
    """What the loop and the world keep about one incarnation.

    `name` is the service's or agent's name, `incarnation` counts starts over the whole world. `skew_ms` shifts the
    process's wall clock only. `callback_count` counts the callbacks run so far, which numbers the places where it can
    be killed: `doom` holds the number of the callback that will not run, and what happens instead.
    """

    name: str
    incarnation: int
    random: random.Random
    skew_ms: int = 0
    dead: bool = False
    paused: bool = False
    callback_count: int = 0
    doom: tuple[int, Callable[[], None]] | None = None
    held: list[asyncio.Handle] = field(default_factory=list)
    tasks: list[Any] = field(default_factory=list)
    started_count: int = 0

    @property
    def instance(self) -> str:
        """Name and incarnation, unique in a world: `placement.3`."""
        return f"{self.name}.{self.incarnation}"

    @property
    def running(self) -> bool:
        """Neither dead nor paused."""
        return not (self.dead or self.paused)

    def doom_after(self, step_count: int, strike: Callable[[], None]) -> None:
        """Let `strike` happen in place of the callback that comes after so many more."""
        self.doom = (self.callback_count + step_count, strike)

    def own(self, task: asyncio.Task[Any]) -> None:
        """Keep a strong reference to a task: one collected early would run its `finally` at an odd moment."""
        self.tasks.append(task)
        self.started_count += 1
        if self.started_count % _SWEEP_EVERY == 0:
            self.tasks = [kept for kept in self.tasks if not kept.done()]


def process_of(seed: int, name: str, incarnation: int) -> Process:
    """A new process with its own random source, drawn from the seed and its name alone."""
    return Process(name, incarnation, random.Random(f"{seed}/{name}/{incarnation}"))
