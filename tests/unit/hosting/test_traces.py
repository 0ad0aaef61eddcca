"""The way to a collector: what arrives there, what a bad address is told, and that a bad collector harms nobody."""

from __future__ import annotations

import gzip
import http.server
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from evenflow.core.errors import FieldRefused
from evenflow.hosting.operations.otlp import QUEUE_MAX, STOP_MS
from evenflow.hosting.operations.stores import TracedDocuments, TracedObjects
from evenflow.hosting.operations.traces import Traces, checked_collector
from evenflow.hosting.surroundings import HostSettings
from evenflow.platform.clock import SystemClock
from evenflow.platform.observability.trace import parse_traceparent
from evenflow.platform.settings import load_settings
from evenflow.platform.stores.memory import MemoryDocuments, MemoryObjects
from evenflow.platform.stores.ports import Absent

#: An export in hand, what waits, and a slow machine.
STOP_S_MAX = STOP_MS / 1000 + 2 + 4


class Collector(http.server.BaseHTTPRequestHandler):
    """An OTLP door over HTTP."""

    requests: list[tuple[str, ExportTraceServiceRequest]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.requests.append((self.path, ExportTraceServiceRequest.FromString(body)))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  theirs
        pass


@pytest.fixture(name="collector")
def _collector() -> Iterator[tuple[str, list[tuple[str, ExportTraceServiceRequest]]]]:
    handler = type("Handler", (Collector,), {"requests": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler.requests
    server.shutdown()
    server.server_close()
    thread.join()


def test_what_a_service_tells_arrives_under_its_own_ids(
    collector: tuple[str, list[tuple[str, ExportTraceServiceRequest]]],
) -> None:
    """Proves names, ids, parents, times, service and instance at the other end, and that a stop sends what waits."""
    url, requests = collector
    traces = Traces(url, 1.0, SystemClock())
    tracing = traces.tracing("placement", "p-1")
    with tracing.span("round", attributes={"evenflow.round": 7}) as round_header, tracing.span("commit") as header:
        pass
    traces.close()
    assert {path for path, _ in requests} == {"/v1/traces"}
    (resource,) = [each for _, request in requests for each in request.resource_spans]
    about = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
    assert (about["service.name"], about["service.instance.id"]) == ("evenflow-placement", "p-1")
    spans = {span.name: span for scope in resource.scope_spans for span in scope.spans}
    outer, inner = parse_traceparent(round_header), parse_traceparent(header)
    assert outer is not None
    assert inner is not None
    assert spans["commit"].span_id == inner.span_id.to_bytes(8, "big")
    assert spans["commit"].parent_span_id == spans["round"].span_id == outer.span_id.to_bytes(8, "big")
    assert spans["round"].trace_id == outer.trace_id.to_bytes(16, "big")
    assert spans["round"].attributes[0].value.int_value == 7
    assert abs(spans["round"].start_time_unix_nano / 1e9 - time.time()) < 60


@pytest.mark.parametrize("listens", [False, True])
def test_a_collector_that_is_away_or_hangs_holds_nobody_up(listens: bool) -> None:
    """Proves that spans beyond the queue are dropped without waiting, and that a stop ends in bounded time."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        if listens:
            door.listen(16)
        traces = Traces(f"http://127.0.0.1:{door.getsockname()[1]}", 1.0, SystemClock())
        tracing = traces.tracing("placement")
        began = time.monotonic()
        for _ in range(QUEUE_MAX + 500):
            with tracing.span("round"):
                pass
        told = time.monotonic()
        traces.close()
        assert told - began < 10
        assert time.monotonic() - told < STOP_S_MAX


def test_without_an_address_or_with_ratio_zero_nothing_is_made() -> None:
    """Proves that tracing is off: no thread, no span, no SDK."""
    before = threading.active_count()
    for traces in (Traces("", 1.0, SystemClock()), Traces("http://127.0.0.1:1", 0, SystemClock())):
        assert not traces.tracing("placement").on
        traces.close()
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("127.0.0.1:4318", "address"),
        ("grpc://127.0.0.1:4317", "address"),
        ("http://", "address"),
        ("http://host:port", "address"),
        ("http://host:4318/v1/traces", "without a path"),
        ("http://host:4318/?a=b", "address"),
        ("http://me:hunter2@host:4318", "password"),
    ],
)
def test_a_wrong_address_is_refused_by_the_setting_s_name(url: str, word: str) -> None:
    """Proves one clear line, in which no password stands."""
    with pytest.raises(FieldRefused) as refusal:
        load_settings(HostSettings, "host", environment={"EVENFLOW_HOST_TRACES": url})
    assert refusal.value.path == "traces"
    assert word in refusal.value.problem
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("ratio", ["-0.1", "1.1", "nan", "much"])
def test_a_ratio_is_between_nothing_and_all(ratio: str) -> None:
    """Proves that anything else is refused by the setting's name."""
    with pytest.raises(FieldRefused) as refusal:
        load_settings(HostSettings, "host", environment={"EVENFLOW_HOST_TRACE_RATIO": ratio})
    assert refusal.value.path == "trace_ratio"


def test_a_right_address_is_kept() -> None:
    """Proves both schemes, with and without a slash at the end."""
    assert checked_collector("http://otel:4318/") == "http://otel:4318"
    assert checked_collector("https://otel.example") == "https://otel.example"


def test_a_process_without_a_collector_loads_nothing_of_it() -> None:
    """Proves that the exporter is loaded only where a collector is named: it takes half a second and many megabytes."""
    text = (Path(__file__).parents[3] / "libs/evenflow/hosting/operations/traces.py").read_text(encoding="utf-8")
    top = [line for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert not [line for line in top if "otlp" in line or "opentelemetry" in line]


async def test_store_calls_are_told_where_they_belong_to_a_trace_and_nowhere_else() -> None:
    """Proves names, that a failing call is marked, that answers and errors pass, and that a clock's work tells none."""
    exporter = InMemorySpanExporter()
    traces = Traces("", 1.0, SystemClock(), [SimpleSpanProcessor(exporter)])
    tracing = traces.tracing("checkpoint")
    objects, documents = TracedObjects(MemoryObjects(), tracing), TracedDocuments(MemoryDocuments(), tracing)
    await objects.put("a/b", b"123")
    assert exporter.get_finished_spans() == ()
    with tracing.span("request"):
        assert await objects.get("a/b") == b"123"
        await objects.put("a/c", b"1234")
        await objects.put_version("a/d", b"1", {})
        assert (await objects.get_version("a/d"))[0] == b"1"
        assert await documents.put("c", "1", {"x": 1}) == 1
        await documents.put_many("c", {"2": {"x": 2}})
        found = await documents.get("c", "2")
        assert await documents.delete("c", "2")
        await objects.delete("a/c")
        with pytest.raises(Absent):
            await objects.get("secret/path")
    assert found is not None
    assert found.body == {"x": 2}
    *told, request = exporter.get_finished_spans()
    assert [span.name for span in told] == [
        *("objects get", "objects put", "objects put version", "objects get version", "documents put"),
        *("documents put many", "documents get", "documents delete", "objects delete", "objects get"),
    ]
    assert {span.parent.span_id for span in told if span.parent} == {request.context.span_id}
    assert told[1].attributes == {"evenflow.store": "objects", "evenflow.size_bytes": 4}
    assert told[-1].status.description == "Absent"
    assert "secret/path" not in told[-1].to_json()
