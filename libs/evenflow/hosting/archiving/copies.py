"""Copies of what a log loses by its age, where the log does not ask first: Apache Kafka expires by itself.

Every stream that the registry archives is read by one consumer group and written to the object store as runs of
records, in the form of the embedded log's archive. A run's offset is committed when its object is there, so a copy that
ends is made again; readers take each offset once. Any number of processes may share the partitions.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from evenflow.core.errors import EvenflowError
from evenflow.events.streams import BY_NAME
from evenflow.platform.broker.embedded.archive import ObjectArchive
from evenflow.platform.broker.ports import Consumer, Transport
from evenflow.platform.clock import Clock
from evenflow.platform.stores.ports import Objects

#: The name begins with the console's, in whose process it runs: its user may join such groups.
GROUP: Final = "evenflow.console.archive"
POLL_MS: Final = 500
RECORDS_MAX: Final = 5_000
TOPICS: Final = tuple(stream.name for stream in BY_NAME.values() if stream.archive)


class LogCopies:
    """Runs beside the console; a step every `period_s` copies all that is there and not yet copied."""

    name = "log-copies"

    def __init__(self, transport: Transport, objects: Objects, clock: Clock, logger: Any, period_s: float) -> None:
        self._transport = transport
        self._archive = ObjectArchive(objects, lambda topic: topic in TOPICS)
        self._clock = clock
        self._logger = logger
        self._period_s = period_s
        self._consumer: Consumer | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin; the first step is due at once."""
        self._task = asyncio.get_running_loop().create_task(self._repeat())

    async def stop(self) -> None:
        """End between two steps or in one: what is not committed is copied again by whoever comes next."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._leave()

    async def wait(self) -> None:
        """Return when stopped; raise what ended the copying otherwise."""
        if self._task is not None:
            await asyncio.wait({self._task})
            if not self._task.cancelled() and (error := self._task.exception()) is not None:
                raise error

    async def _repeat(self) -> None:
        while True:
            try:
                copied = await self._step()
            except (EvenflowError, KafkaError, OSError) as error:
                self._logger.warning("archive not written", problem=f"{type(error).__name__}: {error}")
                await self._leave()  # the next one begins behind what is committed
            else:
                if copied:
                    self._logger.info("archive written", records=copied)
            await self._clock.sleep(self._period_s)

    async def _step(self) -> int:
        consumer = await self._joined()
        copied = 0
        while batches := await consumer.getmany(timeout_ms=POLL_MS, max_records=RECORDS_MAX):
            for partition, records in batches.items():
                await self._archive.archive(partition.topic, partition.partition, records)
                await consumer.commit({partition: records[-1].offset + 1})
                copied += len(records)
        return copied

    async def _joined(self) -> Consumer:
        if self._consumer is None:
            consumer = self._transport.consumer(*TOPICS, client_id=GROUP, group_id=GROUP)
            try:
                await consumer.start()
            except BaseException:
                await consumer.stop()
                raise
            self._consumer = consumer
            await self._say_what_is_missing(consumer)
        return self._consumer

    async def _say_what_is_missing(self, consumer: Consumer) -> None:
        """What expired before anybody copied it is gone; that is said, once a start."""
        partitions = [TopicPartition(topic, index) for topic in TOPICS for index in range(BY_NAME[topic].partitions)]
        begins = await consumer.beginning_offsets(partitions)
        for partition in partitions:
            committed = await consumer.committed(partition) or 0
            if begins[partition] > committed:
                place = f"{partition.topic}/{partition.partition}"
                self._logger.error("expired before it was archived", place=place, offsets=begins[partition] - committed)

    async def _leave(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.stop()
