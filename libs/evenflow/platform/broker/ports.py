"""What services use of the log: shaped like aiokafka, offered by Apache Kafka and by the embedded log alike.

Only the methods named here are used anywhere in the product. `Transport` makes them; a service never builds a client
itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from aiokafka import ConsumerRebalanceListener, TopicPartition
from aiokafka.structs import OffsetAndMetadata, OffsetAndTimestamp, RecordMetadata

if TYPE_CHECKING:
    from faststream.kafka import KafkaBroker
    from faststream.middlewares import BaseMiddleware

Headers = Sequence[tuple[str, bytes]]
Isolation = Literal["read_committed", "read_uncommitted"]


class Record(Protocol):
    """One record as read: aiokafka's ConsumerRecord, or the embedded log's."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int:
        """Milliseconds, by the log's or the producer's wall clock."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes]]: ...


class Consumer(Protocol):
    """A reader, in a consumer group or with partitions assigned by hand."""

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    def subscribe(
        self,
        topics: Sequence[str] = (),
        pattern: str | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None: ...
    def assign(self, partitions: Iterable[TopicPartition]) -> None: ...
    def assignment(self) -> set[TopicPartition]: ...
    async def getone(self, *partitions: TopicPartition) -> Record: ...
    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int = 0, max_records: int | None = None
    ) -> Mapping[TopicPartition, Sequence[Record]]: ...
    async def commit(self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None) -> None: ...
    async def committed(self, partition: TopicPartition) -> int | None: ...
    async def position(self, partition: TopicPartition) -> int: ...
    def seek(self, partition: TopicPartition, offset: int) -> None: ...
    async def seek_to_beginning(self, *partitions: TopicPartition) -> bool: ...
    async def seek_to_end(self, *partitions: TopicPartition) -> bool: ...
    async def seek_to_committed(self, *partitions: TopicPartition) -> dict[TopicPartition, int | None]: ...
    def pause(self, *partitions: TopicPartition) -> None: ...
    def resume(self, *partitions: TopicPartition) -> None: ...
    def paused(self) -> set[TopicPartition]: ...
    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]: ...
    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]: ...
    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]: ...
    def partitions_for_topic(self, topic: str) -> set[int] | None: ...
    def highwater(self, partition: TopicPartition) -> int | None: ...


class Producer(Protocol):
    """A writer; with a transactional id it writes in transactions only."""

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def flush(self) -> None: ...
    async def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> asyncio.Future[RecordMetadata]: ...
    async def send_and_wait(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> RecordMetadata: ...
    async def begin_transaction(self) -> None: ...
    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], group_id: str
    ) -> None: ...
    async def commit_transaction(self) -> None: ...
    async def abort_transaction(self) -> None: ...


class TopicSettings(Protocol):
    """What the log must know to create a topic; the registry of streams provides it."""

    @property
    def name(self) -> str: ...
    @property
    def partitions(self) -> int: ...
    @property
    def configs(self) -> Mapping[str, str]:
        """By Kafka's own names: cleanup.policy, retention.ms, max.message.bytes and so on."""


class Transport(Protocol):
    """Makes every client of one log. `client_id` names the process in logs and metrics."""

    def broker(self, *, client_id: str, middlewares: Sequence[type[BaseMiddleware]] = ()) -> KafkaBroker: ...
    def consumer(
        self,
        *topics: str,
        client_id: str,
        group_id: str | None = None,
        isolation_level: Isolation = "read_committed",
        auto_offset_reset: Literal["earliest", "latest", "none"] = "earliest",
        session_timeout_ms: int = 10_000,
        max_poll_interval_ms: int = 300_000,
        sticky: bool = False,
    ) -> Consumer:
        """A consumer that never commits by itself. `sticky` picks the sticky assignor (the leader's seat needs it)."""

    def producer(self, *, client_id: str, transactional_id: str | None = None) -> Producer:
        """An idempotent producer with acks=all; sends are bounded in time by the caller."""

    async def provision(self, topics: Sequence[TopicSettings]) -> None:
        """Create the topics that are missing; a topic with other settings raises, naming the mend."""

    async def lag(self, group_id: str) -> dict[TopicPartition, int]:
        """Records between the group's committed offsets and the end, by partition."""
