"""The newest events: pages that wait for more, or one stream of server-sent events.

A reader holds one number. `event: reset` tells it that the tail no longer reaches back to where it was; `event: beat`
every fifteen seconds lets it notice a dead connection.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field
from pydantic_core import to_json

from evenflow.console.access.admission import caller_of
from evenflow.console.access.caller import Caller
from evenflow.console.api.reading import PAGE_MAX, WAIT_MS_MAX, Strict, reply
from evenflow.console.problems import Problem
from evenflow.console.projection.feed import Wanted
from evenflow.console.service import Console

BEAT_MS: Final = 15_000
BATCH: Final = 500


class Tail(Strict):
    """Which events and from where. `type` may end in *; `after` is the `next` of the page before."""

    topic: str = Field(default="", max_length=128)
    type: str = Field(default="", max_length=64)
    task: str = Field(default="", max_length=260)
    node: str = Field(default="", max_length=128)
    queue: str = Field(default="", max_length=256)
    after: str = Field(default="", max_length=200)
    limit: int = Field(default=100, ge=1, le=PAGE_MAX)
    wait_ms: int = Field(default=0, ge=0, le=WAIT_MS_MAX)


class TailRoutes:
    """The route of this part."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._feed = console.board.feed

    def router(self) -> APIRouter:
        """It."""
        router = APIRouter(prefix="/api/v1", tags=["events"])
        router.add_api_route("/events", self.events, methods=["GET"], summary="The newest events, followed if asked")
        return router

    async def events(self, request: Request, query: Annotated[Tail, Query()]) -> Response:
        """GET /events."""
        caller = caller_of(request.scope)
        wanted = Wanted(query.topic, query.type, query.task, query.node, query.queue, caller.tenant)
        if "text/event-stream" in request.headers.get("accept", ""):
            after = request.headers.get("last-event-id", "") or query.after
            return self._stream(caller, wanted, after)
        feed = self._feed
        if not query.after:
            return reply({"items": feed.newest(wanted, query.limit), "next": feed.cursor, "reset": False})
        position = feed.position(query.after)
        if position is None:
            return reply({"items": feed.newest(wanted, query.limit), "next": feed.cursor, "reset": True})
        start = position
        upto, rows = feed.after(start, wanted, query.limit)
        if not rows and query.wait_ms:
            await self._console.seen(lambda: bool(feed.after(start, wanted, 1)[1]), query.wait_ms)
            upto, rows = feed.after(start, wanted, query.limit)
        return reply({"items": rows, "next": f"{feed.epoch}-{upto}", "reset": False})

    def _stream(self, caller: Caller, wanted: Wanted, after: str) -> StreamingResponse:
        if self._feed.reader_count >= self._console.settings.stream_count_max:
            raise Problem(503, "busy", "too many readers", way_out="Close one, or read pages with wait_ms.")
        return StreamingResponse(
            self._frames(caller, wanted, after), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
        )

    async def _frames(self, caller: Caller, wanted: Wanted, after: str) -> AsyncIterator[bytes]:
        feed = self._feed
        feed.reader_count += 1
        try:
            position = feed.position(after) if after else feed.number
            if position is None:
                position = feed.number
                yield f"event: reset\nid: {feed.epoch}-{position}\ndata: {{}}\n\n".encode()
            while not feed.closed and caller.lets_in():
                tick = feed.tick()
                upto, rows = feed.after(position, wanted, BATCH)
                for row in rows:
                    yield b"event: fact\nid: %s\ndata: %s\n\n" % (str(row["cursor"]).encode(), to_json(row))
                position = upto
                if rows or tick.is_set():
                    continue
                if not await self._console.seen(tick.is_set, BEAT_MS):
                    yield f"event: beat\nid: {feed.epoch}-{position}\ndata: {{}}\n\n".encode()
        finally:
            feed.reader_count -= 1
