"""Generated requests for every route: the console's by its own description, the gateway's by its bodies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final
from urllib.parse import quote

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from evenflow.agent.clients.exchange import HttpRequest
from evenflow.events.schema.document_schema import document_schema
from evenflow.events.schema.json_schema import json_schema
from evenflow.events.streams import PROBES, RUNS, TELEMETRY, TRANSFERS
from evenflow.events.types import CONTRACTS
from evenflow.gateway.bodies import RecordsBody, SessionBody
from evenflow.hosting.openapi import openapi_text
from evenflow.testkit.fuzz import spoiling
from evenflow.testkit.fuzz.shapes import Shapes, Strategy
from evenflow.testkit.fuzz.spoiling import Draft, Draw
from evenflow.testkit.fuzz.surroundings import KNOWN

CONSOLE: Final = "console"
GATEWAY: Final = "gateway"
#: Of ten requests so many are spoiled.
SPOILED_OF_TEN: Final = 6
#: A signature that is put in when the record is sent, since session and sequence are known only then.
TO_SIGN: Final = "to-sign"
NODES: Final = ("n1", "n2", "n3")
LANES: Final = {"runs": RUNS, "telemetry": TELEMETRY, "probes": PROBES, "transfers": TRANSFERS}

#: What the gateway answers when all is well, route by route, and what it refuses with (docs/nodes.md).
GATEWAY_ROUTES: Final[dict[str, tuple[int, ...]]] = {
    "GET /healthz": (200,),
    "GET /readyz": (200, 503),
    "POST /v1/sessions": (201,),
    "GET /v1/nodes/{node}/desired": (200,),
    "POST /v1/nodes/{node}/records": (200,),
    "GET /v1/nodes/{node}/objects": (200,),
    "GET /v1/nodes/{node}/objects/{path}": (200,),
    "PUT /v1/nodes/{node}/objects/{path}": (204,),
    "DELETE /v1/nodes/{node}/objects/{path}": (204,),
}
GATEWAY_REFUSALS: Final = (400, 401, 403, 404, 413, 503)

_BODY_SPOILS: Final = (
    spoiling.wrong_type, spoiling.hostile_number, spoiling.missing_field, spoiling.extra_field,
    spoiling.control_character, spoiling.look_alike, spoiling.truncated, spoiling.noise, spoiling.changed_bytes,
    spoiling.other_encoding, spoiling.deep, spoiling.not_an_object, spoiling.large, spoiling.empty_value,
)  # fmt: skip
_NAMES: Final = st.sampled_from(
    ["", "a/b", "..", "../../etc", "a\x00b", "a\r\nb", "\x1b[2J", "t\u0430", "T1", "a" * 300, " ", "%", "\ud800", "-1",
     "9" * 30, "nobody", "0x1"]
)  # fmt: skip
_VALUES: Final = st.sampled_from(
    ["", "-1", "NaN", "1e3", "9" * 40, "0", "true", "None", "\x00", "\u0661", "a" * 500, "%", "\ud800", "[]", "*"]
)
_HEADERS: Final = {
    "host": "evil.example",
    "origin": "http://evil.example",
    "content-type": "text/\u00e9",
    "x": "a" * 20_000,
    "x-evenflow-who": "\x00\u00e9" * 200,
    "x-evenflow-session": "\u00e9",
    "x-evenflow-signature": "zz",
}
_ASKED_OF_DESIRED: Final[dict[str, dict[str, Any]]] = {
    "instance": {"type": "string"},
    "revision": {"type": "integer", "minimum": 0},
    "wait_ms": {"type": "integer", "minimum": 0, "maximum": 25_000},
}
_FREE: Final = {
    "POST /api/v1/nodes/{node}/drain": {"deadline_s": (5, 0, "1.5"), "reason": ("x",)},
    "PATCH /api/v1/tasks/{task}": {"priority": (1, 50, 1000), "reason": ("x",)},
}


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `route` is method and address as described, `documented` the statuses that it may be answered with.

    `node`: it is tagged in this node's session; `opens`: it is signed with this node's key.
    """

    door: str
    route: str
    method: str
    target: str
    body: bytes
    headers: Mapping[str, str]
    documented: tuple[int, ...]
    how: str = "valid"
    node: str = ""
    opens: str = ""

    @property
    def request(self) -> HttpRequest:
        """As it goes to the application."""
        return HttpRequest(self.method, self.target, self.headers, self.body)


@dataclass(slots=True)
class Route:
    """What is known of one route."""

    door: str
    name: str
    documented: tuple[int, ...]
    parameters: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    takes_body: bool = False

    @property
    def method(self) -> str:
        """GET, PUT and so on."""
        return self.name.partition(" ")[0]

    @property
    def address(self) -> str:
        """With its variables in braces."""
        return self.name.partition(" ")[2]


@cache
def _description() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(openapi_text())
    return found


def routes() -> list[Route]:
    """Every route of both doors."""
    found = []
    for address, operations in sorted(_description()["paths"].items()):
        for method, operation in sorted(operations.items()):
            found.append(
                Route(
                    CONSOLE,
                    f"{method.upper()} {address}",
                    tuple(sorted(int(code) for code in operation["responses"])),
                    operation.get("parameters", ()),
                    method in ("post", "put", "patch"),
                )
            )
    for name, good in GATEWAY_ROUTES.items():
        variables = [part[1:-1] for part in name.split("/") if part.startswith("{")]
        parameters: list[dict[str, Any]] = [
            {"in": "path", "name": one, "schema": {"type": "string"}} for one in variables
        ]
        if name.endswith("/desired"):
            parameters += [{"in": "query", "name": one, "schema": how} for one, how in _ASKED_OF_DESIRED.items()]
        if name.endswith("/objects"):
            parameters.append({"in": "query", "name": "prefix", "schema": {"type": "string"}})
        refusals = GATEWAY_REFUSALS if "/v1/" in name else ()
        found.append(Route(GATEWAY, name, (*good, *refusals), parameters, name.startswith(("POST", "PUT"))))
    return found


def _named(draw: Draw, route: Route, variable: str, *, bad: bool) -> str:
    if bad:
        return str(draw(_NAMES))
    if variable == "path":
        return str(
            draw(st.sampled_from(["checkpoints/default/t1/g1/x", "logs/default/t1/1/0", "default", "a//b", "x"]))
        )
    if variable == "kind":
        return str(draw(st.sampled_from(["queue", "policy", "site", "link", "template", "x"])))
    if variable == "name" and "documents" in route.address:
        return str(draw(st.sampled_from(["q", "narrow", "default", "east", "east..west", "new"])))
    return str(draw(st.sampled_from([*KNOWN.get(variable, ("x",)), "nobody"])))


def _body(draw: Draw, route: Route, names: Mapping[str, str]) -> Any:
    match route.address:
        case "/api/v1/tasks":
            return draw(_document("task"))
        case "/api/v1/documents/{kind}/{name}":
            kind = names.get("kind", "queue")
            known = kind if kind in ("queue", "policy", "site", "link") else "queue"
            return _about(draw, draw(_document(known)), names.get("name", ""))
        case "/api/v1/datasets/{dataset}":
            return _about(draw, draw(_document("dataset")), names.get("dataset", ""))
        case "/v1/sessions":
            made = draw(_model(SessionBody))
            return made | {"document": draw(_document("node")), "node": draw(st.sampled_from(["n3", "n4", "n1"]))}
        case "/v1/nodes/{node}/records":
            return {"records": [_record(draw) for _ in range(draw(st.integers(0, 3)))]}
        case _:
            fields = _FREE.get(route.name, {"reason": ("x", "")})
            return {name: draw(st.sampled_from(values)) for name, values in fields.items() if draw(st.integers(0, 3))}


def _about(draw: Draw, document: Any, name: str) -> Any:
    """The document of what the address names, mostly."""
    if isinstance(document, dict) and "id" in document and draw(st.integers(0, 3)):
        return document | {"id": name}
    return document


def _record(draw: Draw) -> Any:
    made = draw(_model(RecordsBody).map(lambda body: body["records"]).filter(bool))[0]
    lane = draw(st.sampled_from(sorted(LANES)))
    kind = draw(st.sampled_from(LANES[lane].carries))
    schema = json_schema(CONTRACTS[kind])
    value = draw(Shapes(schema, KNOWN).of(schema))
    own = {"stream": lane, "type": kind, "value": json.dumps(value), "encoding": "text"}
    return made | own | {"signature": draw(st.sampled_from([TO_SIGN, TO_SIGN, TO_SIGN, "", "00" * 64, "zz"]))}


@cache
def _document(name: str) -> Strategy:
    schema = document_schema(name)
    return Shapes(schema, KNOWN).of(schema)


@cache
def _model(kind: type[Any]) -> Strategy:
    schema = kind.model_json_schema()
    return Shapes(schema, KNOWN).of(schema)


def _query(draw: Draw, route: Route, *, bad: bool) -> list[tuple[str, str]]:
    pairs = []
    shapes = Shapes(_description(), KNOWN)
    for parameter in route.parameters:
        if parameter["in"] == "query" and draw(st.booleans()):
            value = draw(shapes.of(parameter.get("schema", {}), str(parameter["name"])))
            if value is not None:
                pairs.append((str(parameter["name"]), str(value)))
    if bad:
        names = [str(one["name"]) for one in route.parameters if one["in"] == "query"]
        pairs.append((str(draw(st.sampled_from([*names, "nope"]))), str(draw(_VALUES))))
    return pairs


def _quoted(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


@st.composite
def call(draw: Draw, route: Route) -> Call:
    """One request for a route: good, or spoiled in its names, its query, its body or its headers."""
    spoiled = draw(st.integers(0, 9)) < SPOILED_OF_TEN
    what = draw(st.sampled_from(["name", "query", "body", "body", "headers"])) if spoiled else "valid"
    variables = [str(one["name"]) for one in route.parameters if one["in"] == "path"]
    names = {one: _named(draw, route, one, bad=what == "name") for one in variables}
    address = route.address
    for one, text in names.items():
        address = address.replace(
            f"{{{one}}}", _quoted(text) if one != "path" else quote(text.encode("utf-8", "surrogatepass"))
        )
    pairs = _query(draw, route, bad=what == "query")
    target = address + ("?" + "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in pairs) if pairs else "")
    body, how = b"", what
    if route.takes_body or what == "body":
        draft = Draft("", _body(draw, route, names), [("x", b"")], None)
        if what == "body":
            spoil = draw(st.sampled_from(_BODY_SPOILS))
            spoil(draw, draft)
            how = spoil.__name__.replace("_", " ")
        body = draft.written() or b""
    headers = {"host": "localhost", "content-type": "application/json"}
    if what == "headers":
        name = draw(st.sampled_from(sorted(_HEADERS)))
        headers[name] = _HEADERS[name]
    node = opens = ""
    if route.door == GATEWAY and what != "headers":
        named = names.get("node", "")
        node = named if named in NODES and draw(st.integers(0, 9)) else draw(st.sampled_from([*NODES, ""]))
        node = node if variables else ""
        opens = "n3" if route.address == "/v1/sessions" and draw(st.booleans()) else ""
    return Call(route.door, route.name, route.method, target, body, headers, route.documented, how, node, opens)


def calls_of(route: Route, count: int, seed_number: int) -> list[Call]:
    """So many requests for one route, the same for the same seed."""
    made: list[Call] = []

    @seed(f"{seed_number}/{route.name}")
    @settings(
        max_examples=count, phases=[Phase.generate], database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(call(route))
    def collect(one: Call) -> None:
        made.append(one)

    collect()
    return made[:count]
