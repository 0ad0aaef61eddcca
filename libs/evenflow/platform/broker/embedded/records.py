"""One record of the log, its size, and the partition its key belongs to.

A record is made once by the producer and shared by every reader; nobody changes it after it was appended, except that
the abort of its transaction changes its `kind`.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aiokafka.errors import UnknownError

from evenflow.platform.broker.embedded.headers import Headers, headers_size

if TYPE_CHECKING:
    import asyncio

    from aiokafka.structs import RecordMetadata

    from evenflow.platform.broker.embedded.transactions import OpenTransaction

DATA = 0
ABORTED = 1
COMMIT_MARKER = 2
ABORT_MARKER = 3

# Kafka's fixed cost of a record within its batch, and of the batch around a single record: sizes are compared to the
# same limits on both profiles.
RECORD_OVERHEAD_BYTES = 21
BATCH_OVERHEAD_BYTES = 61


class InvalidRecordError(UnknownError):  # type: ignore[misc]  # aiokafka ships no types
    """A record the topic can't hold, such as one without a key on a compacted topic."""


class LogRecord:
    """A record, waiting to be appended (`offset` is -1) or appended.

    `sequence` numbers the records of one producer within a partition; -1 means that a repetition is a new record.
    """

    __slots__ = (
        "consumer",
        "future",
        "headers",
        "key",
        "kind",
        "offset",
        "partition",
        "producer_id",
        "sequence",
        "size",
        "timestamp",
        "topic",
        "transaction",
        "value",
    )

    consumer: Any

    def __init__(  # noqa: PLR0917  made by position: a hundred thousand times a second
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes]] = (),
        kind: int = DATA,
        size: int = 0,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers
        self.kind = kind
        self.size = size
        self.producer_id = -1
        self.sequence = -1
        self.transaction: OpenTransaction | None = None
        self.future: asyncio.Future[RecordMetadata] | None = None

    @property
    def timestamp_type(self) -> int:
        """Always 0, the producer's time."""
        return 0

    @property
    def checksum(self) -> None:
        """Kafka gave checksums up; kept because its records have the field."""
        return

    @property
    def serialized_key_size(self) -> int:
        """Bytes of the key, -1 without one."""
        return -1 if self.key is None else len(self.key)

    @property
    def serialized_value_size(self) -> int:
        """Bytes of the value, -1 for a tombstone."""
        return -1 if self.value is None else len(self.value)

    def copy(self) -> LogRecord:
        """The same record for one reader alone, who may hang its consumer on it."""
        return LogRecord(
            self.topic,
            self.partition,
            self.offset,
            self.timestamp,
            self.key,
            self.value,
            self.headers,
            self.kind,
            self.size,
        )

    def detached(self) -> LogRecord:
        """A new record with the same bytes, outside of any transaction and not recognised as a repetition."""
        again = self.copy()
        again.offset = -1
        again.kind = DATA
        return again

    def __repr__(self) -> str:
        return f"LogRecord({self.topic}/{self.partition}/{self.offset} key={self.key!r} kind={self.kind})"


def record_size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Bytes of a record alone in its batch, as Kafka's limits count them (a few bytes of varints apart).

    Raises TypeError when key, value or a header's value are not bytes, or its name is not a string, and
    UnicodeEncodeError for a name with half a surrogate pair: nothing else may reach the log, where it would spoil the
    batch of others.
    """
    size = BATCH_OVERHEAD_BYTES + RECORD_OVERHEAD_BYTES
    if key is not None:
        if type(key) is not bytes:
            raise TypeError(f"a key is bytes, not {type(key).__name__}")
        size += len(key)
    if value is not None:
        if type(value) is not bytes:
            raise TypeError(f"a value is bytes, not {type(value).__name__}")
        size += len(value)
    return size + headers_size(headers)


def key_hash(key: bytes) -> int:
    """Kafka's murmur2 of a key, without its sign bit: keys land on the partition they have on a Kafka cluster."""
    multiplier, mask = 0x5BD1E995, 0xFFFFFFFF
    length = len(key)
    words = length >> 2
    digest = 0x9747B28C ^ length
    for word in struct.unpack_from(f"<{words}I", key):
        mixed = word * multiplier & mask
        mixed ^= mixed >> 24
        digest = (digest * multiplier & mask) ^ (mixed * multiplier & mask)
    if rest := key[words << 2 :]:
        digest = (digest ^ int.from_bytes(rest, "little")) * multiplier & mask
    digest ^= digest >> 13
    digest = digest * multiplier & mask
    return (digest ^ digest >> 15) & 0x7FFFFFFF
