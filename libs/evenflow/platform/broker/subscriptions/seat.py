"""The seat of whoever works alone among the copies of a service: the single partition of `placement-leader`.

Each service has its own group on it. The seat only says who should try, and losing it ever only stops a process;
whether a decider may write is decided by its fence alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Final

from aiokafka import ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from evenflow.events.streams import PLACEMENT_LEADER
from evenflow.platform.broker.ports import Consumer
from evenflow.platform.cancelling import watched
from evenflow.platform.runtime import Runtime

POLL_MS: Final = 5_000
PAUSE_S: Final = 0.2
LEAVE_LIMIT_S: Final = 3.0


class Seat(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """One process's membership. The callbacks run inside the group's join, so they only set flags."""

    def __init__(self, runtime: Runtime, group: str, session_timeout_ms: int, lost: Callable[[], None]) -> None:
        self._runtime = runtime
        self._lost = lost
        self._pumping: asyncio.Task[None] | None = None
        self.held = asyncio.Event()
        self.lost = False
        self._consumer: Consumer = runtime.transport.consumer(
            client_id=f"{runtime.name}-{runtime.instance}-seat",
            group_id=f"{runtime.name}.{group}",
            session_timeout_ms=session_timeout_ms,
            sticky=True,
        )

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        """Every join of a standby revokes first; being revoked is not being replaced."""

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """The seat is ours, or is not ours any more."""
        if assigned:
            self.held.set()
        elif self.held.is_set():
            self._lose()

    def _lose(self) -> None:
        self.lost = True
        self._lost()

    async def start(self) -> None:
        """Join and keep polling: a member that does not poll leaves silently after a while."""
        self._consumer.subscribe([PLACEMENT_LEADER.name], listener=self)
        await self._consumer.start()
        self._pumping = watched(asyncio.get_running_loop().create_task(self._pump()), lambda _: self._lose())

    async def _pump(self) -> None:
        while True:
            try:
                await self._consumer.getmany(timeout_ms=POLL_MS)
            except KafkaError:  # the coordinator is away: the fence decides, not this
                await self._runtime.clock.sleep(PAUSE_S)

    async def leave(self) -> None:
        """Leave the group, so that a standby leads at once instead of after the session."""
        if self._pumping is not None:
            self._pumping.cancel()
            await asyncio.gather(self._pumping, return_exceptions=True)
        try:
            async with asyncio.timeout(LEAVE_LIMIT_S):
                await self._consumer.stop()
        except (TimeoutError, KafkaError, OSError) as error:
            self._runtime.log.warning("seat not left in order", problem=f"{type(error).__name__}: {error}")
