"""Whether the console lives and serves, and its figures in Prometheus' text form.

Labels are closed lists or topics of the registry, never a name that somebody chose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import APIRouter, Response

from evenflow.console.api.guard import Guard
from evenflow.console.api.reading import reply
from evenflow.console.problems import Problem
from evenflow.console.service import Console
from evenflow.platform.service import EventService


class ConditionRoutes:
    """The routes of this part. `guard` is set when the application is put together."""

    def __init__(self, console: Console, host: EventService) -> None:
        self._console = console
        self._host = host
        self.guard: Guard | None = None

    def router(self) -> APIRouter:
        """All of them."""
        router = APIRouter(tags=["condition"])
        router.add_api_route("/health", self.health, methods=["GET"], summary="Whether the process lives")
        router.add_api_route("/ready", self.ready, methods=["GET"], summary="Whether its tables are caught up")
        router.add_api_route("/metrics", self.metrics, methods=["GET"], summary="Figures for Prometheus")
        return router

    async def health(self) -> Response:
        """GET /health."""
        return reply({"status": "ok", "service": self._host.name, "instance": self._host.runtime.instance})

    async def ready(self) -> Response:
        """GET /ready."""
        if not self._host.ready:
            raise Problem(503, "starting", "the tables are being read", way_out="Try again in a moment.")
        board = self._console.board
        age_ms = max(0, self._console.now_ms() - board.as_of_ms) if board.as_of_ms else None
        return reply({"status": "ready", "as_of_ms": board.as_of_ms, "age_ms": age_ms})

    async def metrics(self) -> Response:
        """GET /metrics."""
        board, fleet = self._console.board, self._console.board.fleet
        states = Counter(str(task.state()[0]) for task in board.tasks.by_key.values())
        reach = Counter(str(node.status.reach) for node in fleet.nodes.values() if node.status is not None)
        answers = self.guard.answers if self.guard is not None else Counter[tuple[str, int]]()
        lines: list[str] = []
        _gauge(lines, "evenflow_tasks", "Tasks by state.", {(("state", s),): n for s, n in states.items()})
        _gauge(lines, "evenflow_nodes", "Nodes by reach.", {(("reach", r),): n for r, n in reach.items()})
        _gauge(lines, "evenflow_alerts_open", "Alerts that are open.", {(): len(board.activity.open)})
        _gauge(lines, "evenflow_ledger_broken", "Queues whose chain is broken.", {(): _broken(board.ledger.books)})
        _counter(
            lines,
            "evenflow_console_records_total",
            "Records folded.",
            {(("topic", topic),): n for topic, n in board.applied.items()},
        )
        unreadable = sum(follower.unreadable_count for follower in self._host.followers)
        _counter(lines, "evenflow_console_unreadable_total", "Records that could not be read.", {(): unreadable})
        parked = self._host.inlet.dead_letters.parked_count
        _counter(lines, "evenflow_console_parked_total", "Records parked by the warden.", {(): parked})
        _counter(
            lines,
            "evenflow_console_answers_total",
            "Answers by method and status.",
            {(("method", method), ("status", str(status))): n for (method, status), n in answers.items()},
        )
        left_out = self.guard.recording.left_out_count if self.guard is not None else 0
        about = "Refused changes that the record leaves out."
        _counter(lines, "evenflow_console_unrecorded_total", about, {(): left_out})
        _gauge(lines, "evenflow_console_readers", "Open event streams.", {(): board.feed.reader_count})
        return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4; charset=utf-8")


def _broken(books: Mapping[str, Any]) -> int:
    return sum(1 for book in books.values() if book.broken_at)


_Series = Mapping[tuple[tuple[str, str], ...], int]


def _write(kind: str) -> Callable[[list[str], str, str, _Series], None]:
    def write(lines: list[str], name: str, about: str, series: _Series) -> None:
        lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
        for labels in sorted(series):
            inside = ",".join(f'{label}="{escaped(value)}"' for label, value in labels)
            lines.append(f"{name}{{{inside}}} {series[labels]}" if inside else f"{name} {series[labels]}")

    return write


def escaped(text: str) -> str:
    """A label's value as Prometheus reads it."""
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


_gauge = _write("gauge")
_counter = _write("counter")
