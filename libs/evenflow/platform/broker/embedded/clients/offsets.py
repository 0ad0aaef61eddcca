"""A consumer's offsets: committing, seeking, pausing, and asking where a partition begins and ends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from aiokafka import TopicPartition
from aiokafka.errors import CommitFailedError, ConsumerStoppedError, IllegalOperation, KafkaError
from aiokafka.structs import OffsetAndMetadata, OffsetAndTimestamp

from evenflow.platform.broker.embedded.clients.giving_way import give_way

if TYPE_CHECKING:
    from evenflow.platform.broker.embedded.clients.positions import Positions
    from evenflow.platform.broker.embedded.log import EmbeddedLog

#: Pause before a commit is tried again, as the client's `retry_backoff_ms`.
RETRY_BACKOFF_S: Final = 0.1

Offsets = Mapping[TopicPartition, int | OffsetAndMetadata]


class OffsetControl:
    """The part of a consumer that has to do with offsets only."""

    def __init__(self, log: EmbeddedLog, group_id: str | None, positions: Positions) -> None:
        self.log = log
        self.group_id = group_id
        self._positions = positions
        self._closed = False

    @property
    def stopped(self) -> bool:
        """Whether the consumer was stopped."""
        return self._closed

    def wake(self) -> None:
        """Let waiting polls look again."""

    def wake_for(self, key: TopicPartition) -> None:
        """A partition may be read further: let waiting polls look there."""

    def _must_not_commit(self) -> bool:
        return False

    def _may_name(self) -> bool:
        return True

    async def commit(self, offsets: Offsets | None = None) -> None:
        """Commit offsets, or the positions; tried again for as long as the log says that it may work later.

        Raises CommitFailedError when the group went on without this member, IllegalStateError for a partition that is
        not assigned, IllegalOperation without a group, ValueError for an empty mapping.
        """
        self._require_group()
        if self._closed:
            raise ConsumerStoppedError
        rows = self._rows(offsets)
        await give_way()
        while not self._closed:
            if self._must_not_commit():
                message = (
                    "Commit cannot be completed since the group has already rebalanced and may have assigned the "
                    "partitions to another member"
                )
                raise CommitFailedError(message)
            if not rows:
                return
            try:
                await self.log.commit(rows)
            except KafkaError as error:
                if not error.retriable:
                    raise
            else:
                return
            await asyncio.sleep(RETRY_BACKOFF_S)
        raise ConsumerStoppedError

    def _rows(self, offsets: Offsets | None) -> list[tuple[str, str, int, int, str]]:
        group = self._require_group()
        if offsets is None:
            return [(group, key.topic, key.partition, offset, "") for key, offset in self._positions.consumed().items()]
        rows = offset_rows(group, offsets)
        if self._may_name():
            for key in offsets:
                self._positions.place(key)
        return rows

    def _require_group(self) -> str:
        if self.group_id is None:
            message = "Requires group_id"
            raise IllegalOperation(message)
        return self.group_id

    async def committed(self, partition: TopicPartition) -> int | None:
        """The group's committed offset. Raises IllegalOperation without a group."""
        group = self._require_group()
        await give_way()
        return self.log.committed(group, partition)

    async def position(self, partition: TopicPartition) -> int:
        """The offset of the next record. Raises IllegalStateError, and the errors of the reset rule "none"."""
        await give_way()
        return self._positions.find(self._positions.place(partition))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go to an offset. Raises IllegalStateError when the partition is not assigned, ValueError below 0."""
        if not isinstance(offset, int) or offset < 0:
            message = "Offset must be a positive integer"
            raise ValueError(message)
        self._positions.seek(partition, offset, self.wake)
        self.wake()

    async def seek_to_beginning(self, *partitions: TopicPartition) -> bool:
        """Go to the first offset of some or all assigned partitions."""
        await give_way()
        for key in partitions or tuple(self._positions.keys()):
            self.seek(key, self._positions.place(key).partition.start)
        return True

    async def seek_to_end(self, *partitions: TopicPartition) -> bool:
        """Go to the end, as this consumer's isolation sees it."""
        await give_way()
        for key in partitions or tuple(self._positions.keys()):
            self.seek(key, self._positions.end(self._positions.place(key).partition))
        return True

    async def seek_to_committed(self, *partitions: TopicPartition) -> dict[TopicPartition, int | None]:
        """Go to the group's offsets where there are any; the answer has them all."""
        group = self._require_group()
        await give_way()
        found: dict[TopicPartition, int | None] = {}
        for key in partitions or tuple(self._positions.keys()):
            self._positions.place(key)
            found[key] = offset = self.log.committed(group, key)
            if offset is not None:
                self.seek(key, offset)
        return found

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of these partitions."""
        for key in partitions:
            self._positions.pause(key, paused=True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Go on with these partitions."""
        for key in partitions:
            self._positions.pause(key, paused=False)
        self.wake()

    def paused(self) -> set[TopicPartition]:
        """The partitions that stand still."""
        return self._positions.paused()

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """First offsets. Raises UnknownTopicOrPartitionError."""
        await give_way()
        return {key: self.log.partition(key).start for key in partitions}

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Ends: the last stable offset for read_committed. Raises UnknownTopicOrPartitionError."""
        await give_way()
        return {key: self._positions.end(self.log.partition(key)) for key in partitions}

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first offset at or after each time (milliseconds), None past the end. Raises ValueError below 0."""
        await give_way()
        answer: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        for key, timestamp_ms in timestamps.items():
            if timestamp_ms < 0:
                message = f"The target time for partition {key} is {timestamp_ms}. It can't be negative"
                raise ValueError(message)
            found = self.log.partition(key).offset_at(timestamp_ms)
            answer[key] = None if found is None else OffsetAndTimestamp(*found)
        return answer

    def highwater(self, partition: TopicPartition) -> int | None:
        """The end of an assigned partition, open transactions included."""
        return self._positions.place(partition).partition.next


def offset_rows(group: str, offsets: Offsets) -> list[tuple[str, str, int, int, str]]:
    """Offsets as the log stores them. Raises ValueError for an empty mapping or a negative offset."""
    if not offsets:
        raise ValueError(offsets)
    rows = []
    for key, value in offsets.items():
        offset, metadata = (value, "") if isinstance(value, int) else (value[0], value[1])
        if offset < 0:
            raise ValueError(offsets)
        rows.append((group, key.topic, key.partition, offset, metadata))
    return rows
