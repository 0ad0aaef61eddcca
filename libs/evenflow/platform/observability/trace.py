"""Trace context in record and HTTP headers (W3C traceparent), and an optional tracer.

Off, `span` costs a function call: it hands an incoming traceparent on unchanged and makes nothing. On, spans come from
OpenTelemetry's SDK with ids drawn from the injected generator and times of the injected clock, so a simulated world's
traces are the same in every run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from random import Random
from typing import TYPE_CHECKING, Final

from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from evenflow.platform.clock import Clock

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Tracer

NS_PER_MS: Final = 1_000_000

_FORM: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_current: ContextVar[SpanContext | None] = ContextVar("evenflow_trace", default=None)


def parse_traceparent(text: str) -> SpanContext | None:
    """The context of a header; None for anything that is none, as the standard asks: a new trace begins then.

    A later version than 00 is read as far as its known part goes.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    version, trace_id, span_id, flags, more = match.groups()
    if version == "ff" or (version == "00" and more) or int(trace_id, 16) == 0 or int(span_id, 16) == 0:
        return None
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16) & 1))


def traceparent(context: SpanContext) -> str:
    """The header of a context."""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags & 1:02x}"


def current_trace() -> SpanContext | None:
    """The context that this task runs in, if any."""
    return _current.get()


def current_traceparent() -> str:
    """The header to send on from here; empty outside of any trace."""
    context = _current.get()
    return "" if context is None else traceparent(context)


class Tracing:
    """Spans of one process. Without processors it is off."""

    def __init__(self, service: str, *, random: Random, clock: Clock, processors: Sequence[SpanProcessor] = ()) -> None:
        self._clock = clock
        self._tracer: Tracer | None = _make_tracer(service, random, processors) if processors else None

    @contextmanager
    def span(
        self, name: str, *, parent: str = "", attributes: Mapping[str, str | int | bool] | None = None
    ) -> Iterator[str]:
        """Run the body in a span and yield the traceparent to send on.

        `parent` is an incoming header; without one the span continues this task's trace, or begins one.
        """
        remote = parse_traceparent(parent) if parent else None
        if self._tracer is None:
            if remote is None:
                yield current_traceparent()
                return
            token = _current.set(remote)
            try:
                yield parent
            finally:
                _current.reset(token)
            return
        context = remote or _current.get()
        span = self._tracer.start_span(
            name,
            set_span_in_context(NonRecordingSpan(context)) if context is not None else None,
            attributes=attributes,
            start_time=self._clock.now_ms() * NS_PER_MS,
        )
        token = _current.set(span.get_span_context())
        try:
            yield traceparent(span.get_span_context())
        except Exception as error:
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise
        finally:
            _current.reset(token)
            span.end(self._clock.now_ms() * NS_PER_MS)


def _make_tracer(service: str, random: Random, processors: Sequence[SpanProcessor]) -> Tracer:
    # The SDK is loaded where tracing is on.
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.id_generator import IdGenerator
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased

    class InjectedIds(IdGenerator):
        def generate_span_id(self) -> int:
            return _nonzero(random, 64)

        def generate_trace_id(self) -> int:
            return _nonzero(random, 128)

    provider = TracerProvider(
        sampler=ParentBased(ALWAYS_ON),
        resource=Resource({"service.name": f"evenflow-{service}"}),
        id_generator=InjectedIds(),
        shutdown_on_exit=False,
    )
    for processor in processors:
        provider.add_span_processor(processor)
    return provider.get_tracer("evenflow")


def _nonzero(random: Random, bits: int) -> int:
    """All-zero ids are invalid in the standard."""
    return random.getrandbits(bits) or 1
