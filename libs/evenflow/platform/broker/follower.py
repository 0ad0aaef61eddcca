"""Following a stream from its beginning without a group: how a service holds a table of others' facts.

`start` returns when everything that was on the log at that moment has been applied; afterwards the tail is applied as
it comes. Unreadable records are counted and passed over: the group reader of the stream parks them. So is a record that
`apply` refuses; anything else that it raises is a fault of ours, and ends whoever rests on the table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from evenflow.core.errors import Refused, Unavailable
from evenflow.events.streams import BY_NAME, Stream
from evenflow.platform.broker.codec import Bad, Received, decode
from evenflow.platform.broker.embedded.archive import read_archive
from evenflow.platform.broker.ports import Consumer, Record
from evenflow.platform.cancelling import watched
from evenflow.platform.observability.signals import FOLLOWED
from evenflow.platform.runtime import Runtime
from evenflow.platform.stores.ports import Damaged

POLL_MS: Final = 1_000
CATCH_UP_POLL_MS: Final = 50
RECORDS_MAX: Final = 1_000
PAUSE_S: Final = 0.2
CATCH_UP_STUCK_MS: Final = 60_000


class Follower:
    """A groupless reader of whole streams, in order within each partition. `ended` is told what it can't survive.

    With `pace` nobody waits for the table: it is read in the background from the beginning, and `pace` is awaited
    after every poll (RECORDS_MAX records at most), so that a slow store slows the reading and nothing piles up.
    Of the streams in `past`, what the log lost by its age is read from the archive first.
    """

    def __init__(
        self,
        runtime: Runtime,
        streams: Sequence[Stream],
        apply: Callable[[Received], None],
        ended: Callable[[BaseException], None],
        pace: Callable[[], Awaitable[None]] | None = None,
        past: Sequence[Stream] = (),
    ) -> None:
        self._runtime = runtime
        self._streams = tuple(streams)
        self._past = [TopicPartition(stream.name, index) for stream in past for index in range(stream.partitions)]
        self._apply = apply
        self._ended = ended
        self._pace = pace
        self._consumer: Consumer | None = None
        self._task: asyncio.Task[None] | None = None
        self._from_the_beginning = False
        self._past_is_due = False
        self.unreadable_count = 0
        self.applied_count = 0
        self._followed = runtime.metrics.of(FOLLOWED)

    async def start(self) -> None:
        """Read up to the present end of every stream, then go on in the background."""
        runtime = self._runtime
        consumer = runtime.transport.consumer(client_id=f"{runtime.name}-{runtime.instance}-follower")
        self._consumer = consumer
        await consumer.start()
        partitions = [TopicPartition(s.name, index) for s in self._streams for index in range(s.partitions)]
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions) if self._pace is None else {}
        await consumer.seek_to_beginning(*partitions)
        if self._pace is None:
            await self._read_past(consumer)
        else:
            self._past_is_due = bool(self._past)
        await self._catch_up(consumer, {p: end for p, end in ends.items() if end > 0})
        tail = asyncio.get_running_loop().create_task(self._tail(consumer), name=f"{runtime.name}'s followed tables")
        self._task = watched(tail, self._ended)

    async def stop(self) -> None:
        """Stop following."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._consumer is not None:
            await self._consumer.stop()

    def read_again(self) -> None:
        """Apply everything once more, from the beginning of every stream: what was made of it is lost."""
        self._from_the_beginning = True

    async def _catch_up(self, consumer: Consumer, ends: dict[TopicPartition, int]) -> None:
        clock = self._runtime.clock
        moved_ms = clock.monotonic_ms()
        left = dict(ends)
        while left:
            before = self.applied_count + self.unreadable_count
            await self._poll(consumer, CATCH_UP_POLL_MS)
            now_ms = clock.monotonic_ms()
            reached = [p for p, end in left.items() if await consumer.position(p) >= end]
            for partition in reached:
                del left[partition]
            if reached or self.applied_count + self.unreadable_count > before:
                moved_ms = now_ms
            elif now_ms - moved_ms > CATCH_UP_STUCK_MS:
                raise Unavailable(f"{self._runtime.name} can't read up to the end of {next(iter(left)).topic}")

    async def _tail(self, consumer: Consumer) -> None:
        """Go on for ever: a table that stopped in silence would be believed for as long as its process lives."""
        while True:
            try:
                if self._from_the_beginning:
                    await consumer.seek_to_beginning(*consumer.assignment())
                    self._from_the_beginning, self._past_is_due = False, bool(self._past)
                if self._past_is_due:
                    await self._read_past(consumer)
                    self._past_is_due = False
                await self._poll(consumer, POLL_MS)
            except (KafkaError, OSError, Unavailable) as error:
                self._runtime.log.warning("table not followed", problem=f"{type(error).__name__}: {error}")
                await self._runtime.clock.sleep(PAUSE_S)
            except Exception as error:
                self._ended(error)
                raise

    async def _poll(self, consumer: Consumer, timeout_ms: int) -> None:
        batches = await consumer.getmany(timeout_ms=timeout_ms, max_records=RECORDS_MAX)
        for partition, records in batches.items():
            stream = BY_NAME[partition.topic]
            self._followed.record(len(records), topic=partition.topic)
            for record in records:
                self._take(record, stream)
        if batches and self._pace is not None:
            await self._pace()

    async def _read_past(self, consumer: Consumer) -> None:
        """What expired, from the archive; then the log goes on behind it, also where more expired meanwhile."""
        if not self._past:
            return
        read = dict.fromkeys(self._past, 0)
        while True:
            begins = await consumer.beginning_offsets(self._past)
            behind = {partition: begin for partition, begin in begins.items() if begin > read[partition]}
            if not behind:
                return
            for partition, begin in behind.items():
                await self._read_archive(partition, read[partition], begin)
                read[partition] = begin
                consumer.seek(partition, begin)

    async def _read_archive(self, partition: TopicPartition, first: int, begin: int) -> None:
        count = 0
        try:
            async for record in read_archive(self._runtime.objects, partition.topic, partition.partition, first):
                if record.offset >= begin:
                    break
                self._take(record, BY_NAME[partition.topic])
                count += 1
                if self._pace is not None and count % RECORDS_MAX == 0:
                    await self._pace()
        except Damaged as error:
            # What stands behind it on the log is still true; a chain that lacks lines says so itself.
            self._runtime.log.error("archive damaged", problem=error.message)
        self._followed.record(count, topic=partition.topic)
        if self._pace is not None and count:
            await self._pace()

    def _take(self, record: Record, stream: Stream) -> None:
        received = decode(record, stream)
        if isinstance(received, Bad):
            self.unreadable_count += 1
            return
        try:
            self._apply(received)
        except Refused as refusal:
            self.unreadable_count += 1
            self._runtime.log.warning("record not applied", origin=received.origin, problem=refusal.message)
        else:
            self.applied_count += 1
