"""One line and two figures for each HTTP request of a door."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from opentelemetry.trace import SpanKind

from evenflow.platform.asgi import Asgi
from evenflow.platform.clock import Clock
from evenflow.platform.observability.metrics import Metrics
from evenflow.platform.observability.signals import REQUEST, REQUESTS
from evenflow.platform.observability.trace import OFF, Attributes, Tracing

PATH_CHARACTERS_MAX: Final = 200
#: Nothing was answered: the caller left, or the application broke.
NO_STATUS: Final = 0


class Requests:
    """An application around another, which answers. Queries and headers are never logged: they may hold secrets."""

    def __init__(self, app: Asgi, door: str, clock: Clock, log: Any, metrics: Metrics, tracing: Tracing = OFF) -> None:
        self._app = app
        self._door = door
        self._clock = clock
        self._log = log
        self._count = metrics.of(REQUESTS)
        self._time = metrics.of(REQUEST)
        self._tracing = tracing

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """One request, in a span that goes on with the caller's trace."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if not self._tracing.on:
            await self._answer(scope, receive, send)
            return
        about: Attributes = {"http.request.method": str(scope["method"])}
        parent = next((value for name, value in scope["headers"] if name == b"traceparent"), b"")

        async def told(message: Any) -> None:
            if message["type"] == "http.response.start":
                about["http.response.status_code"] = message["status"]
            await send(message)

        def name() -> str:
            about["http.route"] = _route(scope)
            return f"{scope['method']} {about['http.route']}"

        header = parent.decode("ascii", "replace")
        with self._tracing.span(name, parent=header, attributes=about, kind=SpanKind.SERVER):
            await self._answer(scope, receive, told)

    async def _answer(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        status = NO_STATUS
        began_ms = self._clock.monotonic_ms()

        async def sent(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            route = _route(scope)
            took_ms = self._clock.monotonic_ms() - began_ms
            self._count.record(1, door=self._door, route=route, status=str(status))
            self._time.record(took_ms, door=self._door, route=route)
            path = str(scope["path"])[:PATH_CHARACTERS_MAX]
            self._log.info("request answered", method=scope["method"], path=path, status=status, duration_ms=took_ms)


def _route(scope: dict[str, Any]) -> str:
    """The router writes the route that it found into the scope: a template, so its values are bounded."""
    return str(getattr(scope.get("route"), "path", "other"))
