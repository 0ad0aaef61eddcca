"""Single records read back from the log by their place: bodies for a task's course, and dead letters."""

from __future__ import annotations

import asyncio
from typing import Final

from aiokafka import TopicPartition

from evenflow.core.errors import Unavailable
from evenflow.platform.broker.ports import Consumer, Record
from evenflow.platform.runtime import Runtime

READ_TIMEOUT_S: Final = 5.0
POLL_MS: Final = 200
RECORDS_MAX: Final = 500


class LogReader:
    """One consumer without a group, moved to where something is to be read; readers take turns."""

    def __init__(self, runtime: Runtime) -> None:
        self._consumer: Consumer = runtime.transport.consumer(client_id=f"{runtime.name}-{runtime.instance}-reader")
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Connect."""
        await self._consumer.start()

    async def stop(self) -> None:
        """Disconnect."""
        await self._consumer.stop()

    async def one(self, topic: str, partition: int, offset: int) -> Record | None:
        """The record at a place; None when it expired, was compacted away or never was. Raises Unavailable."""
        found = await self.run(topic, partition, offset, 1)
        return found[0] if found and found[0].offset == offset else None

    async def bounds(self, topics: list[str]) -> dict[str, tuple[int, int]]:
        """First and end offset of partition 0 of each topic. Raises Unavailable."""
        partitions = [TopicPartition(topic, 0) for topic in topics]
        async with self._turn:
            try:
                async with asyncio.timeout(READ_TIMEOUT_S):
                    first = await self._consumer.beginning_offsets(partitions)
                    end = await self._consumer.end_offsets(partitions)
            except TimeoutError:
                raise Unavailable("the log did not answer") from None
        return {p.topic: (first[p], end[p]) for p in partitions}

    async def run(self, topic: str, partition: int, offset: int, count: int) -> list[Record]:
        """Up to `count` records of a partition from an offset on, none past its present end. Raises Unavailable."""
        place = TopicPartition(topic, partition)
        found: list[Record] = []
        async with self._turn:
            try:
                async with asyncio.timeout(READ_TIMEOUT_S):
                    self._consumer.assign([place])
                    first = (await self._consumer.beginning_offsets([place]))[place]
                    end = (await self._consumer.end_offsets([place]))[place]
                    position = max(offset, first)
                    if position < end:
                        self._consumer.seek(place, position)
                    while len(found) < count and position < end:
                        wanted = min(RECORDS_MAX, count - len(found))
                        batches = await self._consumer.getmany(timeout_ms=POLL_MS, max_records=wanted)
                        found += [record for record in batches.get(place, []) if record.offset < end]
                        position = await self._consumer.position(place)
            except TimeoutError:
                raise Unavailable(f"the log did not answer for {topic}/{partition}") from None
        return found
