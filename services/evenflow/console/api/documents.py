"""Versioned documents: what is in force, a new version through its strict door, and the versions before."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from evenflow.console.access.admission import caller_of
from evenflow.console.api.reading import DOCUMENT_BODY, Strict, document_of, reply
from evenflow.console.problems import absent
from evenflow.console.projection.papers import HIDDEN
from evenflow.console.publishing import Publishing
from evenflow.console.service import Console


class Change(Strict):
    """Why, and over which version; `expect` 0 = there must be none yet."""

    reason: str = Field(default="", max_length=1_000)
    expect: int | None = Field(default=None, ge=0, le=2**53)


class OfKind(Strict):
    """Documents of one kind."""

    kind: str = Field(default="", max_length=40)


class DocumentRoutes:
    """The routes of this part."""

    def __init__(self, console: Console, publishing: Publishing) -> None:
        self._console = console
        self._papers = console.board.papers
        self._publishing = publishing

    def router(self) -> APIRouter:
        """All of them."""
        router = APIRouter(prefix="/api/v1/documents", tags=["documents"])
        add = router.add_api_route
        add("", self.listed, methods=["GET"], summary="Documents in force")
        add("/{kind}/{name}", self.get, methods=["GET"], summary="A document's newest version")
        add(
            "/{kind}/{name}",
            self.put,
            methods=["PUT"],
            status_code=202,
            summary="Publish a new version",
            openapi_extra=DOCUMENT_BODY,
        )
        add("/{kind}/{name}/history", self.history, methods=["GET"], summary="Its versions, newest first")
        return router

    async def listed(self, query: Annotated[OfKind, Query()]) -> Response:
        """GET /documents."""
        found = self._papers.by_key
        rows = [found[k].row() for k in sorted(found) if query.kind in ("", found[k].body.kind)]
        return reply({"items": [row for row in rows if row["kind"] != HIDDEN]})

    async def get(self, kind: str, name: str) -> Response:
        """GET /documents/{kind}/{name}."""
        paper = self._papers.by_key.get(f"{kind}/{name}")
        if paper is None or kind == HIDDEN:
            raise absent("document", f"{kind}/{name}", "GET /api/v1/documents lists those that are there.")
        return reply(paper.row())

    async def put(self, kind: str, name: str, request: Request, query: Annotated[Change, Query()]) -> Response:
        """PUT /documents/{kind}/{name}."""
        document = await document_of(request, self._console.settings.body_bytes_max)
        published = await self._publishing.put(
            kind, name, document, who=caller_of(request.scope), reason=query.reason, expect=query.expect
        )
        return reply({"published": published, "permalink": f"/api/v1/documents/{kind}/{name}"}, 202)

    async def history(self, kind: str, name: str) -> Response:
        """GET /documents/{kind}/{name}/history."""
        versions = self._papers.versions(f"{kind}/{name}")
        if not versions or kind == HIDDEN:
            raise absent("document", f"{kind}/{name}", "GET /api/v1/documents lists those that are there.")
        return reply({"items": versions})
