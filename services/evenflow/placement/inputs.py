"""The inputs of a leader: tasks, runs, checkpoints, from the offsets that its own state names."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from evenflow.events.streams import BY_NAME, CHECKPOINTS, RUNS, TASKS
from evenflow.placement.settings import PlacementSettings
from evenflow.platform.broker.codec import Bad, Received, decode
from evenflow.platform.broker.ports import Consumer, Record
from evenflow.platform.cancelling import watched
from evenflow.platform.runtime import Runtime

STREAMS: Final = (TASKS, RUNS, CHECKPOINTS)
POLL_MS: Final = 1_000
PAUSE_S: Final = 0.2
SHOW_LIMIT_S: Final = 1.0
SHOW_PERIOD_MS: Final = 1_000


@dataclass(slots=True)  # never changed; not frozen, which triples the cost of what is made for every record
class Input:
    """One record of the inputs, as read and as understood."""

    record: Record
    received: Received | Bad

    @property
    def place(self) -> str:
        """topic/partition, as offsets are kept."""
        return f"{self.record.topic}/{self.record.partition}"


class Inputs:
    """Reads ahead into a bounded buffer, in order within each partition."""

    def __init__(self, runtime: Runtime, settings: PlacementSettings, wake: Callable[[], None]) -> None:
        self._runtime = runtime
        self._settings = settings
        self._wake = wake
        self._buffer: deque[Record] = deque()
        self._room = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None
        self._shown_ms = 0
        # The group is for displays of lag only: nobody reads these offsets back.
        self._consumer: Consumer = runtime.transport.consumer(
            client_id=f"{runtime.name}-{runtime.instance}-inputs",
            group_id=lag_group(runtime.name, settings.pool),
            auto_offset_reset="none",
        )

    async def start(self, offsets: Mapping[str, int], failed: Callable[[BaseException], None]) -> None:
        """Take every partition, at the offset in the state or else at its beginning."""
        consumer = self._consumer
        await consumer.start()
        partitions = [TopicPartition(stream.name, index) for stream in STREAMS for index in range(stream.partitions)]
        consumer.assign(partitions)
        begin = await consumer.beginning_offsets(partitions)
        for partition in partitions:
            known = offsets.get(f"{partition.topic}/{partition.partition}", 0)
            consumer.seek(partition, max(known, begin[partition]))
        self._pump = asyncio.get_running_loop().create_task(self._read())
        self._pump.add_done_callback(lambda task: _report(task, failed))
        watched(self._pump, failed)

    async def stop(self) -> None:
        """Stop reading."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)
        await self._consumer.stop()

    async def _read(self) -> None:
        limit = self._settings.round_records_max
        while True:
            try:
                batches = await self._consumer.getmany(timeout_ms=POLL_MS, max_records=limit)
            except KafkaError as error:
                if not error.retriable:
                    raise
                await self._runtime.clock.sleep(PAUSE_S)
                continue
            for records in batches.values():
                self._buffer.extend(records)
            if batches:
                self._wake()
            while len(self._buffer) >= 2 * limit:
                self._room.clear()
                await self._room.wait()

    @property
    def waiting_count(self) -> int:
        """Records read and not yet taken."""
        return len(self._buffer)

    def take(self) -> list[Input]:
        """The next records, at most a round's worth."""
        count = min(len(self._buffer), self._settings.round_records_max)
        taken = [self._buffer.popleft() for _ in range(count)]
        self._room.set()
        return [Input(record, decode(record, BY_NAME[record.topic])) for record in taken]

    async def show(self, offsets: Mapping[str, int]) -> None:
        """Commit offsets for displays, at most once a second; a failure is none of the rounds' business."""
        now_ms = self._runtime.clock.monotonic_ms()
        if now_ms - self._shown_ms < SHOW_PERIOD_MS or not offsets:
            return
        self._shown_ms = now_ms
        try:
            async with asyncio.timeout(SHOW_LIMIT_S):
                await self._consumer.commit({_partition(place): offset for place, offset in offsets.items()})
        except (TimeoutError, KafkaError, AssertionError) as error:
            self._runtime.log.debug("lag not shown", problem=f"{type(error).__name__}: {error}")


def lag_group(service: str, pool: str) -> str:
    """The group in which a pool shows how far its rounds have read."""
    return f"{service}.{pool}-lag"


def _partition(place: str) -> TopicPartition:
    topic, _, number = place.rpartition("/")
    return TopicPartition(topic, int(number))


def _report(task: asyncio.Task[None], failed: Callable[[BaseException], None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        failed(error)
