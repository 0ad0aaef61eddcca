"""Bounds of what the log keeps in memory beside its storage: the newest records, and hashes of keys."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenflow.platform.broker.embedded.topics import Partition

# What a record costs in memory besides its bytes, for the bound of the cache.
RECORD_MEMORY_BYTES = 300
#: Keys whose hash is remembered, at least and at most, and bytes of the cache for each.
HASHES_MIN = 256
HASHES_MAX = 8_192
HASH_CACHE_PART = 8_192


class Cache:
    """Bounds the records kept in memory, over all partitions, oldest appends first."""

    def __init__(self, bytes_max: int | None) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._added: deque[tuple[Partition, int, int, int]] = deque()

    def added(self, partition: Partition, count: int, size: int) -> None:
        """Count records appended to a partition's tail and let the oldest go."""
        if self._bytes_max is None:
            return
        self._added.append((partition, count, size, partition.next))
        self._bytes += size
        while self._bytes > self._bytes_max and len(self._added) > 1:
            old, _, freed, end = self._added.popleft()
            old.tail.cut_before(end)
            self._bytes -= freed


def hashes_max(cache_bytes: int | None) -> int:
    """Keys whose hash is remembered: a key comes again while its records are in the cache, and costs about as much."""
    return HASHES_MAX if cache_bytes is None else max(HASHES_MIN, min(HASHES_MAX, cache_bytes // HASH_CACHE_PART))
