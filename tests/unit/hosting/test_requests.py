"""A door's requests: counted by route and status, one line each, no query and no header in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, HTTPException
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

from evenflow.hosting.operations.measures import Measures
from evenflow.hosting.operations.traces import Traces
from evenflow.hosting.requests import Requests
from evenflow.platform.clock import SystemClock
from evenflow.platform.observability.logs import make_log

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def application() -> Any:
    app = FastAPI()

    @app.get("/tasks/{task}")
    async def task(task: str) -> dict[str, str]:
        if task == "none":
            raise HTTPException(404)
        return {"task": task}

    return app


@pytest.fixture
def door() -> tuple[Any, Measures, list[str]]:
    lines: list[str] = []
    measures, clock = Measures("console"), SystemClock()
    log = make_log(service="console", instance="c", clock=clock, write=lines.append)
    return Requests(application(), "console", clock, log, measures.metrics()), measures, lines


async def test_requests_are_counted_by_template_and_logged_without_their_query(
    door: tuple[Any, Measures, list[str]],
) -> None:
    """A thousand tasks are one series; what stands behind the question mark stays out of the log."""
    app, measures, lines = door
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://door") as client:
        for path in ("/tasks/a?token=geheim", "/tasks/b", "/tasks/none", "/elsewhere"):
            await client.get(path, headers={"authorization": "Bearer geheim"})
    samples = {
        (sample.labels["route"], sample.labels["status"]): sample.value
        for family in text_string_to_metric_families(measures.text().decode())
        for sample in family.samples
        if sample.name == "evenflow_http_requests_total"
    }
    assert samples == {("/tasks/{task}", "200"): 2, ("/tasks/{task}", "404"): 1, ("other", "404"): 1}
    assert len(lines) == 4
    assert '"path":"/tasks/a","status":200' in lines[0]
    assert "geheim" not in "".join(lines)


async def test_an_application_that_breaks_is_counted_and_its_error_passes(
    door: tuple[Any, Measures, list[str]],
) -> None:
    """Status 0: nobody was answered."""

    async def broken(_s: Any, _r: Callable[[], Awaitable[Any]], _t: Callable[[Any], Awaitable[None]]) -> None:
        raise RuntimeError("broken")

    lines: list[str] = []
    clock = SystemClock()
    log = make_log(service="console", instance="c", clock=clock, write=lines.append)
    app = Requests(broken, "console", clock, log, Measures("console").metrics())
    with pytest.raises(RuntimeError, match="broken"):
        await app({"type": "http", "method": "GET", "path": "/x"}, None, None)  # type: ignore[arg-type]  # nothing is received or sent
    assert '"status":0' in lines[0]


async def test_a_request_goes_on_with_its_caller_s_trace_and_tells_its_template(
    door: tuple[Any, Measures, list[str]],
) -> None:
    """Proves parent, name, route and status of the span, that its line carries its trace, and that no query is told."""
    exporter = InMemorySpanExporter()
    tracing = Traces("", 1.0, SystemClock(), [SimpleSpanProcessor(exporter)]).tracing("console")
    lines: list[str] = []
    log = make_log(service="console", instance="c", clock=SystemClock(), write=lines.append)
    app = Requests(application(), "console", SystemClock(), log, door[1].metrics(), tracing)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://door") as client:
        await client.get("/tasks/a?token=geheim", headers={"traceparent": CALLER})
        await client.get("/tasks/none", headers={"traceparent": "no such thing"})
        await client.get("/tasks/b", headers={"traceparent": CALLER[:-1] + "0"})
    asked, absent = exporter.get_finished_spans()
    assert asked.name == absent.name == "GET /tasks/{task}"
    assert f"{asked.context.trace_id:032x}-{asked.parent.span_id:016x}" == CALLER[3:52]
    assert absent.parent is None
    assert [span.attributes["http.response.status_code"] for span in (asked, absent)] == [200, 404]
    assert asked.attributes["http.route"] == "/tasks/{task}"
    assert "geheim" not in asked.to_json()
    assert CALLER[3:35] in lines[0]
    assert "trace_id" not in lines[2]
