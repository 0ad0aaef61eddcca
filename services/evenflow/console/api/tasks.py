"""Tasks: submit, list, status, why, course, specification, cancel, priority."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from evenflow.console.access.admission import caller_of
from evenflow.console.api.reading import (
    DOCUMENT_BODY,
    PAGE_MAX,
    WAIT_MS_MAX,
    InTenant,
    Strict,
    body_of,
    fields_of,
    key_of_task,
    permalink,
    reason_in,
    reply,
)
from evenflow.console.problems import Problem, Refusal, absent, invalid
from evenflow.console.projection.course import Entry
from evenflow.console.projection.feed import body_of as event_body
from evenflow.console.projection.task import Task
from evenflow.console.projection.why import why
from evenflow.console.service import Console, priority_of
from evenflow.console.stores import EndedTasks
from evenflow.core.lifecycle.task import TaskState
from evenflow.events.documents.reading import read_document
from evenflow.events.streams import BY_NAME
from evenflow.platform.broker.codec import Bad, decode

STATES: Final = tuple(str(state) for state in TaskState)


class Submission(Strict):
    """How long to wait for placement's decision."""

    wait_ms: int = Field(default=0, ge=0, le=WAIT_MS_MAX)


class TaskList(Strict):
    """Which tasks. `state` may name several, with commas; `after` is the `next` of the page before."""

    tenant: str = Field(default="", max_length=128)
    state: str = Field(default="", max_length=200)
    queue: str = Field(default="", max_length=256)
    site: str = Field(default="", max_length=128)
    prefix: str = Field(default="", max_length=128)
    limit: int = Field(default=100, ge=1, le=PAGE_MAX)
    after: str = Field(default="", max_length=400)


class Course(Strict):
    """Whose task, and whether the bodies are wanted."""

    tenant: str = Field(default="default", max_length=128)
    bodies: bool = True


class TaskRoutes:
    """The routes of this part."""

    def __init__(self, console: Console, ended: EndedTasks) -> None:
        self._console = console
        self._board = console.board
        self._ended = ended

    def router(self) -> APIRouter:
        """All of them."""
        router = APIRouter(prefix="/api/v1/tasks", tags=["tasks"])
        add = router.add_api_route
        add(
            "",
            self.submit,
            methods=["POST"],
            status_code=202,
            summary="Submit a task, YAML or JSON, as written",
            openapi_extra=DOCUMENT_BODY,
        )
        add("", self.listed, methods=["GET"], summary="List tasks, newest submission first")
        add("/{task}", self.status, methods=["GET"], summary="Everything about a task")
        add("/{task}/why", self.explain, methods=["GET"], summary="Why it is where it is")
        add("/{task}/events", self.course, methods=["GET"], summary="Its course in order, each event with its cause")
        gone: dict[int | str, dict[str, Any]] = {410: {"model": Refusal, "description": "No longer on the log"}}
        add(
            "/{task}/specification",
            self.specification,
            methods=["GET"],
            summary="What was submitted",
            responses=gone,
        )
        over: dict[int | str, dict[str, Any]] = {200: {"description": "It is over already; nothing was asked for"}}
        add(
            "/{task}/cancel",
            self.cancel,
            methods=["POST"],
            status_code=202,
            summary="Stop it, whatever it does",
            responses=over,
        )
        add("/{task}", self.change, methods=["PATCH"], status_code=202, summary="Change its priority")
        return router

    async def submit(self, request: Request, query: Annotated[Submission, Query()]) -> Response:
        """POST /tasks."""
        raw = await body_of(request, self._console.settings.body_bytes_max)
        submitted = await self._console.submit(raw, who=caller_of(request.scope))
        shown: dict[str, Any] = {
            "tenant": submitted.tenant,
            "task": submitted.task,
            "known": submitted.known,
            "permalink": permalink(submitted.tenant, submitted.task),
        }
        if query.wait_ms:
            task = await self._console.decision(submitted, query.wait_ms)
            shown["status"] = self._board.task_row(task) if task is not None else None
        return reply(shown, 202)

    async def listed(self, request: Request, query: Annotated[TaskList, Query()]) -> Response:
        """GET /tasks."""
        if bound := caller_of(request.scope).tenant:
            query = query.model_copy(update={"tenant": query.tenant or bound})
            caller_of(request.scope).keep_to(tenant=query.tenant)
        board = self._board
        wanted = [state for state in query.state.split(",") if state]
        for state in wanted:
            if state not in STATES:
                raise invalid("state", f"{state[:40]!a} is none of {', '.join(STATES)}")
        found: list[Task] = []
        more = ""
        for task in board.tasks.newest_first(_place(query.after)):
            if not _fits(task, query, wanted):
                continue
            if len(found) == query.limit:
                submitted_ms, key = board.tasks.place(found[-1])
                more = f"{submitted_ms}.{key}"
                break
            found.append(task)
        rows = [board.task_row(task) | {"permalink": permalink(task.tenant, task.task)} for task in found]
        return reply({"items": rows, "next": more, "as_of_ms": board.as_of_ms})

    async def status(self, task: str, query: InTenant) -> Response:
        """GET /tasks/{task}."""
        key = key_of_task(query, task)
        found = self._board.tasks.find(key)
        shown = self._board.task_status(found) if found is not None else (await self._kept(key))["status"]
        return reply(shown | {"permalink": permalink(query.tenant, task)})

    async def explain(self, task: str, query: InTenant) -> Response:
        """GET /tasks/{task}/why."""
        found = self._console.task(key_of_task(query, task))
        return reply(why(self._board, found, self._console.now_ms()))

    async def course(self, task: str, query: Annotated[Course, Query()]) -> Response:
        """GET /tasks/{task}/events."""
        key = f"{query.tenant}/{task}"
        found = self._board.tasks.find(key)
        if found is None:
            kept = await self._kept(key)
            return reply({"items": kept["events"], "dropped": kept["dropped"]})
        entries = found.course.ordered()
        rows = [entry.row() for entry in entries]
        if query.bodies:
            for entry, row in zip(entries, rows, strict=True):
                row["body"] = await _body(self._console, entry)
        return reply({"items": rows, "dropped": found.course.dropped_count})

    async def specification(self, task: str, query: InTenant) -> Response:
        """GET /tasks/{task}/specification."""
        found = self._console.task(key_of_task(query, task))
        record = await self._console.reader.one(*found.origin) if found.origin is not None else None
        if record is None or record.value is None:
            raise Problem(410, "expired", "the submission is no longer on the log", way_out="Look in the archive.")
        return reply(read_document(record.value, source="the log"))

    async def cancel(self, task: str, query: InTenant, request: Request) -> Response:
        """POST /tasks/{task}/cancel."""
        given = await fields_of(request, self._console.settings.body_bytes_max, "reason")
        key = key_of_task(query, task)
        found = await self._console.cancel(key, reason=reason_in(given), who=caller_of(request.scope))
        shown = {"task": task, "state": str(found.state()[0]), "requested": not found.terminal}
        return reply(shown, 202 if not found.terminal else 200)

    async def change(self, task: str, query: InTenant, request: Request) -> Response:
        """PATCH /tasks/{task}."""
        given = await fields_of(request, self._console.settings.body_bytes_max, "priority", "reason")
        found = await self._console.reprioritise(
            key_of_task(query, task), priority_of(given), reason=reason_in(given), who=caller_of(request.scope)
        )
        return reply({"task": task, "state": str(found.state()[0]), "requested": True}, 202)

    async def _kept(self, key: str) -> dict[str, Any]:
        """A task that ended long ago. Raises Problem."""
        kept = await self._ended.find(key) if _is_name(key) else None
        if kept is None:
            raise absent("task", key, "evenflow list shows the tasks; the tenant is part of a task's name.")
        return kept


def _fits(task: Task, query: TaskList, states: list[str]) -> bool:
    if not task.decided or (query.tenant and task.tenant != query.tenant):
        return False
    if query.prefix and not task.task.startswith(query.prefix):
        return False
    if query.queue and task.queue != query.queue:
        return False
    if states and str(task.state()[0]) not in states:
        return False
    if query.site:
        attempt = task.attempts.get(task.current)
        members = list(attempt.members.values()) if attempt is not None else ()
        return any(member.place is not None and member.place.site == query.site for member in members)
    return True


def _place(cursor: str) -> tuple[int, str] | None:
    """The place behind which a page goes on. Raises Problem."""
    if not cursor:
        return None
    number, dot, key = cursor.partition(".")
    if not dot or not number.isascii() or not number.isdigit() or len(number) > 18 or not key:
        raise invalid("after", "is not the `next` of an earlier page")
    return int(number), key


def _is_name(key: str) -> bool:
    return len(key) <= 300 and "\0" not in key and key.isascii()


async def _body(console: Console, entry: Entry) -> Any:
    """An event's body, read from the log; null when it expired."""
    record = await console.reader.one(entry.topic, entry.partition, entry.offset)
    if record is None:
        return None
    received = decode(record, BY_NAME[entry.topic])
    return None if isinstance(received, Bad) else event_body(received)
