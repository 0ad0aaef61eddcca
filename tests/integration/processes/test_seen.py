"""Seen from outside, on real servers: one task's trace at a collector, and the figures of seven processes."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiokafka import AIOKafkaProducer
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evenflow.client.api import AsyncClient
from evenflow.hosting.operations.matrix import EXPECTED
from evenflow.hosting.registry import SERVICES
from evenflow.testkit.processes.fleet import Processes, ServiceProcess

pytestmark = pytest.mark.servers
TASK = {"id": "seen", "command": [sys.executable, "-c", "print('seen', flush=True)"], "resources": {"cpu": 1}}


class Collector:
    """An OTLP door over HTTP that keeps what it hears: (service, name, trace, span, parent)."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, str, str, str, str]] = []
        self._server: asyncio.Server | None = None
        self.url = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = re.search(rb"content-length: (\d+)", head.lower())
                body = await reader.readexactly(int(length[1]) if length else 0)
                self._keep(gzip.decompress(body) if b"gzip" in head.lower() else body)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _keep(self, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            about = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
            self.spans += [
                (about["service.name"], span.name, span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                for scope in resource.scope_spans
                for span in scope.spans
            ]


@pytest.fixture(name="collector")
async def _collector() -> AsyncIterator[Collector]:
    made = Collector()
    await made.start()
    yield made
    await made.stop()


async def _figures(one: ServiceProcess) -> dict[str, float]:
    async with httpx.AsyncClient(timeout=10) as client:
        text = (await client.get(f"{one.doors['operations']}/metrics")).text
    rows = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {row[0]: float(row[1]) for row in rows}


async def _told(one: ServiceProcess, name: str, value: float, within_s: float = 40) -> None:
    async with asyncio.timeout(within_s):
        while (found := await _figures(one)).get(name) != value:
            assert one.running.lives, one.running.said()
            await asyncio.sleep(0.2)
    assert found[name] == value


async def test_one_task_is_one_trace_over_processes_and_their_figures_say_how_it_went(
    processes: Processes, collector: Collector, tmp_path: Path
) -> None:
    """Proves the trace over HTTP and a real broker, each parent there; lag, dead letters and levels at /metrics."""
    processes.environment |= {"EVENFLOW_HOST_TRACES": collector.url, "EVENFLOW_HOST_TRACE_RATIO": "1"}
    names = list(SERVICES)
    started = await asyncio.gather(*(processes.start(name) for name in names))
    running = dict(zip(names, started, strict=True))
    await asyncio.gather(*(processes.ready(one) for one in started))
    await processes.ready(running["placement"], state="leading")
    node = tmp_path / "node.json"
    node.write_text(json.dumps({"id": "n1", "site": "east", "cpu": 2, "cpu_price_per_hour": "3.60"}))
    agent = processes.agent(running["gateway"].doors["gateway"], "of-this-test", node, tmp_path / "agent")
    async with AsyncClient(running["console"].doors["console"]) as client, asyncio.timeout(60):
        await client.submit(TASK, wait_ms=20_000)
        while not (await client.ledger(task="seen")).items:
            await asyncio.sleep(0.2)
    await _letter(processes.environment["EVENFLOW_HOST_LOG"])
    await _told(running["console"], 'evenflow_dead_letters{topic="evenflow.tasks.v1"}', 1)
    await _told(running["console"], 'evenflow_tasks{state="succeeded"}', 1)
    await _told(running["inventory"], 'evenflow_nodes{reach="ok"}', 1)
    await _told(running["placement"], 'evenflow_oldest_waiting_seconds{pool="default"}', 0)
    ledger = 'group="evenflow.billing.ledger",topic="evenflow.usage.v1"'
    await _told(running["billing"], f"evenflow_lag_records{{{ledger}}}", 0)
    await _told(running["billing"], f"evenflow_lag_seconds{{{ledger}}}", 0)
    assert not await processes.stop(*started, agent)
    assert {one.exit_code for one in started} == {0}
    _check_trace(collector)


async def _letter(url: str) -> None:
    """A record among the decider's inputs that nobody can read."""
    producer = AIOKafkaProducer(bootstrap_servers=url.removeprefix("kafka://"))
    await producer.start()
    await producer.send_and_wait("evenflow.tasks.v1", b"{", key=b"default/p", headers=[("ce_type", b"task.submitted")])
    await producer.stop()


def _check_trace(collector: Collector) -> None:
    (trace,) = {span[2] for span in collector.spans if span[1] == "publish task.submitted"}
    spans: dict[str, Any] = {span[3]: span for span in collector.spans if span[2] == trace}
    met = {name for name, told in EXPECTED.items() if told.course} - {"checkpoint"}  # the task saves nothing
    assert {span[0].removeprefix("evenflow-") for span in spans.values()} >= met
    assert [span[1] for span in spans.values() if not span[4]] == ["publish task.submitted"]
    assert [span for span in spans.values() if span[4] and span[4] not in spans] == []


async def test_a_collector_that_is_away_harms_no_process(processes: Processes) -> None:
    """Proves that a service starts, works and stops within its bound while nobody takes its spans."""
    processes.environment |= {"EVENFLOW_HOST_TRACES": "http://127.0.0.1:9", "EVENFLOW_HOST_TRACE_RATIO": "1"}
    console = await processes.start("console")
    await processes.ready(console)
    async with AsyncClient(console.doors["console"]) as client:
        for number in range(20):
            await client.submit({**TASK, "id": f"t{number}"})
    assert not await processes.stop(console)
    assert console.exit_code == 0
    assert not [line for line in console.lines() if line["level"] == "error"], console.running.said()
