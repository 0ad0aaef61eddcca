"""Whatever comes through a door of a running `evenflow dev`: a refusal that names field and reason, and it lives on."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from typing import Any

import httpx
import pytest

from evenflow.agent.clients.gateway import HttpGateway
from evenflow.agent.clients.http import HttpExchange
from evenflow.platform.security.identity import new_key

MIB = 2**20
#: Bodies that no route takes: each with what its refusal must be about.
BODIES: dict[str, tuple[bytes, int, str]] = {
    "oversized": (b'{"reason": "' + b"x" * MIB + b'"}', 413, "larger than"),
    "deeply nested lists": (b"[" * 100_000, 422, "deep"),
    "deeply nested maps": (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, 422, "deep"),
    "UTF-16": ('{"reason": "x"}'.encode("utf-16"), 422, ""),
    "Latin-1": ('{"reason": "café"}'.encode("latin-1"), 422, "UTF-8"),
    "a lone surrogate": (b'{"reason": "\\ud800"}', 422, ""),
    "a list": (b"[1, 2]", 422, "map"),
    "a text": (b'"reason"', 422, "map"),
    "a number": (b"5", 422, "map"),
    "null": (b"null", 422, ""),
    "true": (b"true", 422, "map"),
    "NaN": (b'{"reason": NaN}', 422, ""),
    "infinity": (b'{"reason": -Infinity}', 422, ""),
    "a huge number": (b'{"reason": 1e999999}', 422, ""),
    "a very long number": (b'{"reason": ' + b"9" * 5_000 + b"}", 422, ""),
    "an unknown field": (b'{"reson": "x"}', 422, ""),
    "a look-alike field": ('{"r\u0435ason": "x"}'.encode(), 422, ""),
    "a field twice": (b'{"reason": "a", "reason": "b"}', 422, ""),
    "half a document": (b'{"reason": "x"', 422, ""),
    "two documents": (b"reason: a\n---\nreason: b\n", 422, ""),
    "an anchor": (b"reason: &a x\nother: *a\n", 422, ""),
    "a tag": (b"reason: !!python/object/apply:os.system [id]\n", 422, ""),
    "control characters": (b'{"reason": "\x01\x02"}', 422, ""),
    "nothing but noise": (bytes(range(256)), 422, ""),
}
#: Names that are none, as they come percent-encoded in an address.
NAMES = {
    "a slash": "a%2Fb",
    "an encoded slash twice": "a%252Fb",
    "steps upwards": "..%2F..%2Fetc%2Fpasswd",
    "a zero byte": "a%00b",
    "a line break": "a%0D%0Ab",
    "an escape": "%1B%5B2J",
    "a look-alike letter": "t%D0%B01",
    "full-width letters": "%EF%BD%94%EF%BC%91",
    "upper case": "T1",
    "wrong UTF-8": "%FF%FE",
    "a surrogate": "%ED%A0%80",
    "a very long one": "a" * 5_000,
    "a space": "%20",
}


def _refusal(answer: httpx.Response, what: object) -> dict[str, Any]:
    """The four fields of every refusal, of the right types, and a status that says whose fault it was."""
    assert 400 <= answer.status_code < 500, (what, answer.status_code, answer.text[:300])
    row = answer.json()
    assert row.keys() - {"problems"} == {"code", "path", "problem", "way_out"}, (what, row)
    assert all(isinstance(row[name], str) for name in ("code", "path", "problem", "way_out")), (what, row)
    assert row["code"], (what, row)
    assert row["problem"], (what, row)
    assert row["way_out"], (what, row)
    return row


def _routes(dev: Any) -> list[tuple[str, str, tuple[str, ...]]]:
    """Method, address and names in it, of every route that the API says it has."""
    found = []
    for path, methods in dev.get("/api/v1/openapi.json")["paths"].items():
        for method in methods:
            found.append((method.upper(), path, tuple(re.findall(r"{(\w+)}", path))))
    assert len(found) > 25
    return sorted(found)


#: Good names for each variable of an address, so that only the body is wrong.
GOOD = {
    "task": "t1", "node": "east-1", "kind": "queue", "name": "research", "dataset": "texts", "site": "west",
    "topic": "evenflow.requests.v1", "partition": "0", "offset": "0",
    "signer": "physics-ci", "token": "ci", "invitation": "0123456789abcdef",
}  # fmt: skip
TAKES_A_BODY = ("POST", "PUT", "PATCH")


@pytest.fixture(scope="module")
def running(shared):
    """The process with one task `t1` and one dead letter, so that every address has something to speak of."""
    processes, dev = shared
    answer = dev.api("POST", "/api/v1/tasks?wait_ms=5000", json={"id": "t1", "run": {"work_s": 3600}})
    assert answer.json()["status"]["state"] in ("queued", "starting", "running")
    bad = {"size": "2GB", "copies": [{"site": "west"}]}
    assert dev.api("PUT", "/api/v1/datasets/odd", json={**bad, "size": "1GB"}).status_code == 202
    assert dev.api("PUT", "/api/v1/datasets/odd", json=bad).status_code == 202  # inventory's to refuse: parked
    processes.until("a dead letter", lambda: dev.get("/api/v1/dlq")["items"])
    yield dev
    assert dev.lives()
    answer = dev.api("POST", "/api/v1/tasks?wait_ms=5000", json={"id": "after-all-that", "run": {"work_s": 0}})
    assert answer.status_code == 202, answer.text
    assert dev.task("t1")["state"] == "running"
    answers = [row for row in dev.api("GET", "/metrics").text.splitlines() if "console_answers_total" in row]
    assert [row for row in answers if 'status="5' in row] == []
    assert dev.complained() == ""


def test_every_route_refuses_every_bad_body_by_field_and_reason(running):
    """Proves that no body harms: each route answers 4xx with code, path, problem and way out, never 5xx."""
    tried = 0
    for method, path, _ in _routes(running):
        if method not in TAKES_A_BODY:
            continue
        address = path.format(**GOOD)
        for what, (body, status, about) in BODIES.items():
            answer = running.api(method, address, content=body, headers={"content-type": "application/json"})
            row = _refusal(answer, (method, address, what))
            assert answer.status_code == status, (method, address, what, row)
            assert about in row["problem"], (method, address, what, row)
            tried += 1
    print(f"{tried} bad bodies refused")
    assert tried >= 10 * len(BODIES)


def test_every_address_refuses_names_that_are_none(running):
    """Proves that a name in an address is looked up or refused, whatever letters it is made of."""
    tried = 0
    for method, path, variables in _routes(running):
        for variable in variables:
            for what, name in NAMES.items():
                address = path.format(**{**GOOD, variable: name})
                body = (
                    b'{"size": "1GB"}' if variable == "dataset" else b'{"priority": 1}' if method == "PATCH" else b"{}"
                )
                answer = running.api(method, address, content=body if method in TAKES_A_BODY else b"")
                _refusal(answer, (method, path, variable, what))
                tried += 1
    print(f"{tried} bad names refused")


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("limit=0", "limit"),
        ("limit=-1", "limit"),
        ("limit=NaN", "limit"),
        ("limit=1e2", "limit"),
        ("limit=501", "limit"),
        ("limit=" + "9" * 5_000, "limit"),
        ("state=asleep", "state"),
        ("after=x", "after"),
        ("after=9" * 300, "after"),
        ("tenant=" + "a" * 129, "tenant"),
        ("nope=1", "nope"),
        ("limit=1&limit=x", "limit"),
    ],
)
def test_a_wrong_parameter_is_named(running, query, path):
    """Proves that queries are read as strictly as bodies."""
    assert _refusal(running.api("GET", f"/api/v1/tasks?{query}"), query)["path"] == path


IDS = [
    "a/b",
    "../x",
    "a\n",
    "a\x00",
    "\x1b[2J",
    "\uff541",
    "t\u0430",
    "T1",
    "",
    " ",
    ".a",
    "-a",
    "a" * 129,
    "é",
    "a b",
    5,
    1.5,
    True,
    None,
    ["a"],
]


@pytest.mark.parametrize("name", IDS, ids=ascii)
def test_an_id_outside_the_grammar_is_refused_by_its_field(running, name):
    """Proves that no look-alike, control character or slash becomes the id of anything."""
    row = _refusal(running.api("POST", "/api/v1/tasks", json={"id": name}), name)
    assert (row["code"], row["path"]) == ("invalid", "id")


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"resources": {"cpu": -1}}, "resources.cpu"),
        ({"resources": {"cpu": "1e3"}}, "resources.cpu"),
        ({"resources": {"memory": "5 parsecs"}}, "resources.memory"),
        ({"resources": {"devices": {"share": 0}}}, "resources.devices.share"),
        ({"resources": {"devices": {"count": 1, "share": "0.5"}}}, "resources.devices.share"),
        ({"run": {"work_s": True}}, "run.work_s"),
        ({"run": {"work_s": "0x10"}}, "run.work_s"),
        ({"members": 0}, "members"),
        ({"command": "rm -rf /"}, "command"),
        ({"env": {"A": 5}}, "env.A"),
        ({"priority": 1001}, "priority"),
        ({"kind": "daemon"}, "kind"),
        ({"budget": "NaN"}, "budget"),
        ({"data": [{"dataset": "a/b"}]}, "data[0].dataset"),
        ({"wher": {}}, "wher"),
    ],
)
def test_a_wrong_field_of_a_task_is_named_by_its_path(running, document, path):
    """Proves that the door says which field, and publishes nothing."""
    row = _refusal(running.api("POST", "/api/v1/tasks", json={"id": "never", **document}), document)
    assert row["path"] == path
    assert _refusal(running.api("GET", "/api/v1/tasks/never"), "never")["code"] == "not-found"


def test_a_used_id_with_another_body_is_refused_and_the_task_untouched(running):
    """Proves that the same submission again is the same task, and another one under its id is none."""
    task = {"id": "mine", "name": "first", "run": {"work_s": 3600}}
    assert running.api("POST", "/api/v1/tasks?wait_ms=5000", json=task).json()["known"] is False
    assert running.api("POST", "/api/v1/tasks?wait_ms=5000", json=dict(reversed(task.items()))).json()["known"] is True
    answer = running.api("POST", "/api/v1/tasks?wait_ms=5000", json={**task, "name": "second"})
    row = _refusal(answer, "conflict")
    assert (answer.status_code, row["code"], row["path"]) == (409, "id-conflict", "id")
    status = running.task("mine")
    assert (status["name"], status["attempt"]) == ("first", 1)


def test_foreign_hosts_pages_addresses_and_methods_are_turned_away(running):
    """Proves the guard: a page of another site can't use the loopback address, and no address answers by accident."""
    for headers, code in (
        ({"host": "evil.example"}, "host-refused"),
        ({"host": "127.0.0.1.evil.example:80"}, "host-refused"),
        ({"origin": "http://evil.example"}, "origin-refused"),
        ({"sec-fetch-site": "cross-site"}, "origin-refused"),
    ):
        answer = running.api("POST", "/api/v1/tasks", json={}, headers=headers)
        assert (answer.status_code, _refusal(answer, headers)["code"]) == (403, code)
    assert _refusal(running.api("GET", "/api/v1/tasks/a/b/c"), "address")["code"] == "not-found"
    assert _refusal(running.api("DELETE", "/api/v1/tasks"), "method")["code"] == "method-refused"
    assert _refusal(running.api("GET", "/"), "root")["code"] == "not-found"


RAW = {
    "no HTTP at all": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64) + b"\r\n\r\n",
    "a broken length": b"POST /api/v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-length: x\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}",
    "a header of a megabyte": b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * MIB + b"\r\n\r\n",
    "bad header bytes": b"GET / HTTP/1.1\r\nhost: localhost\r\nx\x00y: \xff\r\n\r\n",
    "no host": b"GET /api/v1/tasks HTTP/1.1\r\n\r\n",
    "a broken chunk": b"POST /api/v1/tasks HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    "half a request": b"POST /api/v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{",
}


@pytest.mark.parametrize("what", RAW)
@pytest.mark.parametrize("door", ["console", "gateway"])
def test_what_is_no_http_ends_with_its_connection(running, door, what):
    """Proves that bytes that are no request cost their connection and nothing else."""
    port = int(getattr(running, door).rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        try:
            connection.sendall(RAW[what])
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(65_536)
        except OSError:  # it may be gone before all was said
            answer = b""
    assert answer == b"" or re.match(rb"HTTP/1\.1 4\d\d ", answer), answer[:200]
    assert httpx.get(f"{running.gateway}/healthz", trust_env=False).status_code == 200


NODE = {"id": "guest", "site": "east", "cpu": 1}
GATEWAY_ROUTES = [
    ("POST", "/v1/sessions"),
    ("GET", "/v1/nodes/guest/desired"),
    ("POST", "/v1/nodes/guest/records"),
    ("GET", "/v1/nodes/guest/objects?prefix=checkpoints/"),
    ("PUT", "/v1/nodes/guest/objects/checkpoints/default/t1/x"),
    ("GET", "/v1/nodes/guest/objects/..%2F..%2Fetc"),
    ("DELETE", "/v1/nodes/%00/objects/x"),
    ("POST", "/v1/nodes/a%2Fb/records"),
    ("PATCH", "/v1/sessions"),
    ("GET", "/v1/nothing"),
]


def _gateway_refusal(status: int, body: bytes, what: object) -> dict[str, Any]:
    """Agents are told code, message and path."""
    assert 400 <= status < 500, (what, status, body[:300])
    error = json.loads(body)["error"]
    assert error.keys() == {"code", "message", "path"}, (what, error)
    assert error["code"], (what, error)
    assert error["message"], (what, error)
    return error


@pytest.mark.parametrize(("method", "address"), GATEWAY_ROUTES)
def test_the_agents_door_refuses_every_bad_body_of_nobody(running, method, address):
    """Proves that without a proof of identity nothing comes in, whatever it looks like."""
    for what, (body, _, _) in {**BODIES, "nothing": (b"", 0, "")}.items():
        for headers in ({}, {"x-evenflow-session": "\u00e9" * 20, "x-evenflow-tag": "zz", "x-evenflow-signature": "g"}):
            raw = {name: value.encode("latin-1") for name, value in headers.items()}
            answer = running.client.request(method, running.gateway + address, content=body, headers=raw)
            _gateway_refusal(answer.status_code, answer.content, (what, headers))


def test_the_agents_door_refuses_every_bad_body_of_a_node_that_joined(running):
    """Proves that a node that proved itself is read as strictly: bodies, records in them, numbers in addresses."""

    async def story() -> int:
        exchange = HttpExchange(running.gateway)
        gateway = HttpGateway(exchange, node="guest", key=new_key(), token=running.token)
        session = await gateway.open_session(NODE, booted_ms=0)
        tried = 0
        record = {
            "stream": "runs", "type": "attempt.started", "id": "x", "key": "default/t1", "time_ms": 1, "value": "{}",
            "session": session.id, "sequence": 1, "signature": "00" * 64,
        }  # fmt: skip
        wrong = {
            "stream": ["tasks", 5], "type": ["task.ended", "observer.beacon", "x" * 200], "id": ["", 5, "x" * 300],
            "key": ["", None], "time_ms": [-1, "1", 1.5], "value": ["\ud800", "[" * 10_000, "null", 5, "{}" * 600_000],
            "sequence": [-1, 2**64, True], "signature": ["", "zz", "00"], "encoding": ["base65"], "surprise": [1],
        }  # fmt: skip
        bodies = [body for body, _, _ in BODIES.values()]
        for field, values in wrong.items():
            bodies += [json.dumps({"records": [{**record, field: value}]}).encode() for value in values]
        for body in bodies:
            answer = await gateway.call(session, "POST", "/v1/nodes/guest/records", body)
            _gateway_refusal(answer.status, answer.body, body[:200])
            tried += 1
        for query in ("revision=x", "revision=-1", "wait_ms=NaN", "wait_ms=" + "9" * 99, "revision=%FF"):
            answer = await gateway.call(session, "GET", f"/v1/nodes/guest/desired?{query}")
            _gateway_refusal(answer.status, answer.body, query)
            tried += 1
        stranger = HttpGateway(exchange, node="guest", key=new_key(), token=running.token)
        with pytest.raises(Exception, match="known by another key"):
            await stranger.open_session(NODE, booted_ms=0)
        assert (await gateway.call(session, "POST", "/v1/nodes/guest/records", b'{"records":[]}')).status == 200
        await exchange.close()
        return tried

    print(f"{asyncio.run(story())} bad requests of a known node refused")
