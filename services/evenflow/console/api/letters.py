"""Dead letters: list, show, put back, set aside."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from evenflow.console.access.admission import caller_of
from evenflow.console.api.reading import PAGE_MAX, Strict, fields_of, reason_in, reply
from evenflow.console.letters import Letters
from evenflow.console.problems import Problem
from evenflow.console.service import Console


class LetterList(Strict):
    """Which letters."""

    topic: str = Field(default="", max_length=128)
    state: Literal["open", "retried", "dropped", "all"] = "open"
    limit: int = Field(default=100, ge=1, le=PAGE_MAX)


class LetterRoutes:
    """The routes of this part."""

    def __init__(self, console: Console, letters: Letters) -> None:
        self._console = console
        self._letters = letters

    def router(self) -> APIRouter:
        """All of them."""
        router = APIRouter(prefix="/api/v1/dlq", tags=["dead letters"])
        place = "/{topic}/{partition}/{offset}"
        add = router.add_api_route
        add("", self.listed, methods=["GET"], summary="Dead letters, newest first")
        add(place, self.one, methods=["GET"], summary="A letter with its bytes and headers")
        add(f"{place}/retry", self.retry, methods=["POST"], status_code=202, summary="Put the record back")
        add(f"{place}/drop", self.drop, methods=["POST"], status_code=202, summary="Set it aside")
        return router

    async def listed(self, query: Annotated[LetterList, Query()]) -> Response:
        """GET /dlq."""
        rows = await self._letters.listed(topic=query.topic, state=query.state, limit=query.limit)
        return reply({"items": rows})

    async def one(self, topic: str, partition: int, offset: int) -> Response:
        """GET /dlq/{topic}/{partition}/{offset}."""
        letter = await self._letters.one(topic, _bounded(partition), _bounded(offset))
        return reply(letter.whole(self._letters.state(letter)))

    async def retry(self, topic: str, partition: int, offset: int, request: Request) -> Response:
        """POST /dlq/{topic}/{partition}/{offset}/retry."""
        await fields_of(request, self._console.settings.body_bytes_max)
        letter = await self._letters.one(topic, _bounded(partition), _bounded(offset))
        await self._letters.retry(letter, who=caller_of(request.scope))
        return reply({"origin": letter.origin, "topic": letter.topic, "requested": "retry"}, 202)

    async def drop(self, topic: str, partition: int, offset: int, request: Request) -> Response:
        """POST /dlq/{topic}/{partition}/{offset}/drop."""
        given = await fields_of(request, self._console.settings.body_bytes_max, "reason")
        letter = await self._letters.one(topic, _bounded(partition), _bounded(offset))
        await self._letters.drop(letter, reason=reason_in(given), who=caller_of(request.scope))
        return reply({"origin": letter.origin, "topic": letter.topic, "requested": "drop"}, 202)


def _bounded(number: int) -> int:
    """An offset that a log can have. Raises Problem."""
    if not 0 <= number < 2**62:
        raise Problem(404, "not-found", "there is no such place on the log", way_out="evenflow dlq list shows them.")
    return number
