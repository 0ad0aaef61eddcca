"""Upkeep of the simulated log, when a scenario gives its ledger and rounds a short life, and the check of its archive.

Nothing that any service restores from is shortened; everything else is kept as the registry says, which no run
outlasts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from evenflow.events import streams
from evenflow.events.streams import Stream
from evenflow.hosting.upkeep import LogUpkeep
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.clock import Clock
from evenflow.sim.observation.record import Seen
from evenflow.sim.world.records.objects import WatchedObjects

SHORTENED: Final = (streams.ROUNDS.name, streams.BILLING.name)


class Expiry:
    """Runs the upkeep of one log and knows every record of the shortened topics."""

    def __init__(self, log: EmbeddedLog, objects: WatchedObjects, clock: Clock, logger: Any) -> None:
        self._log = log
        self._objects = objects
        self._upkeep = LogUpkeep(log, objects, clock, logger)
        self._seen: dict[tuple[str, int], list[int]] = {}

    async def start(self) -> None:
        """Begin cleaning."""
        await self._upkeep.start()

    def see(self, record: Seen) -> None:
        """Note a record of a shortened topic."""
        if record.topic in SHORTENED:
            self._seen.setdefault((record.topic, record.partition), []).append(record.offset)

    def lost(self) -> Iterator[str]:
        """Runs of records that are neither on the log nor in the archive."""
        for (topic, number), offsets in self._seen.items():
            start = self._log.topics[topic].partitions[number].start
            names = [path.rpartition("/")[2].split("-") for path in self._objects.written(f"archive/{topic}/{number}/")]
            kept = [(int(first), int(last)) for first, last, _ in names]
            gone = [o for o in offsets if o < start and not any(first <= o <= last for first, last in kept)]
            if gone:
                yield f"{len(gone)} records of {topic}/{number} from {gone[0]} on are gone and not in the archive"


def shortened(topics: list[Stream], retention_ms: int) -> list[Stream]:
    """The topics with their short lives."""
    return [replace(one, retention_ms=retention_ms) if one.name in SHORTENED else one for one in topics]
