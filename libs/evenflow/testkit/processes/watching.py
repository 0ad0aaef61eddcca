"""What the log shows of a pool's deciders: the rounds that were committed, with when a reader saw them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from aiokafka import TopicPartition

from evenflow.core.errors import Unavailable
from evenflow.events import streams
from evenflow.platform.broker.ports import Consumer
from evenflow.platform.runtime import Runtime

READ: Final = (streams.ROUNDS, streams.ASSIGNMENTS)


@dataclass
class Seen:
    """Rounds as (epoch, round, seen at ms), assignments by task and attempt."""

    rounds: list[tuple[int, int, int]] = field(default_factory=list)
    assigned: Counter[tuple[str, int]] = field(default_factory=Counter)

    @property
    def epoch(self) -> int:
        """The newest decider's; 0 before the first."""
        return self.rounds[-1][0] if self.rounds else 0


class Watcher:
    """A `read_committed` reader of rounds and assignments, from the beginning."""

    def __init__(self, runtime: Runtime) -> None:
        self._clock = runtime.clock
        self._consumer: Consumer = runtime.transport.consumer(client_id="watcher")
        self._task: asyncio.Task[None] | None = None
        self.seen = Seen()

    async def start(self) -> None:
        """Begin to read."""
        await self._consumer.start()
        partitions = [TopicPartition(one.name, index) for one in READ for index in range(one.partitions)]
        self._consumer.assign(partitions)
        await self._consumer.seek_to_beginning(*partitions)
        self._task = asyncio.create_task(self._read())

    async def stop(self) -> None:
        """Read no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._consumer.stop()

    async def round_after(self, epoch: int, *, within_s: float) -> int:
        """When the first round of a later epoch was seen, in monotonic milliseconds. Raises Unavailable."""
        until_ms = self._clock.monotonic_ms() + round(within_s * 1_000)
        while True:
            found = next((at_ms for later, _, at_ms in reversed(self.seen.rounds) if later > epoch), None)
            if found is not None:
                return next(at_ms for later, _, at_ms in self.seen.rounds if later > epoch)
            if self._clock.monotonic_ms() > until_ms:
                raise Unavailable(f"no round after epoch {epoch} within {within_s:.0f} s")
            await self._clock.sleep(0.005)

    async def all_decided(self, keys: list[str], *, within_s: float) -> None:
        """Wait until each task was assigned. Raises Unavailable."""
        until_ms = self._clock.monotonic_ms() + round(within_s * 1_000)
        while missing := set(keys) - {key for key, _ in self.seen.assigned}:
            if self._clock.monotonic_ms() > until_ms:
                raise Unavailable(f"{len(missing)} of {len(keys)} tasks were not assigned within {within_s:.0f} s")
            await self._clock.sleep(0.1)

    async def _read(self) -> None:
        while True:
            batches = await self._consumer.getmany(timeout_ms=1_000, max_records=2_000)
            now_ms = self._clock.monotonic_ms()
            for partition, records in batches.items():
                for record in records:
                    self._take(partition.topic, record, now_ms)

    def _take(self, topic: str, record: Any, now_ms: int) -> None:
        body = json.loads(record.value)
        if topic == streams.ROUNDS.name:
            self.seen.rounds.append((body["epoch"], body["round"], now_ms))
        elif dict(record.headers)["ce_type"] == b"task.assigned":
            self.seen.assigned[record.key.decode(), body["attempt"]] += 1
