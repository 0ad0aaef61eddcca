"""Submitting through the console's HTTP API, as people and the client do, inside the console's own process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Final

from evenflow.agent.clients.exchange import HttpRequest, HttpResponse, call_asgi
from evenflow.sim.loop import VirtualLoop
from evenflow.sim.world.hosting import Hosted, Hosting

CONSOLE: Final = "console"
ANSWER_S: Final = 10.0
RETRY_S: Final = 1.0
SERVER_ERROR: Final = 500
_HEADERS: Final = {"host": "localhost", "content-type": "application/json"}


class FrontDoor:
    """Keeps asking until the console answers; the same submission again is the same task."""

    def __init__(self, loop: VirtualLoop, hosting: Hosting) -> None:
        self._loop = loop
        self._hosting = hosting

    async def submit(self, specification: object) -> None:
        """One submission, whatever becomes of the console meanwhile."""
        body = json.dumps(specification, ensure_ascii=False).encode("utf-8", "surrogatepass")
        request = HttpRequest("POST", "/api/v1/tasks", _HEADERS, body)
        answered = await self._asked(request)
        while not answered:
            await asyncio.sleep(RETRY_S)
            answered = await self._asked(request)

    async def _asked(self, request: HttpRequest) -> bool:
        hosted = next((entry for entry in self._hosting.of_service(CONSOLE) if entry.serving), None)
        if hosted is None:
            return False
        future: asyncio.Future[HttpResponse] = self._loop.create_future()
        self._hosting.spawn(hosted, self._serve(hosted, request, _answering(future)))
        try:
            async with asyncio.timeout(ANSWER_S):
                return (await future).status < SERVER_ERROR
        except TimeoutError:
            return False

    @staticmethod
    async def _serve(hosted: Hosted, request: HttpRequest, answer: Callable[[HttpResponse], None]) -> None:
        """Inside the console's process: run its application."""
        app: Any = getattr(hosted.runs, "app", None)
        try:
            response = HttpResponse(503, b"") if app is None else await call_asgi(app, request)
        except Exception:  # noqa: BLE001  a server answers 500 and lives on
            response = HttpResponse(500, b"")
        answer(response)


def _answering(future: asyncio.Future[HttpResponse]) -> Callable[[HttpResponse], None]:
    def answer(response: HttpResponse) -> None:
        if not future.done():
            future.set_result(response)

    return answer
