"""How far the services of a process are behind: by records, and by the age of the oldest record not yet handled.

The log itself is asked, every few seconds, so that a reader that stands still shows as clearly as one that is slow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from evenflow.core.errors import EvenflowError
from evenflow.platform.broker.ports import Transport
from evenflow.platform.clock import Clock
from evenflow.platform.observability.metrics import Metrics
from evenflow.platform.observability.signals import LAG, LAG_AGE, STEPS

PERIOD_S: Final = 10.0
#: What is read at a group's offset: nothing where only marks of transactions follow.
POLL_MS: Final = 200
RECORDS_MAX: Final = 100


class LagWatch:
    """Looks at `groups` until cancelled. What can't be read now is read the next time."""

    def __init__(
        self, transport: Transport, clock: Clock, log: Any, metrics: Metrics, groups: Callable[[], Iterable[str]]
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._log = log
        self._metrics = metrics
        self._groups = groups

    async def run(self) -> None:
        """Look, pause, look again."""
        while True:
            outcome = "done"
            try:
                await self.look()
            except (KafkaError, EvenflowError, OSError, TimeoutError) as error:
                outcome = "failed"
                self._log.info("lag not read", problem=f"{type(error).__name__}: {error}")
            self._metrics.of(STEPS).record(1, step="lag", outcome=outcome)
            await self._clock.sleep(PERIOD_S)

    async def look(self) -> None:
        """One look at every group. Raises what the log's client does."""
        for group in self._groups():
            lags = await self._transport.lag(group)
            late = {place: count for place, count in lags.items() if count > 0}
            ages_ms = await self._ages_ms(late) if late else {}
            records: Counter[str] = Counter()
            oldest_ms: dict[str, int] = {place.topic: 0 for place in lags}
            for place, age_ms in ages_ms.items():
                records[place.topic] += late[place]
                oldest_ms[place.topic] = max(oldest_ms[place.topic], age_ms)
            for topic, age_ms in oldest_ms.items():
                self._metrics.of(LAG).record(records[topic], group=group, topic=topic)
                self._metrics.of(LAG_AGE).record(age_ms // 1000, group=group, topic=topic)

    async def _ages_ms(self, late: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Age of the first record of each partition that is not handled; none where only marks are left."""
        reader = self._transport.consumer(client_id="evenflow-lag")
        await reader.start()
        try:
            reader.assign(late)
            ends = await reader.end_offsets(late)
            first = await reader.beginning_offsets(late)
            for place, count in late.items():
                reader.seek(place, max(first[place], ends[place] - count))
            found: dict[TopicPartition, int] = {}
            while left := [place for place in late if place not in found]:
                batches = await reader.getmany(*left, timeout_ms=POLL_MS, max_records=RECORDS_MAX)
                if not batches:
                    break
                now_ms = self._clock.now_ms()
                for place, records in batches.items():
                    found.setdefault(place, max(0, now_ms - records[0].timestamp))
            return found
        finally:
            await reader.stop()
