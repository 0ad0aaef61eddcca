"""The figures of a process in Prometheus' text form, collected when they are asked for."""

from __future__ import annotations

from typing import Final

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.view import ExplicitBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest, process_collector

from evenflow.platform.observability.metrics import Metrics

#: Upper bounds of the buckets of times, in milliseconds: from a step of a decider to the longest take-over.
TIME_BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000)


class Measures:
    """One registry a process; `metrics` is what its services record with."""

    content_type: Final = CONTENT_TYPE_LATEST.encode()

    def __init__(self, service: str) -> None:
        self._registry = CollectorRegistry()
        reader = PrometheusMetricReader(disable_target_info=True, scope_info_enabled=False, registry=self._registry)
        process_collector.ProcessCollector(registry=self._registry)
        self._provider = MeterProvider(
            [reader],
            Resource({"service.name": f"evenflow-{service}"}),
            shutdown_on_exit=False,
            views=[View(instrument_name="*_ms", aggregation=ExplicitBucketHistogramAggregation(TIME_BOUNDS_MS))],
        )

    def metrics(self, _service: str = "") -> Metrics:
        """For one incarnation of a service; all of them add to the same figures."""
        return Metrics(self._provider.get_meter("evenflow"))

    def text(self) -> bytes:
        """All figures as they are now."""
        return generate_latest(self._registry)
