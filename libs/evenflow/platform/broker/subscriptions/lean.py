"""Handing records to handlers without FastStream's stack, for the simulation alone.

Same handlers, same decoding, same retries and dead letters, same order and acknowledgement: one consumer for each
subscription, one record (or one batch) at a time, committed when handled, sought back when not. FastStream's own stack
costs four times what all of that does, which matters where hundreds of thousands of records pass in a minute of virtual
hours. A test compares the two record by record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from evenflow.platform.broker.codec import decode
from evenflow.platform.broker.ports import Consumer, Record
from evenflow.platform.broker.subscriptions.subscription import Handle, Subscription, group_of
from evenflow.platform.runtime import Runtime

POLL_MS: Final = 1_000
STOP_S: Final = 10.0


class LeanRunner:
    """Runs subscriptions on plain consumers."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._workers: list[_Worker] = []

    async def start(self, subscriptions: Sequence[Subscription], handle: Handle) -> None:
        """Join every group, then begin."""
        runtime = self._runtime
        for subscription in subscriptions:
            consumer = runtime.transport.consumer(
                subscription.stream.name,
                client_id=f"{runtime.name}-{runtime.instance}",
                group_id=group_of(runtime.name, subscription.stream),
            )
            await consumer.start()
            self._workers.append(_Worker(consumer, subscription, handle))
        for worker in self._workers:
            worker.begin()

    async def stop(self) -> None:
        """Let handlers finish within a bound, then leave the groups."""
        for worker in self._workers:
            await worker.stop()
        self._workers.clear()


class _Worker:
    """One member of a subscription's group."""

    def __init__(self, consumer: Consumer, subscription: Subscription, handle: Handle) -> None:
        self._consumer = consumer
        self._subscription = subscription
        self._handle = handle
        self._task: asyncio.Task[None] | None = None
        self._polling = False
        self._stopping = False

    def begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        self._stopping = True
        if self._task is not None:
            if not self._polling:
                await asyncio.wait({self._task}, timeout=STOP_S)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._consumer.stop()

    async def _run(self) -> None:
        limit = self._subscription.max_records
        while not self._stopping:
            self._polling = True
            batches = await self._consumer.getmany(timeout_ms=POLL_MS, max_records=limit)
            self._polling = False
            if batches:
                await self._take([record for records in batches.values() for record in records])

    async def _take(self, records: Sequence[Record]) -> None:
        stream = self._subscription.stream
        try:
            await self._handle([decode(record, stream) for record in records], records, self._subscription.handler)
        except Exception:  # noqa: BLE001  whatever came out of the retries: nothing is committed, the log gives it again
            self._back(records)
            return
        ends = {TopicPartition(record.topic, record.partition): record.offset + 1 for record in records}
        try:
            await self._consumer.commit(ends)
        except KafkaError:
            return  # the group moved on, or the log is away: they come again, which handlers bear

    def _back(self, records: Sequence[Record]) -> None:
        first: dict[TopicPartition, int] = {}
        for record in records:
            first.setdefault(TopicPartition(record.topic, record.partition), record.offset)
        held = self._consumer.assignment()
        for partition, offset in first.items():
            if partition in held:
                self._consumer.seek(partition, offset)
