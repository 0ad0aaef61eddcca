"""Topics and partitions: settings, offsets, the last stable offset, and reading.

    start ───────────── last stable ───────── next
      │ readable by all      │ hidden from       │
      │                      │ read_committed    │

An open transaction hides its own records and everything behind them from read_committed readers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aiokafka import TopicPartition

from evenflow.core.errors import Refused
from evenflow.platform.broker.embedded.storage.tail import Tail

if TYPE_CHECKING:
    from evenflow.platform.broker.embedded.clients.membership import Membership
    from evenflow.platform.broker.embedded.records import LogRecord
    from evenflow.platform.broker.embedded.storage.port import Storage, StoredPartition
    from evenflow.platform.broker.embedded.transactions import OpenTransaction

SEVEN_DAYS_MS = 604_800_000
ONE_DAY_MS = 86_400_000

# Settings a topic may carry on both profiles. Those that only steer Kafka's segment files are accepted and have no
# meaning here: this log expires and compacts record by record.
_KNOWN = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "delete.retention.ms": str(ONE_DAY_MS),
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "retention.bytes": "-1",
    "retention.ms": str(SEVEN_DAYS_MS),
    "segment.bytes": "1073741824",
    "segment.ms": str(SEVEN_DAYS_MS),
}


@dataclass(frozen=True, slots=True)
class TopicRules:
    """A topic's settings as the log uses them. -1 means no limit."""

    compacted: bool
    deleted: bool
    retention_ms: int
    retention_bytes: int
    message_bytes_max: int
    ahead_ms_max: int
    tombstone_ms: int
    compaction_lag_ms: int
    dirty_ratio: float

    @classmethod
    def from_configs(cls, topic: str, configs: Mapping[str, str]) -> TopicRules:
        """Read Kafka's names. Raises Refused for a name or value that Kafka would not take."""
        for name in sorted(configs):
            if name not in _KNOWN:
                message = f"topic {topic}: unknown setting {name}; known are {', '.join(sorted(_KNOWN))}"
                raise Refused(message)
        merged = {**_KNOWN, **configs}
        if merged["message.timestamp.type"] != "CreateTime":
            message = f"topic {topic}: message.timestamp.type must be CreateTime; records keep their producer's time"
            raise Refused(message)
        policies = {part.strip() for part in merged["cleanup.policy"].split(",")}
        if not policies <= {"compact", "delete"}:
            message = f"topic {topic}: cleanup.policy must be compact, delete or compact,delete"
            raise Refused(message)
        try:
            return cls(
                compacted="compact" in policies,
                deleted="delete" in policies,
                retention_ms=int(merged["retention.ms"]),
                retention_bytes=int(merged["retention.bytes"]),
                message_bytes_max=int(merged["max.message.bytes"]),
                ahead_ms_max=int(merged["message.timestamp.after.max.ms"]),
                tombstone_ms=int(merged["delete.retention.ms"]),
                compaction_lag_ms=int(merged["min.compaction.lag.ms"]),
                dirty_ratio=float(merged["min.cleanable.dirty.ratio"]),
            )
        except ValueError as error:
            message = f"topic {topic}: {error}"
            raise Refused(message) from error


class Partition:
    """One partition of a topic.

    `sequences` has each producer's last sequence here and its offset, `gaps` the producers of which a record was
    refused since. `open` maps open transactions to their first
    offset here, oldest first. `readers` are the consumers to wake. `plain` says that no marker and no aborted record
    was ever appended, so reading needs no filter.
    """

    __slots__ = (
        "archived",
        "gaps",
        "key",
        "next",
        "number",
        "open",
        "partition_id",
        "plain",
        "readers",
        "rules",
        "sequences",
        "start",
        "storage",
        "tail",
        "topic",
    )

    def __init__(self, stored: StoredPartition, rules: TopicRules, storage: Storage) -> None:
        self.partition_id = stored.partition_id
        self.topic = stored.topic
        self.number = stored.number
        self.key = TopicPartition(stored.topic, stored.number)
        self.start = stored.start_offset
        self.next = stored.next_offset
        self.archived = stored.archived_offset
        self.rules = rules
        self.storage = storage
        self.tail = Tail()
        self.open: dict[OpenTransaction, int] = {}
        self.readers: dict[Membership, None] = {}
        self.sequences: dict[int, tuple[int, int]] = {}
        self.gaps: dict[int, None] = {}
        self.plain = stored.next_offset == 0

    @property
    def stable(self) -> int:
        """The last stable offset: the first offset of the oldest open transaction, or the end."""
        return next(iter(self.open.values())) if self.open else self.next

    def read(self, start: int, end: int, limit: int) -> list[LogRecord]:
        """At most `limit` records, markers and aborted ones among them, with start ≤ offset < end."""
        first = self.tail.first_offset()
        if first is not None and start >= first:
            return self.tail.slice(start, end, limit)
        if self.storage.cache_bytes is None:
            return self.tail.slice(start, end, limit)
        stop = end if first is None else min(first, end)
        found = self.storage.read(self.partition_id, self.topic, self.number, start, stop, limit)
        if not found and stop < end:
            return self.tail.slice(stop, end, limit)
        return found

    def offset_at(self, timestamp_ms: int, limit: int = 1_000) -> tuple[int, int] | None:
        """The first record at or after a time, as (offset, its time); None when there is none."""
        position = self.start
        while position < self.next:
            records = self.read(position, self.next, limit)
            if not records:
                return None
            for record in records:
                if record.timestamp >= timestamp_ms:
                    return record.offset, record.timestamp
            position = records[-1].offset + 1
        return None


class Topic:
    """A topic's settings and partitions."""

    __slots__ = ("configs", "name", "partitions", "rules", "turn")

    def __init__(self, name: str, configs: Mapping[str, str], rules: TopicRules, partitions: list[Partition]) -> None:
        self.name = name
        self.configs = dict(configs)
        self.rules = rules
        self.partitions = partitions
        self.turn = 0

    def next_partition(self) -> int:
        """The partition of a record without a key: in turn (Kafka's client picks one at random)."""
        self.turn = (self.turn + 1) % len(self.partitions)
        return self.turn
