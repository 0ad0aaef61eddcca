"""The way of spans to a collector: OTLP over HTTP, bounded in memory and in time, and never in the way of the service.

Spans wait in a queue of the SDK's and are sent by the SDK's own thread. A collector that is away or slow costs spans,
nothing else: what does not fit is dropped, an export is given two seconds, and so is the last one at a stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import requests
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from evenflow.platform.clock import Clock

PATH: Final = "/v1/traces"
QUEUE_MAX: Final = 4_096
BATCH_MAX: Final = 512
PERIOD_MS: Final = 1_000
EXPORT_S: Final = 2.0
STOP_MS: Final = 2_000


class Export:
    """A processor that sends to one collector. Neither proxies nor passwords of the environment are used."""

    def __init__(self, url: str, clock: Clock) -> None:
        session = requests.Session()
        session.trust_env = False
        sender = OTLPSpanExporter(f"{url}{PATH}", timeout=EXPORT_S, compression=Compression.Gzip, session=session)
        self._bounded = BoundedExporter(sender, clock)
        self.processor = BatchSpanProcessor(
            self._bounded, max_queue_size=QUEUE_MAX, schedule_delay_millis=PERIOD_MS, max_export_batch_size=BATCH_MAX
        )

    def end_soon(self) -> None:
        """Before the processor is shut down: what it still holds has a bounded time."""
        self._bounded.end_within(STOP_MS)


class BoundedExporter(SpanExporter):
    """Another exporter until a moment; then nothing, so that a stop does not wait for a queue to drain."""

    def __init__(self, exporter: SpanExporter, clock: Clock) -> None:
        self._exporter = exporter
        self._clock = clock
        self._end_ms: int | None = None

    def end_within(self, limit_ms: int) -> None:
        """From now on there is so much time left."""
        self._end_ms = self._clock.monotonic_ms() + limit_ms

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send, while there is time; once one fails at a stop, the others are not tried."""
        if self._end_ms is not None and self._clock.monotonic_ms() >= self._end_ms:
            return SpanExportResult.FAILURE
        result = self._exporter.export(spans)
        if self._end_ms is not None and result is not SpanExportResult.SUCCESS:
            self._end_ms = self._clock.monotonic_ms()
        return result

    def shutdown(self) -> None:
        """Let go of the connection."""
        self._exporter.shutdown()
