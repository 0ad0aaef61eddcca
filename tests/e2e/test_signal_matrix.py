"""One task from submission to its bill, through every service in one process: each span and figure of the matrix."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from evenflow.agent.clients.http import HttpExchange
from evenflow.client.api import AsyncClient
from evenflow.hosting.composition import Composition
from evenflow.hosting.development.fleet import Fleet
from evenflow.hosting.development.load import World
from evenflow.hosting.operations.matrix import EXPECTED, missing, table
from evenflow.hosting.operations.traces import Traces
from evenflow.hosting.registry import SERVICES
from evenflow.hosting.surroundings import HostSettings, Surroundings
from evenflow.platform.observability.metrics import Metrics
from evenflow.platform.observability.signals import SIGNALS

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-of-this-test-alone"
TASK: dict[str, Any] = {
    "id": "seen",
    "queue": "research",
    "resources": {"cpu": 1},
    "run": {"work_s": 4, "progress_every_s": 1},
    "checkpoint": {"every_s": 1, "size": "1MB"},
}
WITHIN_S = 60.0


class Seen:
    """What a whole pool told: spans by service, names of figures by service, log lines."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.readers: dict[str, InMemoryMetricReader] = {}
        self._meters: dict[str, MeterProvider] = {}
        self.lines: list[dict[str, Any]] = []
        self.answer = ""

    def metrics(self, service: str) -> Metrics:
        """One reader a service."""
        if service not in self._meters:
            reader = self.readers[service] = InMemoryMetricReader()
            self._meters[service] = MeterProvider([reader], shutdown_on_exit=False)
        return Metrics(self._meters[service].get_meter("evenflow"))

    @property
    def spans(self) -> dict[str, list[ReadableSpan]]:
        """By service."""
        found: dict[str, list[ReadableSpan]] = defaultdict(list)
        for span in self.exporter.get_finished_spans():
            found[str(span.resource.attributes["service.name"]).removeprefix("evenflow-")].append(span)
        return found

    def figures(self, service: str) -> set[str]:
        """Names of a service's figures."""
        data = self.readers[service].get_metrics_data()
        return {
            metric.name
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def labels(self, service: str, figure: str, label: str) -> set[str]:
        """The values of one label of a service's figure."""
        data = self.readers[service].get_metrics_data()
        return {
            str((point.attributes or {})[label])
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == figure
            for point in metric.data.data_points
        }

    def in_trace(self, trace_id: str) -> dict[str, ReadableSpan]:
        """Spans of one trace by id."""
        return {
            f"{span.context.span_id:016x}": span
            for span in self.exporter.get_finished_spans()
            if f"{span.context.trace_id:032x}" == trace_id
        }


async def _until(what: str, look: Any) -> Any:
    for _ in range(round(WITHIN_S / 0.1)):
        found = await look()
        if found:
            return found
        await asyncio.sleep(0.1)
    pytest.fail(f"{what}: not within {WITHIN_S} s")


async def _drive(seen: Seen) -> None:
    settings = HostSettings(console_port=0, gateway_port=0)
    around = Surroundings(settings, write=lambda line: seen.lines.append(json.loads(line)))
    around.traces = Traces("", 1.0, around.clock, [SimpleSpanProcessor(seen.exporter)])
    around.metrics = seen.metrics
    composition = Composition(around)
    composition.add_doors("console", "gateway")
    chosen = {
        "gateway": SERVICES["gateway"].settings(token=TOKEN),
        "checkpoint": SERVICES["checkpoint"].settings(prune_period_ms=1_000),
        "link-probe": SERVICES["link-probe"].settings(probe_period_ms=1_000),
    }
    composition.add_services(chosen)
    urls = {name: f"http://127.0.0.1:{server.port}" for name, server in composition.servers.items()}
    exchanges: list[HttpExchange] = []

    def exchange() -> HttpExchange:
        exchanges.append(HttpExchange(urls["gateway"]))
        return exchanges[-1]

    fleet = Fleet(around, exchange, TOKEN, None)
    world = World(
        composition.doors["console"], around.clock, around.logger("neighbourhood"), token="", seed=1, load=False
    )
    composition.supervisor.add(fleet.name, lambda: fleet)
    composition.supervisor.add(world.name, lambda: world)
    await composition.start()
    try:
        await fleet.until_seen()
        async with AsyncClient(urls["console"], who="test") as client:
            await client.submit(TASK)

            async def billed() -> bool:
                status = await client.status("seen")
                entries = (await client.ledger(task="seen")).items
                return status.state == "succeeded" and bool(entries)

            async def verified() -> bool:
                return any(span.name == "publish checkpoint.verified" for span in seen.spans["checkpoint"])

            await _until("the task's bill", billed)
            await _until("its checkpoint", verified)
            await _until("a probe", lambda: _any(seen, "link-probe", "publish link.estimated"))
        await composition.measure()
    finally:
        await composition.stop()
        fleet.close()
        for each in exchanges:
            await each.close()


async def _any(seen: Seen, service: str, name: str) -> bool:
    return any(span.name == name for span in seen.spans[service])


@pytest.fixture(scope="module")
def seen() -> Seen:
    """One run for all tests of this file."""
    found = Seen()
    asyncio.run(_drive(found))
    return found


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_tells_every_span_and_figure_of_the_matrix(seen: Seen, service: str) -> None:
    """Proves each cell: a span or a figure that is no longer told is named here."""
    assert list(missing(service, {span.name for span in seen.spans[service]}, seen.figures(service))) == []


def test_one_task_is_one_trace_through_every_service_that_it_meets(seen: Seen) -> None:
    """Proves that spans of the console, placement, gateway, checkpoint and billing share the task's trace, whole."""
    trace_id = _trace_of(seen)
    spans = seen.in_trace(trace_id)
    services = {str(span.resource.attributes["service.name"]).removeprefix("evenflow-") for span in spans.values()}
    assert services == {name for name, told in EXPECTED.items() if told.course}
    roots = [span.name for span in spans.values() if span.parent is None]
    assert roots == ["publish task.submitted"]
    strays = [span.name for span in spans.values() if span.parent and f"{span.parent.span_id:016x}" not in spans]
    assert strays == []


def test_a_round_links_to_what_it_took_in_and_is_linked_by_what_it_said(seen: Seen) -> None:
    """Proves that a round, which serves many tasks, has a trace of its own with links both ways."""
    trace_id = _trace_of(seen)
    rounds = [span for span in seen.spans["placement"] if span.name == "round"]
    took = [span for span in rounds if any(f"{link.context.trace_id:032x}" == trace_id for link in span.links)]
    assert took
    assert all(f"{span.context.trace_id:032x}" != trace_id for span in rounds)
    assigned = next(span for span in seen.in_trace(trace_id).values() if span.name == "publish task.assigned")
    assert {link.context.span_id for link in assigned.links} <= {span.context.span_id for span in rounds}
    assert assigned.links


def test_the_request_and_the_task_link_to_each_other(seen: Seen) -> None:
    """Proves that a submission begins the task's trace and links to the request that brought it."""
    trace_id = _trace_of(seen)
    submitted = next(span for span in seen.in_trace(trace_id).values() if span.name == "publish task.submitted")
    requests = {span.context.span_id for span in seen.spans["console"] if span.name == "POST /api/v1/tasks"}
    assert {link.context.span_id for link in submitted.links} == requests


def test_a_log_line_carries_the_trace_that_it_belongs_to(seen: Seen) -> None:
    """Proves that the round's line leads to the round's trace, and a handled record's to its task's."""
    told = {line.get("trace_id") for line in seen.lines if line["event"] == "round committed"}
    assert told & {f"{span.context.trace_id:032x}" for span in seen.spans["placement"] if span.name == "round"}
    handled = [line for line in seen.lines if line["event"] == "records handled" and line["service"] == "checkpoint"]
    assert _trace_of(seen) in {line.get("trace_id") for line in handled}


def test_the_matrix_notices_what_is_gone() -> None:
    """Proves that a removed span and a removed figure are both named."""
    for service, told in EXPECTED.items():
        spans, figures = set(told.spans), {one.name for one in told.signals}
        assert list(missing(service, spans, figures)) == []
        for name in spans:
            assert list(missing(service, spans - {name}, figures)) == [f"{service} tells no span {name!r}"]
        for name in figures:
            assert list(missing(service, spans, figures - {name})) == [f"{service} tells no figure {name}"]


def test_every_service_and_every_figure_of_a_service_is_in_the_matrix() -> None:
    """Proves that nothing is told that nobody looks at: a new figure goes into the table. Lag is the host's own."""
    assert list(EXPECTED) == list(SERVICES)
    looked_at = {one.name for told in EXPECTED.values() for one in told.signals}
    assert {one.name for one in SIGNALS} - looked_at == {"evenflow_lag_records", "evenflow_lag_seconds"}


def test_the_page_shows_the_matrix() -> None:
    """Proves that docs/observability.md holds the very table."""
    assert table() in (ROOT / "docs" / "observability.md").read_text(encoding="utf-8")


def _trace_of(seen: Seen) -> str:
    submitted = next(span for span in seen.spans["console"] if span.name == "publish task.submitted")
    return f"{submitted.context.trace_id:032x}"


def test_requests_of_both_doors_are_told_by_their_routes(seen: Seen) -> None:
    """Proves that a route's template gets into figures: `other` is for addresses that do not exist."""
    for service in ("gateway", "console"):
        routes = seen.labels(service, "evenflow_http_requests", "route")
        assert routes
        assert "other" not in routes
