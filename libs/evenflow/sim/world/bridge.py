"""HTTP without sockets: an agent's request runs inside the gateway's process, and its answer comes back, or does not.

The gateway's ASGI application is called in a context of the gateway's own process, so that a kill or pause of either
side does what it does in reality: a dead gateway breaks its connections, a paused one keeps them waiting, a cut path
loses both directions.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, Final

import httpx

from evenflow.sim.loop import VirtualLoop
from evenflow.sim.process import PROCESS, Process
from evenflow.sim.world.hosting import Hosted, Hosting

LATENCY_MS: Final = (1.0, 8.0)
TIMEOUT_S: Final = 5.0
RESET_S: Final = 0.05

Answer = tuple[int, list[tuple[bytes, bytes]], bytes]


class Bridge(httpx.AsyncBaseTransport):
    """One client's connection to a service. `reachable` says whether messages pass just now."""

    def __init__(
        self,
        loop: VirtualLoop,
        hosting: Hosting,
        service: str,
        chance: random.Random,
        reachable: Callable[[], bool],
        world: Any,
    ) -> None:
        self._loop = loop
        self._hosting = hosting
        self._service = service
        self._chance = chance
        self._reachable = reachable
        self._world = world
        self._pending: dict[asyncio.Future[Answer], Process] = {}
        hosting.deaths.append(self._died)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and wait for the answer. Raises what httpx raises on a real network."""
        limits = request.extensions.get("timeout") or {}
        body = await request.aread()
        await asyncio.sleep(self._latency())
        if not self._reachable():
            await asyncio.sleep(limits.get("connect") or TIMEOUT_S)
            raise httpx.ConnectTimeout("no answer", request=request)
        hosted = next((entry for entry in self._hosting.of_service(self._service) if entry.serving), None)
        if hosted is None or hosted.process is None:
            raise httpx.ConnectError("connection refused", request=request)
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._pending[future] = hosted.process
        self._hosting.spawn(hosted, self._serve(hosted, request, body, future))
        try:
            async with asyncio.timeout(limits.get("read") or TIMEOUT_S):
                status, headers, content = await future
        except TimeoutError:
            raise httpx.ReadTimeout("no answer", request=request) from None
        except ConnectionResetError as error:
            raise httpx.ReadError(str(error), request=request) from None
        finally:
            self._pending.pop(future, None)
        return httpx.Response(status, headers=headers, content=content, request=request)

    async def _serve(self, hosted: Hosted, request: httpx.Request, body: bytes, future: asyncio.Future[Answer]) -> None:
        """Inside the service's process: run its application and send the answer on its way."""
        told = False
        status, headers = 500, list[tuple[bytes, bytes]]()
        parts: list[bytes] = []

        async def receive() -> dict[str, Any]:
            nonlocal told
            if told:
                await self._loop.create_future()
            told = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status, headers = message["status"], list(message.get("headers", ()))
            elif message["type"] == "http.response.body":
                parts.append(bytes(message.get("body", b"")))

        try:
            app: Any = getattr(hosted.runs, "app", None)
            await app(_scope(request), receive, send)
        except Exception:  # noqa: BLE001  a server answers 500 and lives on
            status, headers, parts = 500, [], [b"internal error"]
        answer = (status, headers, b"".join(parts))
        self._loop.call_later(self._latency(), self._arrive, future, answer, context=self._world)

    def _arrive(self, future: asyncio.Future[Answer], answer: Answer) -> None:
        if self._reachable() and not future.done():
            future.set_result(answer)

    def _died(self, process: Process) -> None:
        for future, server in list(self._pending.items()):
            if server is process:
                self._loop.call_later(RESET_S, self._reset, future, context=self._world)

    def _reset(self, future: asyncio.Future[Answer]) -> None:
        if not future.done():
            future.set_exception(ConnectionResetError("the connection was reset"))

    def _latency(self) -> float:
        low, high = LATENCY_MS
        return (low + (high - low) * self._chance.random() ** 2) / 1000


def _scope(request: httpx.Request) -> dict[str, Any]:
    url = request.url
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": url.scheme,
        "path": url.path,
        "raw_path": url.raw_path.split(b"?")[0],
        "query_string": url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": ("127.0.0.1", 1),
        "server": (url.host, url.port or 80),
        "extensions": {"evenflow.process": PROCESS.get()},
    }
