"""What the log asks of its storage: load once, write one change atomically, read a range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from evenflow.platform.broker.embedded.records import LogRecord


@dataclass(slots=True)
class StoredPartition:
    """A partition as stored: its id, first offset, next offset, and the end of what was archived."""

    partition_id: int
    topic: str
    number: int
    start_offset: int = 0
    next_offset: int = 0
    archived_offset: int = 0


@dataclass(slots=True)
class StoredTransaction:
    """A transactional id as stored; `first_offsets` (by partition id) is not empty while a transaction is open."""

    transactional_id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    first_offsets: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Loaded:
    """Everything but the records."""

    topics: dict[str, dict[str, str]] = field(default_factory=dict)
    partitions: list[StoredPartition] = field(default_factory=list)
    offsets: list[tuple[str, str, int, int, str]] = field(default_factory=list)
    transactions: list[StoredTransaction] = field(default_factory=list)


@dataclass(slots=True)
class Change:
    """One atomic change. Empty parts cost nothing.

    records: (partition id, record); offsets: (group, topic, partition, offset, metadata); opened: (transactional id,
    partition id, first offset); ended: transactional ids whose transaction is over; aborted: (partition id, first
    offset, end offset, producer id).
    """

    records: list[tuple[int, LogRecord]] = field(default_factory=list)
    offsets: list[tuple[str, str, int, int, str]] = field(default_factory=list)
    opened: list[tuple[str, int, int]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    aborted: list[tuple[int, int, int, int]] = field(default_factory=list)
    identities: list[StoredTransaction] = field(default_factory=list)
    topics: list[tuple[str, Mapping[str, str], list[StoredPartition]]] = field(default_factory=list)
    trimmed: list[StoredPartition] = field(default_factory=list)
    compacted: list[tuple[int, int]] = field(default_factory=list)


class Storage(Protocol):
    """One log's storage."""

    @property
    def cache_bytes(self) -> int | None:
        """How many bytes of records the log keeps in memory; None means that memory is the only place."""

    def load(self) -> Loaded:
        """What was stored before, once, at the start."""

    def write(self, change: Change) -> None:
        """Apply the whole change or nothing. Raises KafkaStorageError."""

    def read(self, partition_id: int, topic: str, number: int, start: int, end: int, limit: int) -> list[LogRecord]:
        """At most `limit` records with start ≤ offset < end, ascending."""

    def close(self) -> None:
        """Let go of files."""
