"""Trace context: the standard's header in and out, the same ids in every run, nothing at all when off."""

from __future__ import annotations

import random

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from evenflow.platform.observability import trace

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
UNSAMPLED = PARENT[:-1] + "0"


class Clock:
    """A clock that stands."""

    now = 5_000

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1000)


def _tracing(seed: int = 1) -> tuple[trace.Tracing, InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    processors = [SimpleSpanProcessor(exporter)]
    return trace.Tracing("placement", random=random.Random(seed), clock=Clock(), processors=processors), exporter


def _context(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


@pytest.mark.parametrize("text", [PARENT, UNSAMPLED])
def test_a_header_survives_reading_and_writing(text: str) -> None:
    """Version 00, sampled or not."""
    context = trace.parse_traceparent(text)
    assert context is not None
    assert trace.traceparent(context) == text


def test_a_later_version_is_read_as_far_as_known() -> None:
    """More fields and flags may follow; what we write is version 00."""
    context = trace.parse_traceparent("01" + PARENT[2:-2] + "03-more-to-come")
    assert context is not None
    assert trace.traceparent(context) == PARENT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        PARENT[:-1],
        PARENT.upper(),
        PARENT + "-x",
        "ff" + PARENT[2:],
        PARENT + "\n",
        " " + PARENT,
        PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32),
        PARENT.replace("00f067aa0ba902b7", "0" * 16),
    ],
)
def test_anything_else_is_no_context(text: str) -> None:
    """The standard asks to begin a new trace then, not to fail."""
    assert trace.parse_traceparent(text) is None


def test_off_an_incoming_context_is_handed_on_unchanged() -> None:
    """A service without tracing does not cut its callers' traces."""
    tracing = trace.Tracing("x", random=random.Random(1), clock=Clock())
    with tracing.span("a") as header:
        assert header == ""
    with tracing.span("a", parent=PARENT) as header:
        assert header == PARENT
        with tracing.span("b", parent="garbage") as inner:
            assert inner == PARENT
        assert trace.current_traceparent() == PARENT
    assert trace.current_traceparent() == ""


def test_spans_continue_the_callers_trace_and_nest() -> None:
    """Parent and child by id, names and attributes kept, times of the injected clock."""
    tracing, exporter = _tracing()
    with tracing.span("round", parent=PARENT, attributes={"pool": "p"}) as outer, tracing.span("commit") as inner:
        assert trace.current_traceparent() == inner != outer
    commit, outer_span = exporter.get_finished_spans()
    assert (commit.name, outer_span.name) == ("commit", "round")
    assert outer_span.parent is not None
    assert f"{outer_span.parent.span_id:016x}" == "00f067aa0ba902b7"
    assert commit.parent is not None
    assert commit.parent.span_id == _context(outer_span)[1]
    assert outer_span.attributes == {"pool": "p"}
    assert (commit.start_time, commit.end_time) == (5_000_000_000, 5_000_000_000)
    assert trace.current_trace() is None


def test_equal_seeds_give_equal_traces() -> None:
    """A simulated world's traces can be compared byte for byte."""
    ids = []
    for seed in (1, 1, 2):
        tracing, exporter = _tracing(seed)
        with tracing.span("a"), tracing.span("b"):
            pass
        ids.append([_context(span) for span in exporter.get_finished_spans()])
    assert ids[0] == ids[1] != ids[2]


def test_an_unsampled_trace_records_nothing_and_goes_on_unsampled() -> None:
    """The first service of a trace decides."""
    tracing, exporter = _tracing()
    with tracing.span("a", parent=UNSAMPLED) as header:
        assert header.startswith(UNSAMPLED[:36])
        assert header.endswith("-00")
    assert exporter.get_finished_spans() == ()


def test_an_error_marks_its_span_and_passes() -> None:
    """By the type's name only: a message may hold anything."""
    tracing, exporter = _tracing()
    with pytest.raises(KeyError), tracing.span("a"):
        raise KeyError("hunter2")
    (span,) = exporter.get_finished_spans()
    assert span.status.description == "KeyError"
    assert "hunter2" not in span.to_json()
    assert trace.current_trace() is None
