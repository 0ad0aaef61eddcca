"""Watching the log: every record is seen once, when it becomes readable, before anybody reacts to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.records import DATA
from evenflow.platform.broker.embedded.topics import Partition
from evenflow.sim.observation.record import Seen

#: Records read at once from one partition.
READ_MAX = 10_000


class _Eye:
    """Sits among a partition's readers and is woken with them."""

    def __init__(self, partition: Partition, look: Callable[[Partition], None]) -> None:
        self._partition = partition
        self._look = look

    def wake_for(self, _key: object) -> None:
        """The partition has something new, or more of it can be read."""
        self._look(self._partition)


class Watcher:
    """Gives every committed record to `see`, with the milliseconds since the start of the run.

    Records of a transaction are seen when it commits, aborted ones never.
    """

    def __init__(self, log: EmbeddedLog, now_ms: Callable[[], int], see: Callable[[Seen], None]) -> None:
        self._now_ms = now_ms
        self._see = see
        self._positions: dict[Partition, int] = {}
        for topic in log.topics.values():
            for partition in topic.partitions:
                eye: Any = _Eye(partition, self._look)
                partition.readers[eye] = None
                self._positions[partition] = partition.next

    def _look(self, partition: Partition) -> None:
        position, end = self._positions[partition], partition.stable
        while position < end:
            records = partition.read(position, end, READ_MAX)
            if not records:
                break
            position = records[-1].offset + 1
            self._positions[partition] = position
            for record in records:
                if record.kind == DATA:
                    self._see(
                        Seen(
                            self._now_ms(),
                            record.topic,
                            record.partition,
                            record.offset,
                            record.key,
                            record.value,
                            tuple(record.headers),
                        )
                    )
