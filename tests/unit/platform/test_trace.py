"""Trace context: the standard's header in and out, the same ids in every run, nothing at all when off."""

from __future__ import annotations

import random

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from evenflow.events.envelope import span_id_of, traceparent_of
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


class Sent:
    """A record as written."""

    def __init__(self, **headers: str) -> None:
        self.topic = "t"
        self.headers = [(name, value.encode()) for name, value in headers.items()]


def _record(event: str, correlation: str, cause: str = "") -> Sent:
    header = traceparent_of(correlation, event)
    more = {"causation_id": cause} if cause else {}
    return Sent(ce_id=event, ce_type="x", correlation_id=correlation, traceparent=header, **more)


def test_a_record_s_span_has_the_ids_of_its_header_and_its_cause_for_a_parent() -> None:
    """Without anything handed on: the submission is the root, what names no cause hangs on it."""
    tracing, exporter = _tracing()
    tracing.published([_record("a", "a"), _record("b", "a", "a"), _record("c", "a", "b"), _record("d", "a")], 3)
    spans = exporter.get_finished_spans()
    ids = {event: int(span_id_of(event), 16) for event in "abcd"}
    assert [_context(span)[1] for span in spans] == list(ids.values())
    assert len({_context(span)[0] for span in spans}) == 1
    parents = [span.parent.span_id if span.parent else None for span in spans]
    assert parents == [None, ids["a"], ids["b"], ids["a"]]
    assert spans[0].end_time - spans[0].start_time == 3_000_000


def test_records_without_a_context_or_not_to_be_told_are_passed_over() -> None:
    """State rows carry none; a caller may have said no; anything unreadable is none."""
    tracing, exporter = _tracing()
    tracing.published([Sent(ce_id="a"), Sent(traceparent=UNSAMPLED), Sent(traceparent="x"), Sent(traceparent="ä")], 0)
    assert exporter.get_finished_spans() == ()


def test_a_batch_has_its_own_trace_and_links_both_ways() -> None:
    """Each record's trace gets a span of its own; what the batch publishes links to the batch."""
    tracing, exporter = _tracing()
    headers = [traceparent_of(one, one) for one in ("a", "b")]
    with tracing.handling("t", [*headers, "", UNSAMPLED]):
        tracing.published([_record("c", "a", "a")], 0)
    published, batch, *handled = exporter.get_finished_spans()
    assert (published.name, batch.name) == ("publish x", "handle batch t")
    assert [span.name for span in handled] == ["handle t", "handle t"]
    assert [f"{link.context.span_id:016x}" for link in batch.links] == [header[36:52] for header in headers]
    assert [f"{_context(span)[0]:032x}" for span in handled] == [header[3:35] for header in headers]
    assert [link.context.span_id for span in (*handled, published) for link in span.links] == [_context(batch)[1]] * 3
    assert batch.attributes["messaging.batch.message_count"] == 4


def test_a_record_handled_alone_is_the_parent_of_what_it_leads_to() -> None:
    """No batch, no link: one line of parents."""
    tracing, exporter = _tracing()
    with tracing.handling("t", [traceparent_of("a", "a")]):
        tracing.published([_record("b", "a", "a")], 0)
    published, handled = exporter.get_finished_spans()
    assert published.parent.span_id == _context(handled)[1]
    assert handled.parent.span_id == int(span_id_of("a"), 16)
    assert not published.links


def test_a_batch_of_nothing_to_tell_is_not_told() -> None:
    """Telemetry and traces that are not told cost no span."""
    tracing, exporter = _tracing()
    with tracing.handling("t", ["", UNSAMPLED]):
        pass
    with tracing.handling("t", [""]):
        pass
    assert exporter.get_finished_spans() == ()


def test_a_round_of_many_tasks_keeps_a_bounded_number_of_links() -> None:
    """A round of a thousand tasks keeps so many links, and counts the rest."""
    tracing, exporter = _tracing()
    with tracing.span("round", links=[traceparent_of(str(n), str(n)) for n in range(1_000)]):
        pass
    (span,) = exporter.get_finished_spans()
    assert len(span.links) == trace.LINKS_MAX


def test_every_process_tells_the_same_share_of_traces() -> None:
    """The trace's id decides, so each told trace is whole."""
    told = []
    for seed in (1, 2):
        exporter = InMemorySpanExporter()
        tracing = trace.Tracing(
            "x", random=random.Random(seed), clock=Clock(), processors=[SimpleSpanProcessor(exporter)], ratio=0.25
        )
        tracing.published([_record(f"e{n}", f"e{n}") for n in range(2_000)], 0)
        told.append({_context(span) for span in exporter.get_finished_spans()})
    assert told[0] == told[1]
    assert 400 < len(told[0]) < 600
