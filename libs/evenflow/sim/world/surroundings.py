"""What each simulated process is given: clock, ids, chance, transport, stores, a quiet log."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from evenflow.platform.broker.embedded.clients.consumer import EmbeddedConsumer
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.platform.clock import Clock, Ids
from evenflow.sim.process import PROCESS

#: Virtual time that one call of a store takes on each side of its effect, in milliseconds.
STORE_GAP_MS: Final = (0.2, 3.0)
LINES_KEPT: Final = 2_000


class SimTransport(EmbeddedTransport):
    """The embedded transport with the scenario's session time-out, when it gives one."""

    def __init__(self, log: EmbeddedLog, *, clock: Clock, ids: Ids, session_timeout_ms: int | None) -> None:
        super().__init__(log, clock=clock, ids=ids)
        self._session_timeout_ms = session_timeout_ms

    def _consumer(self, *topics: str, **settings: object) -> EmbeddedConsumer:
        if self._session_timeout_ms is not None:
            settings = {**settings, "session_timeout_ms": self._session_timeout_ms}
        return super()._consumer(*topics, **settings)


class Gaps:
    """Giving way around each effect of a store, by a chance of the calling process's own."""

    def __init__(self, seed: int, longest_ms: float = STORE_GAP_MS[1]) -> None:
        self._seed = seed
        self._longest_ms = longest_ms
        self._chances: dict[str, random.Random] = {}

    async def __call__(self) -> None:
        """Virtual milliseconds for a process; nothing for the world itself."""
        process = PROCESS.get()
        if process is None:
            return
        chance = self._chances.get(process.instance)
        if chance is None:
            chance = random.Random(f"{self._seed}/{process.instance}/gap")
            self._chances[process.instance] = chance
        low = STORE_GAP_MS[0]
        await asyncio.sleep((low + (self._longest_ms - low) * chance.random()) / 1000)


@dataclass(slots=True)
class Lines:
    """The last lines that processes logged: (ms, process, level, event, fields)."""

    now_ms: Callable[[], int]
    kept: deque[tuple[int, str, str, str, dict[str, Any]]] = field(default_factory=lambda: deque(maxlen=LINES_KEPT))


class QuietLog:
    """A bound logger that keeps lines instead of printing them."""

    def __init__(self, lines: Lines, process: str, bound: dict[str, Any] | None = None) -> None:
        self._lines = lines
        self._process = process
        self._bound = bound or {}

    def bind(self, **fields: Any) -> QuietLog:
        """A logger with more fields."""
        return QuietLog(self._lines, self._process, {**self._bound, **fields})

    def _note(self, level: str, event: str, fields: dict[str, Any]) -> None:
        line = (self._lines.now_ms(), self._process, level, event, {**self._bound, **fields})
        self._lines.kept.append(line)

    def debug(self, event: str, **fields: Any) -> None:
        """For the developer."""
        self._note("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        """One line per unit of work."""
        self._note("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """Something to look at."""
        self._note("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """Something is wrong."""
        self._note("error", event, fields)

    def exception(self, event: str, **fields: Any) -> None:
        """An error with its cause."""
        self._note("error", event, fields)

    critical = error
