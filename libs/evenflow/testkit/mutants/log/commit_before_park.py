"""Breaks rule 4: dead letters are gathered for a moment in the background, while their records are committed."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import AbstractContextManager, suppress
from typing import Final

from evenflow.core.errors import EvenflowError
from evenflow.platform.broker.codec import Bad
from evenflow.platform.broker.dead_letters import DeadLetters
from evenflow.testkit.mutants.replacing import replaced

GATHER_S: Final = 0.05
_park = DeadLetters.park
_running: Final[deque[asyncio.Task[None]]] = deque(maxlen=1_000)


async def _sometime(self: DeadLetters, bad: Bad) -> None:
    async def parking() -> None:
        await self._runtime.clock.sleep(GATHER_S)
        with suppress(EvenflowError):
            await _park(self, bad)

    _running.append(asyncio.get_running_loop().create_task(parking()))


def with_commit_before_park() -> AbstractContextManager[None]:
    """Dead letters in the background while entered."""
    return replaced(DeadLetters, "park", _sometime)
