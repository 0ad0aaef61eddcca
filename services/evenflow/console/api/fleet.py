"""Nodes with what is held and their live load, what may be asked of them; sites, links, datasets."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from evenflow.console.access.admission import caller_of
from evenflow.console.api.reading import (
    DOCUMENT_BODY,
    PAGE_MAX,
    Strict,
    document_of,
    fields_of,
    reason_in,
    reply,
)
from evenflow.console.live_load import LiveView
from evenflow.console.problems import absent
from evenflow.console.publishing import Publishing
from evenflow.console.service import Console, node_deadline


class NodeList(Strict):
    """Which nodes. `after` is the `next` of the page before."""

    site: str = Field(default="", max_length=128)
    reach: str = Field(default="", max_length=20)
    prefix: str = Field(default="", max_length=128)
    limit: int = Field(default=200, ge=1, le=PAGE_MAX)
    after: str = Field(default="", max_length=128)


class Removal(Strict):
    """Why a copy goes."""

    reason: str = Field(default="", max_length=1_000)


class FleetRoutes:
    """The routes of this part."""

    def __init__(self, console: Console, publishing: Publishing, live: LiveView) -> None:
        self._console = console
        self._fleet = console.board.fleet
        self._publishing = publishing
        self._live = live

    def router(self) -> APIRouter:
        """All of them."""
        router = APIRouter(prefix="/api/v1", tags=["fleet"])
        add = router.add_api_route
        add("/nodes", self.nodes, methods=["GET"], summary="Nodes in order of name")
        add("/nodes/{node}", self.node, methods=["GET"], summary="One node with all that it holds")
        add("/nodes/{node}/cordon", self.cordon, methods=["POST"], status_code=202, summary="No new work there")
        add("/nodes/{node}/uncordon", self.uncordon, methods=["POST"], status_code=202, summary="Open it again")
        add("/nodes/{node}/drain", self.drain, methods=["POST"], status_code=202, summary="Move its work elsewhere")
        add("/nodes/{node}/revoke", self.revoke, methods=["POST"], status_code=202, summary="Take it out for good")
        add("/sites", self.sites, methods=["GET"], summary="Sites with the sums of their nodes")
        add("/links", self.links, methods=["GET"], summary="Directed links with their estimates")
        add("/datasets", self.datasets, methods=["GET"], summary="Datasets and where their copies lie")
        add(
            "/datasets/{dataset}",
            self.add_dataset,
            methods=["PUT"],
            status_code=202,
            summary="Register a dataset",
            openapi_extra=DOCUMENT_BODY,
        )
        add(
            "/datasets/{dataset}/copies/{site}",
            self.drop_copy,
            methods=["DELETE"],
            status_code=202,
            summary="Drop a copy",
        )
        return router

    async def nodes(self, query: Annotated[NodeList, Query()]) -> Response:
        """GET /nodes."""
        load = await self._live.rows()
        rows: list[dict[str, Any]] = []
        more = ""
        for name in self._fleet.names():
            if name <= query.after or not name.startswith(query.prefix):
                continue
            row = self._fleet.row(name)
            if (query.site and row["site"] != query.site) or (query.reach and row["reach"] != query.reach):
                continue
            if len(rows) == query.limit:
                more = str(rows[-1]["node"])
                break
            rows.append(row | {"load": load.get(name)})
        refused = [] if query.after else list(self._fleet.refusals.values())[-50:]
        return reply({"items": rows, "next": more, "refused": refused, "as_of_ms": self._console.board.as_of_ms})

    async def node(self, node: str) -> Response:
        """GET /nodes/{node}."""
        if not self._fleet.known(node):
            raise absent("node", node, "evenflow nodes shows the registered nodes.")
        held = self._fleet.nodes[node].held
        shown = self._fleet.row(node) | {"load": (await self._live.rows()).get(node)}
        shown["holdings"] = [
            {
                "task": held[key].task,
                "queue": held[key].queue,
                "attempt": held[key].attempt,
                "member": held[key].member,
                "wish": str(held[key].wish),
                **held[key].place.model_dump(exclude={"node", "site", "member"}),
            }
            for key in sorted(held)
        ]
        return reply(shown)

    async def cordon(self, node: str, request: Request) -> Response:
        """POST /nodes/{node}/cordon."""
        return await self._act(node, "cordon", request)

    async def uncordon(self, node: str, request: Request) -> Response:
        """POST /nodes/{node}/uncordon."""
        return await self._act(node, "uncordon", request)

    async def drain(self, node: str, request: Request) -> Response:
        """POST /nodes/{node}/drain."""
        return await self._act(node, "drain", request)

    async def revoke(self, node: str, request: Request) -> Response:
        """POST /nodes/{node}/revoke."""
        return await self._act(node, "revoke", request)

    async def _act(self, node: str, action: str, request: Request) -> Response:
        known = ("reason", "deadline_s") if action == "drain" else ("reason",)
        given = await fields_of(request, self._console.settings.body_bytes_max, *known)
        await self._console.administer(
            node, action, reason=reason_in(given), deadline_ms=node_deadline(given), who=caller_of(request.scope)
        )
        return reply({"node": node, "requested": action, "permalink": f"/api/v1/nodes/{node}"}, 202)

    async def sites(self) -> Response:
        """GET /sites."""
        return reply({"items": self._console.board.site_rows()})

    async def links(self) -> Response:
        """GET /links."""
        now_ms = self._console.now_ms()
        rows = [self._fleet.link_row(key) for key in sorted(self._fleet.links)]
        return reply({"items": [row | {"age_ms": max(0, now_ms - row["sampled_ms"])} for row in rows]})

    async def datasets(self) -> Response:
        """GET /datasets."""
        found = self._fleet.datasets
        return reply({"items": [found[name].model_dump(mode="json") for name in sorted(found)]})

    async def add_dataset(self, dataset: str, request: Request) -> Response:
        """PUT /datasets/{dataset}."""
        document = await document_of(request, self._console.settings.body_bytes_max)
        await self._publishing.add_dataset(dataset, document, who=caller_of(request.scope), reason="")
        return reply({"dataset": dataset, "requested": "add", "permalink": "/api/v1/datasets"}, 202)

    async def drop_copy(
        self, dataset: str, site: str, request: Request, query: Annotated[Removal, Query()]
    ) -> Response:
        """DELETE /datasets/{dataset}/copies/{site}."""
        await self._publishing.drop_copy(dataset, site, who=caller_of(request.scope), reason=query.reason)
        return reply({"dataset": dataset, "site": site, "requested": "drop"}, 202)
