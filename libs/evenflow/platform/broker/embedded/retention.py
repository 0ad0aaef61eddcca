"""Expiry and compaction, record by record, and the archive before either.

Kafka expires and compacts whole segment files and never the one being written; this log looks at each record, so what
Kafka may keep a little longer is gone here in time. Common to both: nothing behind the last stable offset is touched,
offsets never change, compaction leaves holes, the newest record of a key stays, a tombstone stays for
`delete.retention.ms` from the first compaction that met it, whatever its stamp says.

A topic that the archive keeps loses nothing that was not stored there first: an archive that fails stops the cleaning
of its partition until the next step.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

from evenflow.platform.broker.embedded.clients.giving_way import give_way
from evenflow.platform.broker.embedded.records import DATA
from evenflow.platform.broker.embedded.storage.port import Change, StoredPartition

if TYPE_CHECKING:
    from evenflow.platform.broker.embedded.log import EmbeddedLog
    from evenflow.platform.broker.embedded.topics import Partition

#: Records that are read at once: what a look at a long partition holds for a moment.
CHUNK_COUNT = 100
#: Records looked at before others get their turn, and records of one piece for the archive.
PIECE_COUNT = 1_000
TRIM_COUNT = 10_000


@dataclass(slots=True)
class Cleaned:
    """What the last compaction of a partition left: where it ended, how many records, and when its tombstones may go.

    `passes` are the compactions whose tombstones are still there, as (end, due_ms), ascending: all that one of them was
    the first to meet go together, so that nothing is remembered of each. A new process begins their time anew.
    """

    end: int = 0
    kept_count: int = 0
    passes: list[tuple[int, int]] = field(default_factory=list)

    @property
    def next_due_ms(self) -> int | None:
        """When the first tombstones may go; None when there are none."""
        return min((due_ms for _, due_ms in self.passes), default=None)

    def split(
        self, tombstones: Iterable[int], end: int, *, now_ms: int, due_ms: int
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Of the tombstones that a pass up to `end` met, by offset: which go now, and the passes of the others.

        `due_ms` is for those that no pass met before.
        """
        passes = [*self.passes]
        if not passes or end > passes[-1][0]:
            passes.append((end, due_ms))
        gone: list[int] = []
        used: dict[int, None] = {}
        for offset in tombstones:
            index = bisect_right(passes, offset, key=_end_of)
            if passes[index][1] <= now_ms:
                gone.append(offset)
            else:
                used[index] = None
        return gone, [passes[index] for index in sorted(used)]


_end_of = itemgetter(0)


class Retention:
    """Cleans one log, a step at a time."""

    def __init__(self, log: EmbeddedLog) -> None:
        self._log = log
        self._cleaned: dict[int, Cleaned] = {}

    async def step(self) -> int:
        """Archive and drop what is due now; the number of records dropped.

        Raises what the archive raised, after the other partitions were cleaned.
        """
        dropped = 0
        failed: Exception | None = None
        for topic in list(self._log.topics.values()):
            for partition in topic.partitions:
                try:
                    dropped += await self._clean(partition)
                except Exception as error:  # noqa: BLE001  one partition's archive must not stop the others
                    failed = failed or error
        if failed is not None:
            raise failed
        return dropped

    async def _clean(self, partition: Partition) -> int:
        now_ms = self._log.clock.now_ms()
        rules = partition.rules
        dropped = 0
        if rules.deleted:
            end = max(self._expired_end(partition, now_ms), self._oversized_end(partition))
            if end > partition.start:
                await self._archive(partition, end)
                dropped += await self._trim(partition, end)
        if rules.compacted:
            dropped += await self._compact(partition, now_ms)
        return dropped

    # ---- expiry

    def _expired_end(self, partition: Partition, now_ms: int) -> int:
        """The first offset whose record is not older than the retention time."""
        if partition.rules.retention_ms < 0:
            return partition.start
        oldest_ms = now_ms - partition.rules.retention_ms
        position, count = partition.start, 1  # mostly the first is young enough
        while position < partition.stable:
            records = partition.read(position, partition.stable, count)
            for record in records:
                if record.timestamp >= oldest_ms:
                    return record.offset
            position = records[-1].offset + 1 if records else partition.stable
            count = CHUNK_COUNT
        return position

    def _oversized_end(self, partition: Partition) -> int:
        """The first offset such that what follows fits the retention size."""
        limit = partition.rules.retention_bytes
        if limit < 0:
            return partition.start
        sizes = []
        position = partition.start
        while position < partition.next:
            records = partition.read(position, partition.next, CHUNK_COUNT)
            if not records:
                break
            sizes += [(record.offset, record.size) for record in records]
            position = records[-1].offset + 1
        excess = sum(size for _, size in sizes) - limit
        for offset, size in sizes:
            if excess <= 0 or offset >= partition.stable:
                return offset
            excess -= size
        return partition.stable if excess > 0 else partition.start

    async def _trim(self, partition: Partition, end: int) -> int:
        """Drop everything below `end`, in pieces, so that a long delete holds nobody up."""
        dropped = 0
        while partition.start < end:
            upto = min(end, partition.start + TRIM_COUNT)
            dropped += self._count(partition, partition.start, upto)
            self._log.storage.write(Change(trimmed=[_stored(partition, start=upto)]))
            partition.start = upto
            partition.tail.cut_before(upto)
            await give_way()
        return dropped

    @staticmethod
    def _count(partition: Partition, start: int, end: int) -> int:
        count = 0
        while start < end:
            records = partition.read(start, end, CHUNK_COUNT)
            if not records:
                break
            count += len(records)
            start = records[-1].offset + 1
        return count

    # ---- compaction

    async def _compact(self, partition: Partition, now_ms: int) -> int:
        """Drop what a newer record of its key replaced, markers, aborted records, and tombstones past their time."""
        end = self._compactable_end(partition, now_ms)
        before = self._cleaned.setdefault(partition.partition_id, Cleaned())
        tombstone_due = before.next_due_ms is not None and before.next_due_ms <= now_ms
        dirty = end - max(before.end, partition.start)
        if not tombstone_due and (dirty <= 0 or dirty < partition.rules.dirty_ratio * (dirty + before.kept_count)):
            return 0
        newest: dict[bytes, tuple[int, bool]] = {}  # offset, tombstone: never the records, which may be many
        superseded: list[int] = []
        position, looked = partition.start, 0
        while position < end:
            records = partition.read(position, end, CHUNK_COUNT)
            if not records:
                break
            for record in records:
                if record.kind != DATA or record.key is None:
                    superseded.append(record.offset)
                    continue
                if record.key in newest:
                    superseded.append(newest[record.key][0])
                newest[record.key] = (record.offset, record.value is None)
            position = records[-1].offset + 1
            looked += len(records)
            if looked >= PIECE_COUNT:
                looked = 0
                await give_way()
        if looked:
            await give_way()
        tombstones = [offset for offset, is_tombstone in newest.values() if is_tombstone]
        due_ms = now_ms + partition.rules.tombstone_ms
        gone, passes = before.split(tombstones, end, now_ms=now_ms, due_ms=due_ms)
        superseded += gone
        if superseded:
            await self._archive(partition, end)
            self._log.storage.write(
                Change(
                    compacted=[(partition.partition_id, offset) for offset in sorted(superseded)],
                    trimmed=[_stored(partition, start=partition.start)],
                )
            )
            partition.tail.remove(set(superseded))
        before.end = end
        before.passes = passes
        before.kept_count = len(newest) - len(gone)
        return len(superseded)

    @staticmethod
    def _compactable_end(partition: Partition, now_ms: int) -> int:
        """Nothing behind the last stable offset, and nothing younger than the compaction lag."""
        if partition.rules.compaction_lag_ms <= 0:
            return partition.stable
        youngest_ms = now_ms - partition.rules.compaction_lag_ms
        position = partition.start
        while position < partition.stable:
            records = partition.read(position, partition.stable, CHUNK_COUNT)
            for record in records:
                if record.timestamp > youngest_ms:
                    return record.offset
            position = records[-1].offset + 1 if records else partition.stable
        return position

    # ---- archive

    async def _archive(self, partition: Partition, end: int) -> None:
        """Hand everything below `end` that is not archived yet to the archive, in pieces, remembering each."""
        archive = self._log.hooks.archive
        if archive is None or not archive.keeps(partition.topic):
            return
        while partition.archived < end:
            records = partition.read(partition.archived, end, PIECE_COUNT)
            after = records[-1].offset + 1 if records else end
            facts = [record for record in records if record.kind == DATA]
            if facts:
                await archive.archive(partition.topic, partition.number, facts)
            stored = _stored(partition, start=partition.start)
            stored.archived_offset = after
            self._log.storage.write(Change(trimmed=[stored]))
            partition.archived = after


def _stored(partition: Partition, *, start: int) -> StoredPartition:
    return StoredPartition(
        partition.partition_id, partition.topic, partition.number, start, partition.next, partition.archived
    )
