"""The embedded producer: aiokafka's methods, errors and states, without a network.

It is idempotent: each record has a sequence number in its partition. With a transactional id it goes through the states
of aiokafka's, so that code proved here behaves the same there:

    ready → in transaction → ready            commit, abort
    in transaction → abortable error → ready  the storage failed; only abort works
    any → fatal error                         fenced; every later call but stop is an AssertionError
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from aiokafka import TopicPartition
from aiokafka.errors import (
    IllegalOperation,
    InvalidTimestampError,
    MessageSizeTooLargeError,
    ProducerClosed,
    ProducerFenced,
)
from aiokafka.structs import OffsetAndMetadata, RecordMetadata

from evenflow.platform.broker.embedded.clients.giving_way import give_way
from evenflow.platform.broker.embedded.clients.offsets import offset_rows
from evenflow.platform.broker.embedded.records import LogRecord, record_size

if TYPE_CHECKING:
    from aiokafka.errors import KafkaError

    from evenflow.platform.broker.embedded.log import EmbeddedLog
    from evenflow.platform.broker.embedded.transactions import Identity, OpenTransaction
    from evenflow.platform.broker.ports import Headers
    from evenflow.platform.clock import Clock

REQUEST_BYTES_MAX = 1_048_576
BATCH_BYTES_MAX = 1_048_576
TIMESTAMP_MS_MAX = (1 << 63) - 1


class State(Enum):
    """Where a transactional producer stands."""

    UNINITIALIZED = "uninitialized"
    READY = "ready"
    IN_TRANSACTION = "in transaction"
    ABORTABLE_ERROR = "abortable error"
    FATAL_ERROR = "fatal error"


class Batch:
    """Records for one partition, gathered before they are sent together."""

    def __init__(self, bytes_max: int) -> None:
        self.rows: list[tuple[bytes | None, bytes | None, int | None, Headers]] = []
        self._left = bytes_max

    def append(
        self, *, key: bytes | None, value: bytes | None, timestamp: int | None, headers: Headers = ()
    ) -> int | None:
        """Add a record; None, and nothing added, when it doesn't fit. Otherwise its place in the batch."""
        size = record_size(key, value, headers)
        if size > self._left:
            return None
        self._left -= size
        self.rows.append((key, value, timestamp, headers))
        return len(self.rows) - 1


class Outgoing(Protocol):
    """A record on its way out."""

    @property
    def topic(self) -> str: ...
    @property
    def key(self) -> bytes: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...


class EmbeddedProducer:
    """A writer of the embedded log. See `ports.Producer`. `clock` stamps records that come without a time."""

    def __init__(
        self,
        log: EmbeddedLog,
        *,
        clock: Clock,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 60_000,
        max_request_size: int = REQUEST_BYTES_MAX,
    ) -> None:
        self.log = log
        self._clock = clock
        self._transactional_id = transactional_id
        self._timeout_ms = transaction_timeout_ms
        self._request_bytes_max = max_request_size
        self._state = State.UNINITIALIZED
        self._producer_id = -1
        self._epoch = -1
        self._sequences: dict[TopicPartition, int] = {}
        self._transaction: OpenTransaction | None = None
        self._started = False
        self._closed = False

    async def start(self) -> None:
        """Get a producer id; with a transactional id, fence the earlier producers of it."""
        await give_way()
        if self._transactional_id is None:
            self._producer_id = self.log.transactions.new_producer_id()
        else:
            identity = self.log.transactions.initialise(self._transactional_id, self._timeout_ms)
            self._producer_id, self._epoch = identity.producer_id, identity.epoch
            self._state = State.READY
        self._started = True
        await give_way()

    async def stop(self) -> None:
        """Write what waits. An open transaction stays open until its time-out or its id's next producer."""
        if not self._closed:
            self._closed = True
            if self._started:
                self.log.flush()
                if self._transactional_id is None:
                    self.log.forget_sequences(self._producer_id)
        await give_way()

    async def flush(self) -> None:
        """Until everything sent is written."""
        self.log.flush()
        await give_way()

    async def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Hand a record over; the future has its place once it is written.

        Raises UnknownTopicOrPartitionError at once, MessageSizeTooLargeError above the request's limit,
        IllegalOperation outside of a transaction, ProducerClosed, TypeError for anything but bytes,
        InvalidTimestampError, and AssertionError for neither key nor value or a partition the topic doesn't have.
        """
        row = self._row(topic, value, key, partition, timestamp_ms, headers)
        if self._transactional_id is not None:
            try:
                row.transaction = self._open()
            except ProducerFenced as error:
                return self._failed(error)
        self._number(row)
        return self.log.submit(row)

    async def send_together(
        self, records: Sequence[Outgoing], partitions: Sequence[int | None] | None = None
    ) -> list[int]:
        """Hand over many records and wait until all are written; their offsets. `partitions`: None = by the key.

        Cheaper than `send` for each: they share one future. Raises the first error; what `send` refuses at once keeps
        all of them back.
        """
        chosen = partitions or [None] * len(records)
        rows = [
            self._row(one.topic, one.value, one.key, partition, None, one.headers)
            for one, partition in zip(records, chosen, strict=True)
        ]
        if not rows:
            return []
        transaction = self._open() if self._transactional_id is not None else None
        for row in rows:
            row.transaction = transaction
            self._number(row)
        await self.log.submit_together(rows)
        return [row.offset for row in rows]

    def _row(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Headers | None,
    ) -> LogRecord:
        """A record as it will be appended, or the error with which the client refuses it at once."""
        if key is None and value is None:
            message = "Need at least one: key or value"
            raise AssertionError(message)
        found = self.log.topics.get(topic) or self.log.topic(topic)
        if self._closed or not self._started:
            raise ProducerClosed
        if self._transactional_id is not None and self._state is not State.IN_TRANSACTION:
            message = "Can't send messages while not in transaction"
            raise IllegalOperation(message)
        sent_headers = headers or ()
        size = record_size(key, value, sent_headers)
        if size > self._request_bytes_max:
            message = f"The message is {size} bytes when serialized which is larger than {self._request_bytes_max}"
            raise MessageSizeTooLargeError(message)
        if partition is None:
            partition = found.next_partition() if key is None else self.log.hash_of(key) % len(found.partitions)
        elif not 0 <= partition < len(found.partitions):
            message = "Unrecognized partition"
            raise AssertionError(message)
        now_ms = self._clock.now_ms() if timestamp_ms is None else timestamp_ms
        if not 0 <= now_ms <= TIMESTAMP_MS_MAX:
            message = f"a time of {now_ms} ms is outside of 0 to {TIMESTAMP_MS_MAX}"
            raise InvalidTimestampError(message)
        return LogRecord(topic, partition, -1, now_ms, key, value, sent_headers, 0, size)

    def _number(self, row: LogRecord) -> None:
        """Give a record its number within its partition, so that a repetition is known."""
        place = self.log.topics[row.topic].partitions[row.partition].key
        row.producer_id = self._producer_id
        row.sequence = sequence = self._sequences.get(place, 0)
        self._sequences[place] = sequence + 1

    def _failed(self, error: KafkaError) -> asyncio.Future[RecordMetadata]:
        future: asyncio.Future[RecordMetadata] = self.log.loop.create_future()
        future.set_exception(error)
        return future

    async def send_and_wait(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
    ) -> RecordMetadata:
        """`send`, and wait until it is written. Raises as `send`, and what the log answers."""
        return await (await self.send(topic, value, key, partition, timestamp_ms, headers))

    def create_batch(self) -> Batch:
        """An empty batch."""
        return Batch(BATCH_BYTES_MAX)

    async def send_batch(
        self, batch: Batch, topic: str, *, partition: int | None = None
    ) -> asyncio.Future[RecordMetadata]:
        """Send a batch to one partition (keys do not route); the future has the place of its first record."""
        found = self.log.topic(topic)
        number = found.next_partition() if partition is None else partition
        futures = [
            await self.send(topic, value, key, number, timestamp, headers)
            for key, value, timestamp, headers in batch.rows
        ]
        if not futures:
            message = "an empty batch can't be sent"
            raise ValueError(message)
        return futures[0]

    # ---- transactions

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[EmbeddedProducer]:
        """Commit at the end of the block, abort when it raises; the error comes out, also where nobody can abort."""
        await self.begin_transaction()
        try:
            yield self
        except BaseException:
            if self._state is not State.FATAL_ERROR:
                await self.abort_transaction()
            raise
        await self.commit_transaction()

    async def begin_transaction(self) -> None:
        """Begin. A fenced producer may begin once more; it learns the truth at its first write."""
        self._require_transactional()
        await give_way()
        self._go(State.IN_TRANSACTION, State.READY)

    async def send_offsets_to_transaction(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata], group_id: str
    ) -> None:
        """Commit a group's offsets with the transaction. The group's generation is not checked, as on Kafka.

        Raises ProducerFenced, IllegalOperation outside of a transaction, ValueError for no offsets.
        """
        self._require_transactional()
        if self._state is not State.IN_TRANSACTION:
            message = "Not in the middle of a transaction"
            raise IllegalOperation(message)
        if not group_id:
            raise ValueError(group_id)
        rows = offset_rows(group_id, offsets)
        await give_way()
        transaction = self._open()
        for group, topic, number, offset, metadata in rows:
            transaction.offsets[group, topic, number] = (offset, metadata)

    async def commit_transaction(self) -> None:
        """Commit: records, markers and offsets become visible together. Raises ProducerFenced, or the storage's error.

        A record that was refused is missing then: its future has the error, so await every send before.
        """
        self._require_transactional()
        await give_way()
        self.log.flush()
        if self._state is State.IN_TRANSACTION and self._transaction is not None and self._transaction.failed:
            self._state = State.ABORTABLE_ERROR
        if self._state is State.ABORTABLE_ERROR and self._transaction is not None and self._transaction.failed:
            raise self._transaction.failed
        self._go(State.IN_TRANSACTION, State.IN_TRANSACTION)
        self._end(commit=True)
        await give_way()

    async def abort_transaction(self) -> None:
        """Abort: what was sent is never seen by read_committed, offsets stay. Raises ProducerFenced."""
        self._require_transactional()
        await give_way()
        self.log.flush()
        self._go(State.IN_TRANSACTION, State.IN_TRANSACTION, State.ABORTABLE_ERROR)
        self._end(commit=False)
        await give_way()

    def _end(self, *, commit: bool) -> None:
        try:
            self._require_live()
            self.log.transactions.end(self._transactional_id or "", self._epoch, commit=commit)
        except ProducerFenced:
            self._state = State.FATAL_ERROR
            raise
        self._transaction = None
        self._state = State.READY

    def _open(self) -> OpenTransaction:
        """The log's transaction for what is written now. Raises ProducerFenced, and is fatal then."""
        if self._transaction is None or self._transaction.over is not None:
            try:
                identity = self._require_live()
            except ProducerFenced:
                self._state = State.FATAL_ERROR
                raise
            self._transaction = self.log.transactions.begin(identity)
        return self._transaction

    def _require_live(self) -> Identity:
        """The id. Raises ProducerFenced when another producer took it, or the time-out aborted the transaction."""
        if self._transaction is not None and self._transaction.over is not None:
            raise ProducerFenced
        return self.log.transactions.require(self._transactional_id or "", self._epoch)

    def _go(self, target: State, *sources: State) -> None:
        if self._state not in sources:
            message = f"Invalid state transition {self._state.value} -> {target.value}"
            raise AssertionError(message)
        self._state = target

    def _require_transactional(self) -> None:
        if self._transactional_id is None:
            message = "You need to configure transaction_id to use transactions"
            raise IllegalOperation(message)
