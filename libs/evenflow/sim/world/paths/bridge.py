"""HTTP without sockets: an agent's request runs inside the gateway's process, and its answer comes back, or does not.

The gateway's application is called in a context of the gateway's own process, so that a kill or pause of either side
does what it does in reality: a dead gateway breaks its connections, a paused one keeps them waiting, a cut path loses
both directions.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Callable
from typing import Any, Final

from evenflow.agent.clients.exchange import HttpRequest, HttpResponse, call_asgi
from evenflow.core.errors import Unavailable
from evenflow.sim.loop import VirtualLoop
from evenflow.sim.process import Process
from evenflow.sim.world.hosting import Hosted, Hosting
from evenflow.sim.world.paths.downlink import Downlink

LATENCY_MS: Final = (1.0, 8.0)
RESET_S: Final = 0.05
GATEWAY: Final = "gateway"


class Bridge:
    """One agent's exchange with the gateway. `reachable` says whether messages pass just now."""

    def __init__(
        self,
        loop: VirtualLoop,
        hosting: Hosting,
        *,
        chance: random.Random,
        reachable: Callable[[], bool],
        world: contextvars.Context,
        node: str,
        downlink: Downlink,
    ) -> None:
        self._loop = loop
        self._hosting = hosting
        self._node = node
        self._downlink = downlink
        self._chance = chance
        self._reachable = reachable
        self._world = world
        self._pending: dict[asyncio.Future[HttpResponse], Process] = {}
        hosting.deaths.append(self._died)

    async def __call__(self, request: HttpRequest, *, timeout_ms: int) -> HttpResponse:
        """Send a request and wait for the answer. Raises Unavailable when none comes in time."""
        await asyncio.sleep(self._latency())
        if not self._reachable():
            await asyncio.sleep(timeout_ms / 1000)
            raise Unavailable("no answer: the path is cut")
        hosted = next((entry for entry in self._hosting.of_service(GATEWAY) if entry.serving), None)
        if hosted is None or hosted.process is None:
            raise Unavailable("connection refused")
        future: asyncio.Future[HttpResponse] = self._loop.create_future()
        self._pending[future] = hosted.process
        self._hosting.spawn(hosted, self._serve(hosted, request, future))
        self._downlink.asked(self._node, request, future)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await future
        except TimeoutError:
            raise Unavailable(f"no answer within {timeout_ms} ms") from None
        finally:
            self._pending.pop(future, None)

    async def _serve(self, hosted: Hosted, request: HttpRequest, future: asyncio.Future[HttpResponse]) -> None:
        """Inside the service's process: run its application and send the answer on its way."""
        app: Any = getattr(hosted.runs, "app", None)
        try:
            answer = HttpResponse(503, b"") if app is None else await call_asgi(app, request)
        except Exception:  # noqa: BLE001  a server answers 500 and lives on
            answer = HttpResponse(500, b"")
        self._loop.call_later(self._latency(), self._arrive, request, future, answer, context=self._world)

    def _arrive(self, request: HttpRequest, future: asyncio.Future[HttpResponse], answer: HttpResponse) -> None:
        if not self._reachable() or future.done():
            return
        told = self._downlink.answered(self._node, request, answer)
        if not future.done():  # what a rule let go may have answered it; the node asks again from where it was
            future.set_result(told)

    def _died(self, process: Process) -> None:
        for future, server in list(self._pending.items()):
            if server is process:
                self._loop.call_later(RESET_S, self._reset, future, context=self._world)

    @staticmethod
    def _reset(future: asyncio.Future[HttpResponse]) -> None:
        if not future.done():
            future.set_exception(Unavailable("the connection was reset"))

    def _latency(self) -> float:
        low, high = LATENCY_MS
        return (low + (high - low) * self._chance.random() ** 2) / 1000
