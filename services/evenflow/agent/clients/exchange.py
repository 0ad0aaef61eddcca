"""One request and its answer: what carries the gateway's HTTP, whatever lies between.

`direct` calls an ASGI application in this process: no socket, no client library, one coroutine. The simulation puts its
own network between; real agents use `clients.http`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from evenflow.core.errors import Unavailable
from evenflow.platform.asgi import Asgi


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """`target` is path and query, already encoded; header names are lower-case."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """Status and body."""

    status: int
    body: bytes


class Exchange(Protocol):
    """Carries one request; raises Unavailable when no answer comes within `timeout_ms`."""

    async def __call__(self, request: HttpRequest, *, timeout_ms: int) -> HttpResponse: ...


async def call_asgi(app: Asgi, request: HttpRequest) -> HttpResponse:
    """One request straight into an application."""
    path, _, query = request.target.partition("?")
    scope: dict[str, Any] = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "root_path": "",
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in request.headers.items()],
        "client": None,
        "server": ("gateway", 80),
    }
    given = [{"type": "http.request", "body": request.body, "more_body": False}]
    status = 500
    parts: list[bytes] = []

    async def receive() -> dict[str, Any]:
        return given.pop() if given else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        elif message["type"] == "http.response.body":
            parts.append(message.get("body", b""))

    await app(scope, receive, send)
    return HttpResponse(status, b"".join(parts))


class Direct:
    """An exchange with an application of the same process; `app` gives None while the gateway is down."""

    def __init__(self, app: Callable[[], Asgi | None]) -> None:
        self._app = app

    async def __call__(self, request: HttpRequest, *, timeout_ms: int) -> HttpResponse:
        """One call; the gateway bounds its own time."""
        app = self._app()
        if app is None:
            raise Unavailable("the gateway is not running")
        return await call_asgi(app, request)
