"""Upkeep of the embedded log: what is due is archived, then expired or compacted away, a step at a time.

Apache Kafka does this by itself. The archive keeps every stream that the registry marks before it loses a record.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from evenflow.events.streams import BY_NAME
from evenflow.platform.broker.embedded.archive import ObjectArchive
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.retention import Retention
from evenflow.platform.clock import Clock
from evenflow.platform.stores.ports import Objects

PERIOD_S: Final = 30.0


class LogUpkeep:
    """Runs beside the services of a process that hosts an embedded log; a step every `period_s`."""

    name = "log-upkeep"

    def __init__(
        self, log: EmbeddedLog, objects: Objects, clock: Clock, logger: Any, period_s: float = PERIOD_S
    ) -> None:
        self._period_s = period_s
        self._retention = Retention(log)
        self._clock = clock
        self._logger = logger
        self._task: asyncio.Task[None] | None = None
        log.hooks.archive = ObjectArchive(objects, lambda topic: topic in BY_NAME and BY_NAME[topic].archive)

    async def start(self) -> None:
        """Begin; the first step is due after one period."""
        self._task = asyncio.get_running_loop().create_task(self._repeat())

    async def stop(self) -> None:
        """End between two steps or in one: a step that is cut off is taken again from where it was."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def wait(self) -> None:
        """Return when stopped; raise what ended the upkeep otherwise."""
        if self._task is not None:
            await asyncio.wait({self._task})
            if not self._task.cancelled() and (error := self._task.exception()) is not None:
                raise error

    async def _repeat(self) -> None:
        while True:
            await self._clock.sleep(self._period_s)
            try:
                dropped = await self._retention.step()
            except Exception as error:  # noqa: BLE001  an archive that is away delays cleaning, nothing else
                self._logger.warning("log not cleaned", problem=f"{type(error).__name__}: {error}")
                continue
            if dropped:
                self._logger.info("log cleaned", dropped=dropped)
