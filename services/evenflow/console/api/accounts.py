"""Queues, the ledger, crossings, rounds, alerts, and who changed what."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import Field

from evenflow.console.api.reading import PAGE_MAX, Paged, Strict, reply
from evenflow.console.problems import absent
from evenflow.console.projection.ledger import Sums
from evenflow.console.service import Console


class Lines(Strict):
    """Which lines: a queue's, a task's (with its tenant), or the newest of all."""

    queue: str = Field(default="", max_length=256)
    task: str = Field(default="", max_length=128)
    tenant: str = Field(default="default", max_length=128)
    limit: int = Field(default=100, ge=1, le=PAGE_MAX)


class AlertList(Strict):
    """Open alerts, or those that were cleared too."""

    past: bool = False
    limit: int = Field(default=200, ge=1, le=PAGE_MAX)


class ChangeList(Strict):
    """Which changes: of one subject, or by one actor."""

    subject: str = Field(default="", max_length=512)
    actor: str = Field(default="", max_length=128)
    limit: int = Field(default=100, ge=1, le=PAGE_MAX)


class AccountRoutes:
    """The routes of this part."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._board = console.board

    def router(self) -> APIRouter:
        """All of them."""
        router = APIRouter(prefix="/api/v1", tags=["accounts"])
        add = router.add_api_route
        add("/queues", self.queues, methods=["GET"], summary="Queues: limits, what they hold, how many wait")
        add("/ledger", self.ledger, methods=["GET"], summary="Ledger lines, sums, and whether the chains hold")
        add("/crossings", self.crossings, methods=["GET"], summary="Settled crossings, prediction beside fact")
        add("/rounds", self.rounds, methods=["GET"], summary="Placement's newest rounds")
        add("/alerts", self.alerts, methods=["GET"], summary="Alerts")
        add("/changes", self.changes, methods=["GET"], summary="Who changed what, when and why")
        return router

    async def queues(self) -> Response:
        """GET /queues."""
        return reply({"items": self._board.queue_rows()})

    async def ledger(self, query: Annotated[Lines, Query()]) -> Response:
        """GET /ledger."""
        ledger = self._board.ledger
        if query.queue and query.queue not in ledger.books and query.queue not in self._board.papers.queues:
            raise absent("queue", query.queue, "evenflow queues shows those that are there.")
        books = [ledger.books[name] for name in sorted(ledger.books) if query.queue in ("", name)]
        if query.task:
            sums, kept = ledger.of_task(f"{query.tenant}/{query.task}")
            lines = [line for line in reversed(kept) if query.queue in ("", line.queue)][: query.limit]
        else:
            sums = total([book.sums for book in books])
            lines = ledger.lines(query.queue, query.limit)
        return reply(
            {
                "items": [line.row() for line in lines],
                "sums": sums.row(),
                "queues": [book.row() for book in books],
                "verified": all(book.broken_at == 0 for book in books),
                "lines_forgotten": ledger.dropped_count,
            }
        )

    async def crossings(self, query: Paged) -> Response:
        """GET /crossings."""
        return reply({"items": list(islice(reversed(self._board.ledger.settled), query.limit))})

    async def rounds(self, query: Paged) -> Response:
        """GET /rounds."""
        activity = self._board.activity
        return reply({"items": list(islice(reversed(activity.rounds), query.limit)), "count": activity.round_count})

    async def alerts(self, query: Annotated[AlertList, Query()]) -> Response:
        """GET /alerts."""
        activity = self._board.activity
        rows: list[dict[str, Any]] = activity.alerts()[: query.limit]
        past = list(islice(reversed(activity.past), query.limit)) if query.past else []
        return reply({"items": rows, "past": past, "open": len(activity.open)})

    async def changes(self, query: Annotated[ChangeList, Query()]) -> Response:
        """GET /changes."""
        rows = (
            row
            for row in reversed(self._board.papers.changes)
            if query.subject in ("", row["subject"]) and query.actor in ("", row["actor"])
        )
        return reply({"items": list(islice(rows, query.limit))})


def total(parts: list[Sums]) -> Sums:
    """The sum of sums."""
    whole = Sums()
    for part in parts:
        whole.line_count += part.line_count
        whole.amount_micro += part.amount_micro
        whole.device_milli_ms += part.device_milli_ms
        whole.bytes += part.bytes
        for kind, figures in part.by_kind.items():
            into = whole.by_kind.setdefault(kind, dict.fromkeys(figures, 0))
            for name, figure in figures.items():
                into[name] += figure
    return whole
