"""How far a group is behind: by records and by the age of the oldest, on the embedded log."""

from __future__ import annotations

from typing import Any

from aiokafka import TopicPartition
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from evenflow.events.streams import USAGE
from evenflow.hosting.operations.lag import LagWatch
from evenflow.hosting.surroundings import HostSettings, Surroundings
from evenflow.platform.observability.metrics import Metrics

GROUP = "evenflow.billing.ledger"
NOW_MS = 1_750_000_000_000


class Clock:
    """Stands still; tests move it."""

    at_ms = NOW_MS

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic_ms(self) -> int:
        return self.at_ms

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(f"nothing waits here, not even {seconds} s")


def _figures(reader: InMemoryMetricReader) -> dict[str, dict[tuple[Any, ...], Any]]:
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: {tuple(point.attributes.values()): point.value for point in metric.data.data_points}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
    }


async def test_lag_is_told_by_records_and_by_the_age_of_the_oldest() -> None:
    """Proves both, that what is handled counts no more, and that a group that has caught up shows nothing."""
    clock, reader = Clock(), InMemoryMetricReader()
    around = Surroundings(HostSettings(), clock=clock, write=lambda _: None)
    await around.provision()
    metrics = Metrics(MeterProvider([reader], shutdown_on_exit=False).get_meter("evenflow"))
    watch = LagWatch(around.transport(), clock, around.logger("host"), metrics, lambda: [GROUP])
    transport = around.transport()
    producer = transport.producer(client_id="p")
    await producer.start()
    for partition, after_s in ((0, 0), (0, 30), (1, 20)):
        clock.at_ms = NOW_MS + after_s * 1_000
        await producer.send_and_wait(USAGE.name, value=b"{}", key=b"k", partition=partition)
    clock.at_ms = NOW_MS + 100_000
    consumer = transport.consumer(USAGE.name, client_id="c", group_id=GROUP)
    await consumer.start()
    places = [TopicPartition(USAGE.name, index) for index in range(USAGE.partitions)]
    while set(places) - consumer.assignment():
        await consumer.getmany(timeout_ms=10)

    async def told(**offsets: int) -> tuple[int, int]:
        await consumer.commit({place: offsets.get(f"p{place.partition}", 0) for place in places})
        await watch.look()
        found = _figures(reader)
        labels = (GROUP, USAGE.name)
        return found["evenflow_lag_records"][labels], found["evenflow_lag_seconds"][labels]

    assert await told(p0=0, p1=0) == (3, 100)
    assert await told(p0=1, p1=0) == (2, 80)
    assert await told(p0=1, p1=1) == (1, 70)
    assert await told(p0=2, p1=1) == (0, 0)
    await consumer.stop()
    await producer.stop()
    await around.close()
