"""Trace context in headers: one correlation is one trace, each event a span of its own."""

from __future__ import annotations

from evenflow.events import streams
from evenflow.events.contracts.agent import NodeAnnounced
from evenflow.events.contracts.console import NodeCordonRequested
from evenflow.events.envelope import traceparent_of
from evenflow.platform.broker.codec import Fact
from evenflow.platform.observability.trace import parse_traceparent
from evenflow.testkit.pool import Pool, run

OUTSIDE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


def test_what_follows_from_an_event_stays_in_its_trace_as_a_span_of_its_own() -> None:
    """Cause and effect share the trace id, also when an outsider began the trace."""

    async def story(pool: Pool) -> None:
        first = Fact(streams.REQUESTS, NodeCordonRequested(node="n1"), traceparent=OUTSIDE)
        await pool.publish(first)
        cause = (await pool.facts(streams.REQUESTS))[0]
        await pool.publish(Fact(streams.REQUESTS, NodeCordonRequested(node="n1"), cause=cause, id="next"))
        seen = [parse_traceparent(one.envelope.traceparent) for one in await pool.facts(streams.REQUESTS)]
        assert all(seen)
        traces = [context.trace_id for context in seen if context]
        assert traces == [int(OUTSIDE[3:35], 16)] * 2
        assert len({context.span_id for context in seen if context}) == 2

    run(story)


def test_a_trace_begins_with_the_correlation_and_life_signs_have_none() -> None:
    """Two processes that know the same correlation name the same trace; telemetry is no part of a course."""
    assert traceparent_of("c1", "e1")[3:35] == traceparent_of("c1", "e2")[3:35] != traceparent_of("c2", "e1")[3:35]

    async def story(pool: Pool) -> None:
        body = NodeAnnounced(node="n1", session="s", document={}, agent_version="0.1")
        await pool.publish(Fact(streams.TELEMETRY, body))
        assert (await pool.facts(streams.TELEMETRY))[0].envelope.traceparent == ""

    run(story)
