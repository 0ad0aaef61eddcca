"""The operations door of a process: GET /health, /ready and /metrics.

/health   200 while the process answers at all: whoever gets no answer may restart it
/ready    200 while everything in it serves; otherwise 503 with what is waited for, so that nothing is sent here yet
/metrics  Prometheus' text form

It tells nothing of tasks or tenants and takes no orders, and is bound to loopback unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pydantic_core import to_json

from evenflow.hosting.operations.measures import Measures

Send = Callable[[dict[str, Any]], Awaitable[None]]
_PATHS: Final = ("/health", "/ready", "/metrics")


class State(Protocol):
    """What is asked of a process."""

    def waits_for(self) -> dict[str, str]:
        """Servers that did not answer yet, each with what it said last."""

    def services(self) -> dict[str, str]:
        """What runs here: starting, serving, standby or leading."""

    async def measure(self) -> None:
        """Take the levels that are looked at only when somebody asks; what can't be seen now stays as it was."""


@dataclass(slots=True)
class OperationsDoor:
    """The application. `about` stands in every answer: name, version, when it began."""

    state: State
    measures: Measures
    about: dict[str, Any] = field(default_factory=dict)

    async def __call__(self, scope: dict[str, Any], _receive: Callable[[], Awaitable[Any]], send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        path, method = scope["path"], scope["method"]
        if path not in _PATHS:
            await _answer(send, 404, {"code": "not-found", "problem": f"there are {', '.join(_PATHS)}"})
        elif method not in ("GET", "HEAD"):
            await _answer(send, 405, {"code": "method", "problem": "only GET is answered"})
        elif path == "/metrics":
            await self.state.measure()
            await _reply(send, 200, self.measures.content_type, self.measures.text())
        elif path == "/health":
            await _answer(send, 200, {**self.about, "health": "alive"})
        else:
            waits, services = self.state.waits_for(), self.state.services()
            ready = not waits and bool(services) and "starting" not in services.values()
            body = {**self.about, "ready": ready, "services": services, "waits_for": waits}
            await _answer(send, 200 if ready else 503, body)


async def _answer(send: Send, status: int, body: dict[str, Any]) -> None:
    await _reply(send, status, b"application/json", to_json(body))


async def _reply(send: Send, status: int, content_type: bytes, body: bytes) -> None:
    headers = [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
