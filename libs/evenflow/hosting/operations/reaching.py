"""Waiting at the start until every server answers, and saying which one does not and why.

Each is asked with a read that touches nobody's data. What goes away by itself (a server that is not up yet, a password
that is being set) is asked again with growing pauses; what can't (a topic with other settings) ends the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from aiokafka.errors import KafkaError

from evenflow.core.errors import EvenflowError, Refused
from evenflow.platform.clock import Clock

PAUSE_MIN_S: Final = 0.2
PAUSE_MAX_S: Final = 5.0
#: An unchanged problem is said again after this long.
SAY_AGAIN_MS: Final = 30_000
ASK_LIMIT_S: Final = 20.0
PROBLEM_CHARACTERS_MAX: Final = 500

Ask = Callable[[], Awaitable[object]]


class Reaching:
    """Asks several servers at once; `waits_for` holds those that did not answer yet."""

    def __init__(self, clock: Clock, log: Any) -> None:
        self._clock = clock
        self._log = log
        self.waits_for: dict[str, str] = {}

    async def all(self, servers: Mapping[str, Ask]) -> None:
        """Return when each has answered. Raises Refused when one can't ever."""
        self.waits_for = dict.fromkeys(servers, "not asked yet")
        tasks = [asyncio.create_task(self._one(name, ask), name=f"reach {name}") for name, ask in servers.items()]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _one(self, name: str, ask: Ask) -> None:
        pause_s, said, said_ms = PAUSE_MIN_S, "", self._clock.monotonic_ms()
        began_ms = said_ms
        while True:
            try:
                async with asyncio.timeout(ASK_LIMIT_S):
                    await ask()
            except Refused:
                raise
            except TimeoutError:
                problem = f"no answer within {ASK_LIMIT_S:.0f} s"
            except (EvenflowError, KafkaError, OSError) as error:
                problem = f"{error}"[:PROBLEM_CHARACTERS_MAX]
            else:
                break
            self.waits_for[name] = problem
            now_ms = self._clock.monotonic_ms()
            if problem != said or now_ms - said_ms >= SAY_AGAIN_MS:
                self._log.warning("waiting for a server", server=name, problem=problem, waited_ms=now_ms - began_ms)
                said, said_ms = problem, now_ms
            await self._clock.sleep(pause_s)
            pause_s = min(pause_s * 2, PAUSE_MAX_S)
        del self.waits_for[name]
        if said:
            self._log.warning("server reached", server=name, waited_ms=self._clock.monotonic_ms() - began_ms)
