"""The log itself: appends, group commit, committed offsets, and who is woken.

Everything that is sent or committed within one turn of the event loop is written in one storage transaction, and is
acknowledged after it. There are no threads; storage calls run on the loop.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from aiokafka import TopicPartition
from aiokafka.errors import (
    InvalidTimestampError,
    KafkaError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumber,
    ProducerFenced,
    UnknownTopicOrPartitionError,
)
from aiokafka.structs import RecordMetadata

from evenflow.platform.broker.embedded.groups import Groups
from evenflow.platform.broker.embedded.hooks import Hooks
from evenflow.platform.broker.embedded.records import InvalidRecordError, LogRecord, key_hash
from evenflow.platform.broker.embedded.storage.cache import RECORD_MEMORY_BYTES, Cache, hashes_max
from evenflow.platform.broker.embedded.storage.memory import MemoryStorage
from evenflow.platform.broker.embedded.storage.port import Change, StoredPartition
from evenflow.platform.broker.embedded.topics import Partition, Topic, TopicRules
from evenflow.platform.broker.embedded.transactions import Transactions
from evenflow.platform.broker.settings_of_topics import refuse_other_settings

if TYPE_CHECKING:
    from evenflow.platform.broker.embedded.storage.port import Storage
    from evenflow.platform.broker.ports import TopicSettings
    from evenflow.platform.clock import Clock

PENDING_COUNT_MAX = 4_096


class EmbeddedLog:
    """One log. All its parts run on one event loop.

    `world` is the context of timers and writes that belong to the log and must outlive the process that caused them.
    """

    def __init__(self, *, clock: Clock, storage: Storage | None = None, hooks: Hooks | None = None) -> None:
        self.clock = clock
        self.storage: Storage = storage or MemoryStorage()
        self.hooks = hooks or Hooks()
        self.world = contextvars.copy_context()
        self.topics: dict[str, Topic] = {}
        self.groups = Groups(self)
        self.transactions = Transactions(self)
        self.cache = Cache(self.storage.cache_bytes)
        self.hash_of = lru_cache(maxsize=hashes_max(self.storage.cache_bytes))(key_hash)
        self._offsets: dict[str, dict[tuple[str, int], tuple[int, str]]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._rows: list[LogRecord] = []
        self._commits: list[tuple[list[tuple[str, str, int, int, str]], asyncio.Future[None]]] = []
        self._scheduled = False
        self._next_partition_id = 1
        self._load()

    def _load(self) -> None:
        loaded = self.storage.load()
        by_topic: dict[str, list[Partition]] = {name: [] for name in loaded.topics}
        by_id: dict[int, Partition] = {}
        rules = {name: TopicRules.from_configs(name, configs) for name, configs in loaded.topics.items()}
        for stored in loaded.partitions:
            partition = Partition(stored, rules[stored.topic], self.storage)
            by_topic[stored.topic].append(partition)
            by_id[stored.partition_id] = partition
        for name, configs in loaded.topics.items():
            self.topics[name] = Topic(name, configs, rules[name], sorted(by_topic[name], key=lambda p: p.number))
        self._next_partition_id = max(by_id, default=0) + 1
        self.offsets_written(loaded.offsets)
        for transaction in loaded.transactions:
            self.transactions.restore(transaction, by_id)
        self.transactions.restored()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop the log runs on, taken at its first use."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self.transactions.attached()
        return self._loop

    # ---- topics

    def topic(self, name: str) -> Topic:
        """A topic. Raises UnknownTopicOrPartitionError: nothing creates topics but `provision`."""
        topic = self.topics.get(name)
        if topic is None:
            message = f"topic {name} does not exist; topics are created from the registry before any service starts"
            raise UnknownTopicOrPartitionError(message)
        return topic

    def partition(self, key: TopicPartition) -> Partition:
        """A partition. Raises UnknownTopicOrPartitionError."""
        topic = self.topic(key.topic)
        if not 0 <= key.partition < len(topic.partitions):
            message = f"topic {key.topic} has {len(topic.partitions)} partitions, no {key.partition}"
            raise UnknownTopicOrPartitionError(message)
        found: Partition = topic.partitions[key.partition]
        return found

    def provision(self, topics: Sequence[TopicSettings]) -> None:
        """Create what is missing, in one change.

        Raises Conflict when a topic exists with other settings, and Refused for settings Kafka would not take; nothing
        is created then.
        """
        made: list[Topic] = []
        change = Change()
        for settings in topics:
            configs = dict(settings.configs)
            rules = TopicRules.from_configs(settings.name, configs)
            existing = self.topics.get(settings.name)
            if existing is not None:
                refuse_other_settings(settings, len(existing.partitions), existing.configs)
                continue
            stored = [
                StoredPartition(self._next_partition_id + n, settings.name, n) for n in range(settings.partitions)
            ]
            self._next_partition_id += settings.partitions
            made.append(Topic(settings.name, configs, rules, [Partition(s, rules, self.storage) for s in stored]))
            change.topics.append((settings.name, configs, stored))
        if not made:
            return
        self.storage.write(change)
        for topic in made:
            self.topics[topic.name] = topic
        self.groups.topics_added([topic.name for topic in made])

    def alter(self, settings: TopicSettings) -> None:
        """Give an existing topic other settings; its partitions stay. Raises Refused for settings Kafka refuses."""
        topic = self.topic(settings.name)
        configs = dict(settings.configs)
        rules = TopicRules.from_configs(settings.name, configs)
        self.storage.write(Change(topics=[(settings.name, configs, [])]))
        topic.configs, topic.rules = configs, rules
        for partition in topic.partitions:
            partition.rules = rules

    # ---- appending

    def submit(self, row: LogRecord) -> asyncio.Future[RecordMetadata]:
        """Take a record; it is written with this turn's others. The future has its metadata or its error."""
        future: asyncio.Future[RecordMetadata] = (self._loop or self.loop).create_future()
        row.future = future
        self._rows.append(row)
        if not self._scheduled:
            self._schedule()
        elif len(self._rows) >= PENDING_COUNT_MAX:
            self.flush()
        return future

    def submit_together(self, rows: Sequence[LogRecord]) -> asyncio.Future[RecordMetadata]:
        """Take records that are written in one change; the future has the first one's metadata, or the first error."""
        future: asyncio.Future[RecordMetadata] = (self._loop or self.loop).create_future()
        for row in rows:
            row.future = future
        self._rows.extend(rows)
        if not self._scheduled:
            self._schedule()
        elif len(self._rows) >= PENDING_COUNT_MAX:
            self.flush()
        return future

    def commit(self, offsets: list[tuple[str, str, int, int, str]]) -> asyncio.Future[None]:
        """Take a group's offsets (group, topic, partition, offset, metadata); written with this turn's records."""
        future: asyncio.Future[None] = self.loop.create_future()
        self._commits.append((offsets, future))
        self._schedule()
        return future

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self.flush, context=self.world)

    def flush(self) -> None:
        """Write what waits, now, and acknowledge it."""
        self._scheduled = False
        if not self._rows and not self._commits:
            return
        rows, self._rows = self._rows, []
        commits, self._commits = self._commits, []
        sent = rows
        try:
            if self.hooks.interceptor is not None and rows:
                rows = self.hooks.interceptor(rows)
            self.append(rows, [offset for offsets, _ in commits for offset in offsets])
        except Exception as error:  # noqa: BLE001  nobody may be left waiting, whatever went wrong
            for _, waiting in commits:
                if not waiting.done():
                    waiting.set_exception(error)
            for row in sent:
                if row.transaction is not None:
                    row.transaction.failed = error
                _fail(row, error)
            return
        for _, waiting in commits:
            if not waiting.done():
                waiting.set_result(None)
        if self.hooks.interceptor is not None:
            for row in sent:
                self._acknowledge(row, -1)

    def append(self, rows: Sequence[LogRecord], offsets: Sequence[tuple[str, str, int, int, str]] = ()) -> None:
        """Append records over any partitions, and a group's offsets, as one atomic change.

        A record that is refused (too large, fenced, without a key where one is needed) fails in its future. Its number
        is missing then, so this partition refuses every later record of its producer too, as Kafka does. A repetition,
        known by its producer and sequence, appends nothing. Raises KafkaStorageError.
        """
        change = Change(offsets=list(offsets))
        staged: dict[Partition, list[LogRecord]] = {}
        repeated: list[tuple[LogRecord, int]] = []
        now_ms = self.clock.now_ms()
        for row in rows:
            partition = self.topics[row.topic].partitions[row.partition]
            if row.sequence >= 0:
                last = partition.sequences.get(row.producer_id)
                if last is not None and row.sequence <= last[0]:
                    repeated.append((row, last[1] if row.sequence == last[0] else -1))
                    continue
            if (refusal := _refusal(partition, row, now_ms)) is not None:
                if row.sequence >= 0 and row.producer_id in partition.sequences:
                    partition.gaps[row.producer_id] = None
                _fail(row, refusal)
                continue
            waiting = staged.get(partition)
            if waiting is None:
                waiting = staged[partition] = []
            row.offset = offset = partition.next + len(waiting)
            waiting.append(row)
            change.records.append((partition.partition_id, row))
            if row.sequence >= 0:
                partition.sequences[row.producer_id] = (row.sequence, offset)
            transaction = row.transaction
            if transaction is not None and partition not in transaction.partitions:
                transaction.partitions[partition] = offset
                partition.open[transaction] = offset
                change.opened.append((transaction.transactional_id, partition.partition_id, offset))
        if staged or offsets:
            try:
                self.storage.write(change)
            except BaseException:
                _unstage(staged)
                raise
            self._publish(staged)
            self.offsets_written(offsets)
        for row, offset in repeated:
            self._acknowledge(row, offset)

    def _publish(self, staged: dict[Partition, list[LogRecord]]) -> None:
        make = tuple.__new__
        for partition, rows in staged.items():
            partition.tail.extend(rows)
            partition.next += len(rows)
            topic, number, key, start = partition.topic, partition.number, partition.key, partition.start
            size = RECORD_MEMORY_BYTES * len(rows)
            for row in rows:
                size += row.size
                if row.transaction is not None:
                    row.transaction.records.append(row)
                future = row.future
                if future is not None:
                    row.future = None
                    if not future.done():
                        future.set_result(
                            make(RecordMetadata, (topic, number, key, row.offset, row.timestamp, 0, start))
                        )
            self.cache.added(partition, len(rows), size)
        for partition in staged:
            if partition.readers:
                self.wake(partition)

    def _acknowledge(self, row: LogRecord, offset: int) -> None:
        future, row.future = row.future, None
        if future is not None and not future.done():
            key = TopicPartition(row.topic, row.partition)
            future.set_result(RecordMetadata(row.topic, row.partition, key, offset, row.timestamp, 0, 0))

    def forget_sequences(self, producer_id: int) -> None:
        """A producer stopped, or begins anew: its numbers start from the beginning."""
        for topic in self.topics.values():
            for partition in topic.partitions:
                partition.sequences.pop(producer_id, None)
                partition.gaps.pop(producer_id, None)

    def wake(self, partition: Partition) -> None:
        """Let the partition's waiting readers look again."""
        for reader in partition.readers:
            reader.wake_for(partition.key)

    # ---- committed offsets

    def rewind(self, group: str, count: int) -> None:
        """Put a group's offsets back by `count`, never below the start; its members read from there again."""
        back = []
        for (topic, number), (offset, metadata) in self._offsets.get(group, {}).items():
            start = self.partition(TopicPartition(topic, number)).start
            back.append((group, topic, number, max(start, offset - count), metadata))
        self.append((), back)
        self.groups.rebalance(group)

    def offsets_written(self, offsets: Sequence[tuple[str, str, int, int, str]]) -> None:
        """Keep what the storage has now."""
        for group, topic, number, offset, metadata in offsets:
            self._offsets.setdefault(group, {})[topic, number] = (offset, metadata)

    def committed(self, group: str, key: TopicPartition) -> int | None:
        """A group's committed offset."""
        found = self._offsets.get(group, {}).get((key.topic, key.partition))
        return None if found is None else found[0]

    def lag(self, group: str) -> dict[TopicPartition, int]:
        """Records and markers between a group's committed offsets and the last stable offset, by partition."""
        lags = {}
        for topic, number in sorted(self._offsets.get(group, {})):
            key = TopicPartition(topic, number)
            if topic in self.topics:
                lags[key] = max(0, self.partition(key).stable - self._offsets[group][topic, number][0])
        return lags

    def close(self) -> None:
        """Write what waits and let go of the storage."""
        if self._loop is not None:
            self.flush()
        self.storage.close()


def _refusal(partition: Partition, row: LogRecord, now_ms: int) -> KafkaError | None:
    """Why the log can't take this record."""
    rules = partition.rules
    if row.transaction is not None and row.transaction.over is not None:
        return ProducerFenced()
    if row.sequence >= 0 and row.producer_id in partition.gaps:
        return OutOfOrderSequenceNumber(f"an earlier record of this producer was refused by {partition.key}")
    if row.timestamp - now_ms > rules.ahead_ms_max:
        return InvalidTimestampError(
            f"a record of {row.timestamp} ms is over {rules.ahead_ms_max} ms ahead (message.timestamp.after.max.ms)"
        )
    if row.size > rules.message_bytes_max:
        return MessageSizeTooLargeError(
            f"a record of {row.size} bytes; {row.topic} takes {rules.message_bytes_max} (max.message.bytes)"
        )
    if rules.compacted and row.key is None:
        return InvalidRecordError(f"{row.topic} is compacted: every record needs a key")
    return None


def _unstage(staged: dict[Partition, list[LogRecord]]) -> None:
    """Take back what a failed write would have made true."""
    for partition, rows in staged.items():
        for row in rows:
            partition.sequences.pop(row.producer_id, None)
            transaction = row.transaction
            if transaction is not None and transaction.partitions.get(partition) == row.offset:
                del transaction.partitions[partition]
                del partition.open[transaction]
            row.offset = -1


def _fail(row: LogRecord, error: Exception) -> None:
    future, row.future = row.future, None
    if future is not None and not future.done():
        future.set_exception(error)
