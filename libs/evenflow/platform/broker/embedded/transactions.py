"""Transactions: ids, epochs and fencing, open transactions, their end and their time-out.

As on Kafka, records of a transaction are appended at once and become visible to read_committed readers when its end is
written; each partition it touched gets a marker that takes an offset. Initialising a transactional id aborts what it
had open and fences every earlier producer with that id. Unlike Kafka the markers and the group's offsets are written
before the commit is answered, so a committed offset is never stale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiokafka.errors import InvalidTransactionTimeout, KafkaStorageError, ProducerFenced

from evenflow.platform.broker.embedded.records import ABORT_MARKER, ABORTED, COMMIT_MARKER, LogRecord
from evenflow.platform.broker.embedded.storage.port import Change, StoredTransaction

if TYPE_CHECKING:
    import asyncio

    from evenflow.platform.broker.embedded.log import EmbeddedLog
    from evenflow.platform.broker.embedded.topics import Partition

MARKER_BYTES = 78
TIMEOUT_MS_MAX = 900_000
RETRY_S = 1.0


class OpenTransaction:
    """A transaction between its first record and its end. `over` then says how it ended, and is None before.

    `failed` is the error of a write that the storage could not take: such a transaction can only be aborted. A record
    that was refused is told to its sender alone, as on Kafka.
    """

    __slots__ = ("deadline", "epoch", "failed", "offsets", "over", "partitions", "records", "transactional_id")

    def __init__(self, transactional_id: str, epoch: int, deadline: float) -> None:
        self.transactional_id = transactional_id
        self.epoch = epoch
        self.deadline = deadline
        self.over: str | None = None
        self.failed: Exception | None = None
        self.partitions: dict[Partition, int] = {}
        self.records: list[LogRecord] = []
        self.offsets: dict[tuple[str, str, int], tuple[int, str]] = {}


class Identity:
    """What the log remembers of a transactional id."""

    __slots__ = ("epoch", "open", "producer_id", "timeout_ms", "transactional_id")

    def __init__(self, transactional_id: str, producer_id: int, epoch: int, timeout_ms: int) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.epoch = epoch
        self.timeout_ms = timeout_ms
        self.open: OpenTransaction | None = None

    def stored(self) -> StoredTransaction:
        """For the storage."""
        return StoredTransaction(self.transactional_id, self.producer_id, self.epoch, self.timeout_ms)


class Transactions:
    """The transaction coordinator of one log."""

    def __init__(self, log: EmbeddedLog) -> None:
        self._log = log
        self._identities: dict[str, Identity] = {}
        self._next_producer_id = 1
        self._timer: asyncio.TimerHandle | None = None

    def restore(self, stored: StoredTransaction, partitions: dict[int, Partition]) -> None:
        """Take over an id from the storage, with the transaction it had open."""
        identity = Identity(stored.transactional_id, stored.producer_id, stored.epoch, stored.timeout_ms)
        self._identities[stored.transactional_id] = identity
        self._next_producer_id = max(self._next_producer_id, stored.producer_id + 1)
        if not stored.first_offsets:
            return
        left = OpenTransaction(stored.transactional_id, stored.epoch, 0.0)
        for partition_id, first in sorted(stored.first_offsets.items()):
            left.partitions[partitions[partition_id]] = first
        identity.open = left

    def restored(self) -> None:
        """After the last id: hide what is open, oldest first in each partition."""
        spans = [
            (first, partition, identity.open)
            for identity in self._identities.values()
            if identity.open is not None
            for partition, first in identity.open.partitions.items()
        ]
        for first, partition, left in sorted(spans, key=lambda span: span[0]):
            partition.open[left] = first

    def attached(self) -> None:
        """The loop runs now: transactions left open by an earlier process get their time-out from here."""
        for identity in self._identities.values():
            if identity.open is not None:
                identity.open.deadline = self._log.loop.time() + identity.timeout_ms / 1000
                self._arm(identity.open.deadline)

    def new_producer_id(self) -> int:
        """An id for an idempotent producer."""
        self._next_producer_id += 1
        return self._next_producer_id - 1

    def initialise(self, transactional_id: str, timeout_ms: int) -> Identity:
        """Fence earlier producers of this id and abort what they left open.

        Raises InvalidTransactionTimeout beyond a quarter of an hour, as Kafka's default does.
        """
        if not 0 < timeout_ms <= TIMEOUT_MS_MAX:
            message = f"transaction_timeout_ms must be within 1 and {TIMEOUT_MS_MAX}, not {timeout_ms}"
            raise InvalidTransactionTimeout(message)
        self._log.flush()
        identity = self._identities.get(transactional_id)
        if identity is None:
            identity = Identity(transactional_id, self.new_producer_id(), -1, timeout_ms)
        elif identity.open is not None:
            self._end(identity, commit=False, fence=False)
        fresh = StoredTransaction(transactional_id, identity.producer_id, identity.epoch + 1, timeout_ms)
        self._log.storage.write(Change(identities=[fresh]))
        identity.epoch, identity.timeout_ms = fresh.epoch, timeout_ms
        self._log.forget_sequences(identity.producer_id)
        self._identities[transactional_id] = identity
        return identity

    def require(self, transactional_id: str, epoch: int) -> Identity:
        """The id, if this epoch is its newest. Raises ProducerFenced."""
        identity = self._identities[transactional_id]
        if identity.epoch != epoch:
            raise ProducerFenced
        return identity

    def begin(self, identity: Identity) -> OpenTransaction:
        """The transaction of this id, made at its first record or offset."""
        if identity.open is None:
            deadline = self._log.loop.time() + identity.timeout_ms / 1000
            identity.open = OpenTransaction(identity.transactional_id, identity.epoch, deadline)
            self._arm(deadline)
        return identity.open

    def end(self, transactional_id: str, epoch: int, *, commit: bool) -> None:
        """Commit or abort; without records and offsets there is nothing to write. Raises ProducerFenced."""
        identity = self.require(transactional_id, epoch)
        if identity.open is not None:
            self._end(identity, commit=commit, fence=False)

    def _end(self, identity: Identity, *, commit: bool, fence: bool) -> None:
        """One atomic change: markers, offsets, the id's new epoch when it is fenced by a time-out."""
        ending = identity.open
        if ending is None:
            return
        now_ms = self._log.clock.now_ms()
        kind = COMMIT_MARKER if commit else ABORT_MARKER
        markers = []
        change = Change(ended=[identity.transactional_id])
        for partition, first in ending.partitions.items():
            marker = LogRecord(
                partition.topic, partition.number, partition.next, now_ms, None, None, (), kind, MARKER_BYTES
            )
            markers.append((partition, marker))
            change.records.append((partition.partition_id, marker))
            if not commit:
                change.aborted.append((partition.partition_id, first, partition.next, identity.producer_id))
        if commit:
            change.offsets = [(*place, *value) for place, value in ending.offsets.items()]
        if fence:
            fenced = identity.stored()
            fenced.epoch += 1
            change.identities.append(fenced)
        self._log.storage.write(change)
        identity.epoch += 1 if fence else 0
        identity.open = None
        ending.over = "committed" if commit else "aborted"
        if not commit:
            for record in ending.records:
                record.kind = ABORTED
        ending.records = []
        for partition, marker in markers:
            del partition.open[ending]
            partition.next += 1
            partition.plain = False
            partition.tail.extend((marker,))
            self._log.cache.added(partition, 1, MARKER_BYTES)
        self._log.offsets_written(change.offsets)
        for partition, _ in markers:
            self._log.wake(partition)

    def _ended_by_time(self, identity: Identity) -> bool:
        """Abort and fence; False when the storage can't take it now, so that it is tried again."""
        self._log.flush()
        try:
            self._end(identity, commit=False, fence=True)
        except KafkaStorageError:
            return False
        return True

    def _arm(self, deadline: float) -> None:
        if self._timer is None or self._timer.cancelled():
            self._timer = self._log.loop.call_at(deadline, self._expire, context=self._log.world)
        elif self._timer.when() > deadline:
            self._timer.cancel()
            self._timer = self._log.loop.call_at(deadline, self._expire, context=self._log.world)

    def _expire(self) -> None:
        """Abort what is open for too long and fence its producer; look again when the next one is due."""
        self._timer = None
        now = self._log.loop.time()
        waiting = []
        for identity in self._identities.values():
            if identity.open is None:
                continue
            if identity.open.deadline <= now and not self._ended_by_time(identity):
                identity.open.deadline = now + RETRY_S
            if identity.open is not None:
                waiting.append(identity.open.deadline)
        if waiting:
            self._arm(min(waiting))
