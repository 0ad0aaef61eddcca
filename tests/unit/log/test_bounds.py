"""What the embedded log keeps in mind besides records: bounded, and small where its cache is small."""

from __future__ import annotations

import pytest

from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.records import LogRecord
from evenflow.platform.broker.embedded.retention import CHUNK_COUNT, Cleaned, Retention
from evenflow.platform.broker.embedded.storage.cache import HASHES_MAX, HASHES_MIN
from evenflow.platform.broker.embedded.storage.memory import MemoryStorage
from evenflow.platform.broker.embedded.storage.tail import Tail
from evenflow.platform.broker.embedded.topics import TopicRules
from evenflow.platform.clock import SystemClock

DAY_MS = 86_400_000


class Storage(MemoryStorage):
    """Says how much of itself may be kept in memory."""

    def __init__(self, cache_bytes: int | None) -> None:
        super().__init__()
        self._told = cache_bytes

    @property
    def cache_bytes(self) -> int | None:
        """As told."""
        return self._told


@pytest.mark.parametrize(
    ("cache_bytes", "count"), [(None, HASHES_MAX), (1 << 20, HASHES_MIN), (64 << 20, HASHES_MAX), (1 << 40, HASHES_MAX)]
)
def test_as_many_hashes_of_keys_are_remembered_as_fit_the_cache(cache_bytes, count):
    """Found: eight thousand keys, however small the log, which took a quarter of an hour to be reached."""
    log = EmbeddedLog(clock=SystemClock(), storage=Storage(cache_bytes))
    for number in range(count + 100):
        log.hash_of(b"key-%d" % number)
    assert log.hash_of.cache_info().currsize == count


def test_a_day_of_tombstones_is_remembered_by_compactions_not_one_by_one():
    """Found: each tombstone's time was kept for the day that it stays."""
    cleaned, end = Cleaned(), 0
    tombstones: list[int] = []
    for minute in range(100):
        tombstones += range(end, end + 500)
        end += 500
        now_ms = minute * 60_000
        gone, cleaned.passes = cleaned.split(tombstones, end, now_ms=now_ms, due_ms=now_ms + DAY_MS)
        assert gone == []
    assert len(cleaned.passes) == 100
    assert cleaned.next_due_ms == DAY_MS


def test_tombstones_go_when_the_compaction_that_met_them_first_is_old_enough():
    """Proves the order: those of one pass go together, later ones stay, and what is replaced leaves nothing behind."""
    cleaned = Cleaned()
    _, cleaned.passes = cleaned.split([3, 5], 10, now_ms=0, due_ms=100)
    _, cleaned.passes = cleaned.split([3, 5, 12], 20, now_ms=50, due_ms=150)
    assert cleaned.passes == [(10, 100), (20, 150)]
    gone, cleaned.passes = cleaned.split([5, 12], 20, now_ms=100, due_ms=200)
    assert gone == [5]
    assert cleaned.passes == [(20, 150)]
    gone, cleaned.passes = cleaned.split([], 20, now_ms=110, due_ms=210)
    assert (gone, cleaned.passes, cleaned.next_due_ms) == ([], [], None)


def test_a_clock_that_went_back_breaks_no_order():
    """Proves that a pass that ends before the last one did keeps the times of that one."""
    cleaned = Cleaned()
    _, cleaned.passes = cleaned.split([3, 12], 20, now_ms=50, due_ms=150)
    gone, cleaned.passes = cleaned.split([3], 10, now_ms=40, due_ms=140)
    assert (gone, cleaned.passes) == ([], [(20, 150)])


class Partition:
    """A long partition that notes how much of it is held at once."""

    topic, number, partition_id, start, archived = "t", 0, 0, 0, 0

    def __init__(self, count: int, **rules: str) -> None:
        self.next = self.stable = count
        self.rules = TopicRules.from_configs("t", {"cleanup.policy": "compact,delete", **rules})
        self.most = 0
        self.tail = Tail()

    def read(self, start: int, end: int, limit: int) -> list[LogRecord]:
        """Records of one key, one a millisecond."""
        found = [LogRecord("t", 0, at, at, b"k", b"") for at in range(start, min(end, start + limit))]
        self.most = max(self.most, len(found))
        return found


async def test_a_long_partition_is_looked_at_in_small_pieces():
    """Found: a thousand records at once of each partition, every few seconds, to see that none was old enough."""
    log = EmbeddedLog(clock=SystemClock(), storage=MemoryStorage())
    young = Partition(5_000, **{"retention.ms": str(10 * DAY_MS * 365 * 100), "min.cleanable.dirty.ratio": "1"})
    old = Partition(5_000, **{"retention.ms": "-1", "min.cleanable.dirty.ratio": "0.01"})
    retention = Retention(log)
    assert retention._expired_end(young, SystemClock().now_ms()) == 0
    assert young.most == 1
    assert await retention._compact(old, SystemClock().now_ms()) == 4_999
    assert old.most <= CHUNK_COUNT
