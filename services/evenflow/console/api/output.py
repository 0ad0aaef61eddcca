"""What tasks print: chunks of the object store as one text, and on while it grows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import Field

from evenflow.console.access.admission import caller_of
from evenflow.console.access.caller import Caller
from evenflow.console.api.reading import Strict
from evenflow.console.problems import Problem, Refusal, absent, invalid
from evenflow.console.projection.task import Task
from evenflow.console.service import Console
from evenflow.console.stores import Output
from evenflow.core.lifecycle.member import RANK, MemberState

#: How often growing output is looked at, and how often a finished member's once more.
POLL_MS: Final = 500
LAST_LOOKS: Final = 2


class Wanted(Strict):
    """Which output: attempt 0 = the newest. `offset` skips bytes that the reader has."""

    tenant: str = Field(default="default", max_length=128)
    attempt: int = Field(default=0, ge=0, le=1_000_000)
    member: int = Field(default=0, ge=0, le=1_000_000)
    follow: bool = False
    offset: int = Field(default=0, ge=0, le=2**50)


class OutputRoutes:
    """The route of this part."""

    def __init__(self, console: Console, output: Output) -> None:
        self._console = console
        self._output = output
        self._open_count = 0

    def router(self) -> APIRouter:
        """It."""
        router = APIRouter(prefix="/api/v1/tasks", tags=["tasks"])
        router.add_api_route(
            "/{task}/logs",
            self.logs,
            methods=["GET"],
            summary="What a member printed, followed if asked",
            responses={409: {"model": Refusal, "description": "The task was never given a node"}},
        )
        return router

    async def logs(self, task: str, request: Request, query: Annotated[Wanted, Query()]) -> StreamingResponse:
        """GET /tasks/{task}/logs."""
        found = self._console.task(f"{query.tenant}/{task}")
        attempt = query.attempt or found.current
        if attempt == 0:
            raise Problem(
                409, "not-started", "the task was never given a node", way_out="evenflow why shows what it waits for."
            )
        if attempt not in found.attempts:
            raise absent("attempt", f"{attempt} of {task}", f"The newest is {found.current}.")
        if query.member >= max(1, found.attempts[attempt].member_count):
            raise invalid("member", f"the attempt has {found.attempts[attempt].member_count} members, counted from 0")
        if self._open_count >= self._console.settings.stream_count_max:
            raise Problem(503, "busy", "too many readers", way_out="Try again in a moment.")
        stream = self._stream(caller_of(request.scope), found, attempt, query)
        return StreamingResponse(stream, media_type="text/plain; charset=utf-8", headers={"x-accel-buffering": "no"})

    async def _stream(self, caller: Caller, task: Task, attempt: int, query: Wanted) -> AsyncIterator[bytes]:
        self._open_count += 1
        try:
            read: dict[str, None] = {}
            skip, looks = query.offset, 0
            while caller.lets_in():
                done = _is_done(task, attempt, query.member)
                for path in await self._output.chunks(task.tenant, task.task, attempt, query.member):
                    if path in read:
                        continue
                    read[path] = None
                    data = await self._output.read(path)
                    passed = min(skip, len(data))
                    skip -= passed
                    if data[passed:]:
                        yield data[passed:]
                looks = looks + 1 if done else 0
                if not query.follow or looks >= LAST_LOOKS or self._console.board.feed.closed:
                    return
                await self._console.seen(lambda: False, POLL_MS)
        finally:
            self._open_count -= 1


def _is_done(task: Task, attempt: int, member: int) -> bool:
    """Whether nothing more will be printed."""
    held = task.attempts[attempt].members.get(member)
    given_up = task.attempts[attempt].use is not None or task.terminal
    return given_up or (held is not None and RANK[held.state] >= RANK[MemberState.SUCCEEDED])
