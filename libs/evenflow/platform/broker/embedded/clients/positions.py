"""Where a consumer stands in its partitions, and taking records from there.

A position moves when a record is handed out, or over markers and aborted records that nobody may see. Records already
read but not handed out wait in one small buffer, which is thrown away by a seek, a pause or a rebalance.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from aiokafka import TopicPartition
from aiokafka.errors import IllegalStateError, NoOffsetForPartitionError, OffsetOutOfRangeError

from evenflow.platform.broker.embedded.records import ABORTED, DATA

if TYPE_CHECKING:
    from evenflow.platform.broker.embedded.log import EmbeddedLog
    from evenflow.platform.broker.embedded.records import LogRecord
    from evenflow.platform.broker.embedded.topics import Partition

REWIND_COST_S = 0.001
# A loop may run a timer a clock tick early; the wake at the end of a rewind must find its partition free.
TIMER_SLACK_S = 1e-6
BUFFER_COUNT = 100
FETCH_COUNT_MAX = 2_000
FETCH_BYTES_MAX = 4 << 20


class OrderedKeys(set[TopicPartition]):
    """A set of partitions that iterates in order, so that nothing depends on the hash seed."""

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(sorted(set.__iter__(self)))


class Place:
    """One partition as one consumer sees it. A position of None must still be found by the reset rule."""

    __slots__ = ("held_until", "partition", "paused", "position")

    def __init__(self, partition: Partition, position: int | None) -> None:
        self.partition = partition
        self.position = position
        self.paused = False
        self.held_until = 0.0


class Positions:
    """The places of one assignment, and the records read ahead."""

    def __init__(self, log: EmbeddedLog, group_id: str | None, *, committed_only: bool, reset: str) -> None:
        self._log = log
        self._group_id = group_id
        self._committed_only = committed_only
        self._reset = reset
        self._places: dict[TopicPartition, Place] = {}
        self._order: list[TopicPartition] = []
        # Partitions that may have something; the others are looked at again when the log says that they grew.
        self._due: dict[TopicPartition, None] = {}
        self._moves = 0
        self._buffer: deque[LogRecord] = deque()
        self._buffered: Place | None = None
        self._buffer_end = 0

    def assign(self, places: Iterable[tuple[TopicPartition, int | None]]) -> None:
        """Replace everything by new places."""
        self._drop_buffer()
        self._places = {key: Place(self._log.partition(key), offset) for key, offset in places}
        self._order = list(self._places)
        self._due = dict.fromkeys(self._order)

    def grew(self, key: TopicPartition, wake: Callable[[], None]) -> bool:
        """The log says that a partition may be read further than before; False when nothing of it is readable yet."""
        place = self._places.get(key)
        if place is None:
            return False
        self._due[key] = None
        position = place.position
        if position is None or place.held_until:
            return True
        end = self.end(place.partition)
        if end > position and self._log.hooks.delivery is not None:
            end = self._log.hooks.delivery.reached(self._group_id, key, position, end, wake)
        return end > position

    def keys(self) -> OrderedKeys:
        """The partitions assigned."""
        return OrderedKeys(self._places)

    def partitions(self) -> list[Partition]:
        """The log's partitions behind them."""
        return [place.partition for place in self._places.values()]

    def place(self, key: TopicPartition) -> Place:
        """One place. Raises IllegalStateError when the partition is not assigned."""
        found = self._places.get(key)
        if found is None:
            message = f"Partition {key} is not assigned"
            raise IllegalStateError(message)
        return found

    def consumed(self) -> dict[TopicPartition, int]:
        """The positions that are known."""
        return {key: place.position for key, place in self._places.items() if place.position is not None}

    def seek(self, key: TopicPartition, offset: int, wake: Callable[[], None]) -> None:
        """Go to an offset. Going back costs a millisecond before anything is handed out again.

        A failing handler seeks back to its record; without the cost it would never give the loop away.
        """
        place = self.place(key)
        if place.position is not None and offset < place.position:
            place.held_until = self._log.loop.time() + REWIND_COST_S
            self._log.loop.call_at(place.held_until, wake)
        place.position = offset
        self._due[key] = None
        self._drop_buffer()

    def pause(self, key: TopicPartition, *, paused: bool) -> None:
        """Stop or go on handing out a partition's records."""
        self.place(key).paused = paused
        self._drop_buffer()

    def paused(self) -> OrderedKeys:
        """The partitions that stand still."""
        return OrderedKeys(key for key, place in self._places.items() if place.paused)

    def end(self, partition: Partition) -> int:
        """The end this consumer may read to."""
        return partition.stable if self._committed_only else partition.next

    def find(self, place: Place) -> int:
        """The place's position, reset when there is none or it lies outside of the log.

        Raises NoOffsetForPartitionError or OffsetOutOfRangeError when the reset rule is "none".
        """
        partition = place.partition
        position = place.position
        if position is not None and partition.start <= position <= partition.next:
            return position
        if self._reset == "none":
            if position is None:
                raise NoOffsetForPartitionError(partition.key)
            raise OffsetOutOfRangeError({partition.key: position})
        place.position = partition.start if self._reset == "earliest" else self.end(partition)
        self._moves += 1
        return place.position

    def moves_so_far(self) -> int:
        """A number that grows when a position moves, counted after unknown positions were found. Raises as `find`."""
        for key in self._due:
            self.find(self._places[key])
        return self._moves

    def take_one(self, only: tuple[TopicPartition, ...], wake: Callable[[], None]) -> LogRecord | None:
        """The next record, or None when there is none now."""
        while True:
            buffered = self._buffered
            if buffered is not None and (not only or buffered.partition.key in only):
                if self._buffer:
                    record = self._buffer.popleft()
                    buffered.position = record.offset + 1 if self._buffer else self._buffer_end
                    return record
                self._buffered = None
            elif buffered is not None:
                self._drop_buffer()
            if not self._refill(only, wake):
                return None

    def _refill(self, only: tuple[TopicPartition, ...], wake: Callable[[], None]) -> bool:
        for key, place in self._ready(only):
            records, after = self._read(place, BUFFER_COUNT, wake)
            if not records:
                self._move(place, after)
                continue
            self._served(key)
            self._buffer.extend(records)
            self._buffered, self._buffer_end = place, after
            return True
        return False

    def take_many(
        self, only: tuple[TopicPartition, ...], limit: int | None, wake: Callable[[], None]
    ) -> dict[TopicPartition, list[LogRecord]]:
        """Records of several partitions, at most `limit` in all; each partition gives at most what a fetch may hold."""
        self._drop_buffer()
        taken: dict[TopicPartition, list[LogRecord]] = {}
        left = limit if limit is not None else FETCH_COUNT_MAX * max(1, len(self._order))
        last = None
        for key, place in self._ready(only):
            if left <= 0:
                break
            records, after = self._read(place, min(left, FETCH_COUNT_MAX), wake)
            self._move(place, after)
            if records:
                taken[key] = records
                left -= len(records)
                last = key
        if last is not None:
            self._served(last)
        return taken

    def _move(self, place: Place, position: int) -> None:
        if place.position != position:
            place.position = position
            self._moves += 1

    def _ready(self, only: tuple[TopicPartition, ...]) -> Iterator[tuple[TopicPartition, Place]]:
        if not self._due:
            return
        now = None
        due = self._due
        for key in [key for key in self._order if key in due] if len(due) > 1 else list(due):
            place = self._places[key]
            if place.paused or (only and key not in only):
                continue
            if place.held_until:
                now = self._log.loop.time() if now is None else now
                if now + TIMER_SLACK_S < place.held_until:
                    continue
                place.held_until = 0.0
            if self.find(place) < self.end(place.partition):
                yield key, place
            else:
                self._due.pop(key, None)

    def _read(self, place: Place, limit: int, wake: Callable[[], None]) -> tuple[list[LogRecord], int]:
        """Visible records from the position on, and the position behind them."""
        partition, position = place.partition, self.find(place)
        end = self.end(partition)
        if self._log.hooks.delivery is not None:
            end = min(end, self._log.hooks.delivery.reached(self._group_id, partition.key, position, end, wake))
        while position < end:
            found = partition.read(position, end, limit)
            if not found:
                return [], end
            after = found[-1].offset + 1 if len(found) == limit else self._covered(partition, found, end)
            visible = found if partition.plain else self._visible(found)
            if visible:
                return self._within_bytes(visible, after)
            position = after
        return [], position

    @staticmethod
    def _covered(partition: Partition, found: list[LogRecord], end: int) -> int:
        """Short of the limit the read came to the end, unless it stopped where memory begins."""
        first = partition.tail.first_offset()
        if first is not None and found[-1].offset < first < end:
            return max(found[-1].offset + 1, first)
        return end

    def _visible(self, records: list[LogRecord]) -> list[LogRecord]:
        if self._committed_only:
            return [record for record in records if record.kind == DATA]
        return [record for record in records if record.kind <= ABORTED]

    @staticmethod
    def _within_bytes(records: list[LogRecord], after: int) -> tuple[list[LogRecord], int]:
        size = 0
        for count, record in enumerate(records):
            size += record.size
            if size > FETCH_BYTES_MAX and count:
                return records[:count], record.offset
        return records, after

    def _served(self, key: TopicPartition) -> None:
        """The partition goes to the end of the order, so that all get their turn."""
        place = self._order.index(key) + 1
        self._order = self._order[place:] + self._order[:place]

    def _drop_buffer(self) -> None:
        self._buffer.clear()
        self._buffered = None
