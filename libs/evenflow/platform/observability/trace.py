"""Trace context in record and HTTP headers (W3C traceparent), and an optional tracer.

A record's header names a span of its own: its trace follows from the correlation id, its span from the event's id
(`events.envelope`). Whoever writes the record tells that span, under the very ids of the header, so a task's course is
one trace over all services with nothing handed on by hand. What concerns many tasks at once, a batch or a round, is a
span of its own trace with links to theirs.

Off, `span` costs a function call: it hands an incoming traceparent on unchanged and makes nothing. On, spans come from
OpenTelemetry's SDK with ids drawn from the injected generator and times of the injected clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from random import Random
from typing import TYPE_CHECKING, Final, Protocol

from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from evenflow.events.envelope import span_id_of
from evenflow.platform.clock import Clock, SystemClock

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.trace import Tracer

NS_PER_MS: Final = 1_000_000
#: Links of one span; what a round or a batch took in beyond that is counted in its attributes only.
LINKS_MAX: Final = 128
#: Ids are compared by their lower half, which is where the standard wants them random.
_HALF: Final = (1 << 64) - 1
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)

Attributes = dict[str, str | int | bool]

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


class Sent(Protocol):
    """A record as it was written."""

    @property
    def topic(self) -> str: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes]]: ...


class Tracing:
    """Spans of one process. Without processors it is off.

    `ratio` of all traces is told, 0 to 1. A trace's own id decides, so every process tells the same ones; a caller
    that says its trace is not told has the last word. `on` = whether any span is ever told: asked before working out
    what to say.
    """

    def __init__(
        self,
        service: str,
        *,
        random: Random,
        clock: Clock,
        processors: Sequence[SpanProcessor] = (),
        ratio: float = 1.0,
        instance: str = "",
    ) -> None:
        self._random = random
        self._clock = clock
        self._below = round(ratio * (_HALF + 1))
        self._chosen = SpanContext(0, 0, is_remote=False)
        self._tracer: Tracer | None = (
            _make_tracer(service, instance, lambda: self._chosen, processors) if processors and self._below else None
        )
        self.on: Final = self._tracer is not None

    @contextmanager
    def span(
        self,
        name: str | Callable[[], str],
        *,
        parent: str = "",
        attributes: Attributes | None = None,
        links: Iterable[str] | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Iterator[str]:
        """Run the body in a span and yield the traceparent to send on.

        `parent` is an incoming header; without one the span continues this task's trace, or begins one. Name and
        attributes are read at the end, so that the body may still say them. With `links` (headers of records) the span
        begins a trace of its own, which is told when one of theirs is.
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
        above = remote or (_current.get() if links is None else None)
        linked = [one for one in map(parse_traceparent, links or ()) if one is not None and self._takes(one)]
        context = self._below_of(above, told=bool(linked) if links is not None else None)
        began_ms = self._clock.now_ms()
        token = _current.set(context)
        failure: Exception | None = None
        try:
            yield traceparent(context)
        except Exception as error:
            failure = error
            raise
        finally:
            _current.reset(token)
            self._tell(
                context,
                name if isinstance(name, str) else name(),
                kind,
                above,
                attributes=attributes or {},
                times_ms=(began_ms, self._clock.now_ms()),
                links=linked[:LINKS_MAX],
                failure=failure,
            )

    @contextmanager
    def handling(self, topic: str, parents: Sequence[str]) -> Iterator[None]:
        """Run a handler of records; `parents` are their headers, empty where there is none.

        One record: the body runs in a span of its trace. Several: in a span of the batch, and each record's trace gets
        a span that links to it. Nothing is told of records whose traces are not.
        """
        attributes: Attributes = {"messaging.system": "kafka", "messaging.destination.name": topic}
        if len(parents) == 1 and parse_traceparent(parents[0]) is not None:
            with self.span(f"handle {topic}", parent=parents[0], attributes=attributes, kind=SpanKind.CONSUMER):
                yield
            return
        began_ms = self._clock.now_ms()
        many: Attributes = {**attributes, "messaging.batch.message_count": len(parents)}
        with self.span(f"handle batch {topic}", attributes=many, links=parents, kind=SpanKind.CONSUMER):
            batch = _current.get()
            yield
        if batch is None or not batch.trace_flags.sampled:
            return
        took = (began_ms, self._clock.now_ms())
        for above in map(parse_traceparent, parents):
            if above is not None and self._takes(above):
                one = self._below_of(above)
                self._tell(
                    one,
                    f"handle {topic}",
                    SpanKind.CONSUMER,
                    above,
                    attributes=attributes,
                    times_ms=took,
                    links=[batch],
                )

    def published(self, records: Iterable[Sent], took_ms: int) -> None:
        """Tell the span of each record that the log has just taken: the ids are those of its header.

        Its parent is the current span when that is of the same trace; otherwise the record that caused it, and the
        current span, a round or a request, is linked.
        """
        if self._tracer is None:
            return
        now_ms, current = self._clock.now_ms(), _current.get()
        for record in records:
            found = dict(record.headers)
            context = parse_traceparent(found.get("traceparent", b"").decode("ascii", "replace"))
            if context is None or not self._takes(context):
                continue
            above = current if current is not None and current.trace_id == context.trace_id else None
            links = [current] if above is None and current is not None and current.trace_flags.sampled else []
            # Nothing named as its cause: it belongs to what began the course, whose id all of its records repeat.
            cause = (found.get("causation_id") or found.get("correlation_id", b"")).decode("utf-8", "replace")
            if above is None and cause and cause != found.get("ce_id", b"").decode("utf-8", "replace"):
                above = SpanContext(context.trace_id, int(span_id_of(cause), 16), is_remote=True, trace_flags=_SAMPLED)
            attributes: Attributes = {
                "messaging.system": "kafka",
                "messaging.destination.name": record.topic,
                "evenflow.event.type": found.get("ce_type", b"").decode("utf-8", "replace"),
                "evenflow.subject": found.get("ce_subject", b"").decode("utf-8", "replace"),
            }
            name = f"publish {attributes['evenflow.event.type']}"
            times = (now_ms - took_ms, now_ms)
            self._tell(context, name, SpanKind.PRODUCER, above, attributes=attributes, times_ms=times, links=links)

    # ------------------------------------------------------------------------------------------------------------------

    def _takes(self, context: SpanContext) -> bool:
        return bool(context.trace_flags.sampled) and (context.trace_id & _HALF) < self._below

    def _below_of(self, above: SpanContext | None, *, told: bool | None = None) -> SpanContext:
        """A context under another, or of a new trace; `told` decides for a new one, otherwise its id does."""
        trace_id = above.trace_id if above is not None else _nonzero(self._random, 128)
        if above is not None:
            told = self._takes(above) if above.is_remote else bool(above.trace_flags.sampled)
        elif told is None:
            told = (trace_id & _HALF) < self._below
        return SpanContext(
            trace_id, _nonzero(self._random, 64), is_remote=False, trace_flags=_SAMPLED if told else TraceFlags(0)
        )

    def _tell(
        self,
        context: SpanContext,
        name: str,
        kind: SpanKind,
        above: SpanContext | None,
        *,
        attributes: Attributes,
        times_ms: tuple[int, int],
        links: Sequence[SpanContext] = (),
        failure: Exception | None = None,
    ) -> None:
        if self._tracer is None or not context.trace_flags.sampled:
            return
        self._chosen = context
        span = self._tracer.start_span(
            name,
            Context() if above is None else set_span_in_context(NonRecordingSpan(above), Context()),
            kind,
            attributes=attributes,
            links=[Link(one) for one in links],
            start_time=times_ms[0] * NS_PER_MS,
        )
        if failure is not None:
            span.set_status(Status(StatusCode.ERROR, type(failure).__name__))
        span.end(times_ms[1] * NS_PER_MS)


OFF: Final = Tracing("", random=Random(0), clock=SystemClock())  # noqa: S311  never drawn from: it makes no ids


def _make_tracer(
    service: str, instance: str, chosen: Callable[[], SpanContext], processors: Sequence[SpanProcessor]
) -> Tracer:
    # The SDK is loaded where tracing is on.
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.id_generator import IdGenerator
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON

    class ChosenIds(IdGenerator):
        """Ids that were chosen before the span is made."""

        def generate_span_id(self) -> int:
            return chosen().span_id

        def generate_trace_id(self) -> int:
            return chosen().trace_id

        def is_trace_id_random(self) -> bool:
            return False

    about = {"service.name": f"evenflow-{service}", **({"service.instance.id": instance} if instance else {})}
    provider = TracerProvider(
        sampler=ALWAYS_ON,  # what is not to be told never gets here
        resource=Resource(about),
        id_generator=ChosenIds(),
        shutdown_on_exit=False,
    )
    for processor in processors:
        provider.add_span_processor(processor)
    return provider.get_tracer("evenflow")


def _nonzero(random: Random, bits: int) -> int:
    """All-zero ids are invalid in the standard."""
    return random.getrandbits(bits) or 1
