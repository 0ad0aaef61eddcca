"""The console's levels: tasks by state, broken chains, and dead letters that nobody answered."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from tests.unit.console.conftest import Bench, Facts, runtime_on

from evenflow.console.main import build
from evenflow.console.settings import ConsoleSettings
from evenflow.events import streams
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.clock import SystemClock
from evenflow.platform.observability.metrics import Metrics


async def _levels(bench: Bench, reader: InMemoryMetricReader) -> dict[str, dict[tuple[Any, ...], Any]]:
    for measure in bench.host.measures:
        await measure()
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: {
            tuple(point.attributes.values()): getattr(point, "value", None) for point in metric.data.data_points
        }
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
    }


async def test_levels_follow_the_tables_and_the_letters() -> None:
    """Proves that a letter counts until it is answered, whoever parked it twice, and that states that empty show 0."""
    clock, reader = SystemClock(), InMemoryMetricReader()
    log = EmbeddedLog(clock=clock)
    log.provision(streams.topics())
    meter = MeterProvider([reader], shutdown_on_exit=False).get_meter("evenflow")
    runtime = replace(runtime_on(log, clock), metrics=Metrics(meter))
    host = build(runtime, ConsoleSettings())
    await host.start()
    try:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=host.app), base_url="http://localhost"
        ) as client:
            bench = Bench(host, runtime, client)
            found = await _levels(bench, reader)
            assert set(found["evenflow_dead_letters"].values()) == {0}
            assert found["evenflow_ledger_broken_queues"] == {(): 0}
            await bench.say(streams.TASKS, Facts.submitted(), key="default/t1")
            await bench.say(streams.ASSIGNMENTS, Facts.queued())
            await bench.raw(streams.LINKS.name, b"no json", headers=[("ce_type", b"link.estimated")])
            await bench.raw(streams.LINKS.name, b"no json", headers=[("ce_type", b"link.estimated")])
            await bench.until(lambda: host.inlet.dead_letters.parked_count == 2)
            await bench.until(lambda: len(bench.board.tasks.by_key) == 1)
            found = await _levels(bench, reader)
            assert found["evenflow_dead_letters"][streams.LINKS.name,] == 2
            assert found["evenflow_dead_letters"][streams.TASKS.name,] == 0
            assert found["evenflow_tasks"]["queued",] == 1
            for letter in (await bench.get("/api/v1/dlq"))["items"]:
                answer = await client.post(f"/api/v1/dlq/links/0/{letter['offset']}/drop", json={"reason": "noise"})
                assert answer.is_success, answer.text
            found = await _levels(bench, reader)
            assert found["evenflow_dead_letters"][streams.LINKS.name,] == 0
    finally:
        await host.stop()
