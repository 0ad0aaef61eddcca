"""The spans of a process: told to a collector, or to whoever looks on; off unless asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from evenflow.core.errors import FieldRefused
from evenflow.platform.clock import Clock, system_random
from evenflow.platform.observability.trace import Tracing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

    from evenflow.hosting.operations.otlp import Export


class Traces:
    """The spans of one process; off without a URL and without processors of the caller's own."""

    def __init__(self, url: str, ratio: float, clock: Clock, processors: Sequence[SpanProcessor] = ()) -> None:
        """Raises FieldRefused for a URL that is no collector's."""
        self._ratio = ratio
        self._clock = clock
        self._export: Export | None = None
        self._processors = list(processors)
        if url and ratio:
            from evenflow.hosting.operations.otlp import Export  # half a second and many megabytes: where asked for

            self._export = Export(checked_collector(url), clock)
            self._processors.append(self._export.processor)

    def tracing(self, service: str, instance: str = "") -> Tracing:
        """For one incarnation of a service."""
        return Tracing(
            service,
            random=system_random(),
            clock=self._clock,
            processors=self._processors,
            ratio=self._ratio,
            instance=instance,
        )

    def close(self) -> None:
        """Send what waits, for two seconds and the export in hand at most; the rest is dropped."""
        if self._export is not None:
            self._export.end_soon()
        for processor in self._processors:
            processor.shutdown()
        self._processors = []


def checked_collector(url: str) -> str:
    """The address of a collector's OTLP door over HTTP. Raises FieldRefused."""
    try:
        parts = urlsplit(url)
        wrong = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
    except ValueError:
        wrong = True
    if wrong or parts.query or parts.fragment or parts.path.rstrip("/"):
        raise FieldRefused("traces", "must be a collector's address such as http://127.0.0.1:4318, without a path")
    if parts.username or parts.password:
        raise FieldRefused("traces", "must not hold a name or a password")
    return url.rstrip("/")
