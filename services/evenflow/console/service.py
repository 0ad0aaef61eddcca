"""The console's use-cases: check at the strict doors, publish the request with its audit line, wait if asked to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from evenflow.console.access.caller import Caller
from evenflow.console.log_reader import LogReader
from evenflow.console.problems import Problem, absent, invalid, planned
from evenflow.console.projection.board import Board
from evenflow.console.projection.task import Task
from evenflow.console.settings import ConsoleSettings
from evenflow.core.demand.task import Task as Demand
from evenflow.core.errors import FieldRefused, Refused
from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.reasons import Reason
from evenflow.events import streams
from evenflow.events.contracts.console import (
    ChangeRecorded,
    NodeCordonRequested,
    NodeDrainRequested,
    NodeRevokeRequested,
    NodeUncordonRequested,
)
from evenflow.events.contracts.placement import SubmissionRefused
from evenflow.events.contracts.tasks import TaskCancelRequested, TaskChangeRequested, TaskSubmitted
from evenflow.events.documents.readiness import planned_in_task
from evenflow.events.documents.reading import read_document, read_json
from evenflow.events.documents.task_specification import body_digest, parse_task, task_problems
from evenflow.events.streams import MESSAGE_BYTES_MAX
from evenflow.platform.broker.codec import Fact, Received, body_bytes, decode
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.observability.redaction import hide_tokens
from evenflow.platform.runtime import Runtime
from evenflow.platform.security.sealing import Sealer

#: What a record's headers and key may add to its body.
ENVELOPE_BYTES: Final = 16_384
BODY_BYTES_MAX: Final = MESSAGE_BYTES_MAX - ENVELOPE_BYTES
#: How long an answer waits for the console's own view to show what was just written.
OWN_VIEW_MS: Final = 2_000
PROBLEMS_SHOWN: Final = 20
REQUESTED: Final = "requested"


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a submission so far. `known`: the same task was there already."""

    tenant: str
    task: str
    event: str
    known: bool = False


class Console:
    """What can be asked for through the API, whoever asks."""

    def __init__(
        self,
        runtime: Runtime,
        settings: ConsoleSettings,
        board: Board,
        outlet: Outlet,
        reader: LogReader,
        sealer: Sealer | None = None,
    ) -> None:
        self.runtime = runtime
        self.settings = settings
        self.board = board
        self.reader = reader
        self._outlet = outlet
        self._sealer = sealer

    # tasks ------------------------------------------------------------------------------------------------------------

    async def submit(self, raw: bytes, *, who: Caller) -> Submitted:
        """Check a specification and publish it as it was written. Raises Problem."""
        document = read_document(raw, source="the body")
        problems = task_problems(document)
        if problems:
            path, problem = problems[0]
            rows = [{"path": path, "problem": problem} for path, problem in problems[:PROBLEMS_SHOWN]]
            raise Problem(422, "invalid", problem, path=path, way_out="Correct the field and submit again.", more=rows)
        task = parse_task(document, new_id=self.runtime.ids.new_id)
        who.keep_to(tenant=task.tenant, queue=task.queue)
        if paths := planned_in_task(task):
            raise planned(paths)
        key = f"{task.tenant}/{task.id}"
        before = self.board.tasks.find(key)
        event = self.runtime.ids.new_id()
        if before is not None and await self._same_body(before, document):
            return Submitted(task.tenant, task.id, event, known=True)
        fact = Fact(streams.TASKS, TaskSubmitted(raw=_written(raw, document, task)), key=key, id=event)
        await self.publish(
            fact, action="task.submit", subject=key, parameters={"queue": task.queue, "event": event}, who=who
        )
        await self.seen(lambda: self._heard_of(key, event), OWN_VIEW_MS)
        return Submitted(task.tenant, task.id, event)

    async def decision(self, submitted: Submitted, wait_ms: int) -> Task | None:
        """Wait for placement's word on a submission; the task as it then is. Raises Problem for a refusal."""
        key = f"{submitted.tenant}/{submitted.task}"
        await self.seen(lambda: self._answered(key, submitted), wait_ms)
        task = self.board.tasks.find(key)
        if task is not None and not submitted.known and self._caused(task, submitted.event, REFUSED):
            if (distrust := await self._distrust(task, submitted.event)) is not None:
                raise distrust
            raise Problem(
                409,
                "id-conflict",
                f"the id {submitted.task} belongs to a task with another body",
                path="id",
                way_out="Choose another id, or leave it out to have one made.",
            )
        return task

    async def cancel(self, key: str, *, reason: str, who: Caller) -> Task:
        """Ask for a task's cancellation; a task that ended is left alone. Raises Problem."""
        task = self.task(key)
        who.keep_to(tenant=task.tenant, queue=task.queue)
        if task.terminal:
            return task
        body = TaskCancelRequested(tenant=task.tenant, task=task.task, reason=reason)
        await self.publish(
            Fact(streams.TASKS, body), action="task.cancel", subject=key, parameters={}, who=who, reason=reason
        )
        return task

    async def reprioritise(self, key: str, priority: int, *, reason: str, who: Caller) -> Task:
        """Ask for another priority. Raises Problem."""
        task = self.task(key)
        who.keep_to(tenant=task.tenant, queue=task.queue)
        if task.terminal:
            raise Problem(409, "ended", f"the task is {task.end}; its priority means nothing now", path="priority")
        change = {"priority": priority}
        body = TaskChangeRequested(tenant=task.tenant, task=task.task, change=change)
        await self.publish(
            Fact(streams.TASKS, body), action="task.change", subject=key, parameters=change, who=who, reason=reason
        )
        return task

    def task(self, key: str) -> Task:
        """A task in memory. Raises Problem when there is none."""
        task = self.board.tasks.find(key)
        if task is None:
            raise absent("task", key, "evenflow list shows the tasks; the tenant is part of a task's name.")
        return task

    # nodes ------------------------------------------------------------------------------------------------------------

    async def administer(self, node: str, action: str, *, reason: str, deadline_ms: int | None, who: Caller) -> None:
        """Ask inventory to cordon, uncordon, drain or revoke a node. Raises Problem."""
        if not self.board.fleet.known(node):
            raise absent("node", node, "evenflow nodes shows the registered nodes.")
        body: Any
        match action:
            case "cordon":
                body = NodeCordonRequested(node=node, reason=reason)
            case "uncordon":
                body = NodeUncordonRequested(node=node, reason=reason)
            case "drain" if deadline_ms is not None:
                body = NodeDrainRequested(node=node, reason=reason, deadline_ms=deadline_ms)
            case "drain":
                body = NodeDrainRequested(node=node, reason=reason)
            case _:
                body = NodeRevokeRequested(node=node, reason=reason)
        parameters = {} if deadline_ms is None else {"deadline_ms": deadline_ms}
        fact = Fact(streams.REQUESTS, body)
        await self.publish(fact, action=f"node.{action}", subject=node, parameters=parameters, who=who, reason=reason)

    # writing ----------------------------------------------------------------------------------------------------------

    async def publish(
        self,
        *facts: Fact,
        action: str,
        subject: str,
        parameters: dict[str, Any],
        who: Caller,
        reason: str = "",
        outcome: str = REQUESTED,
    ) -> None:
        """Write facts, then who asked for them. Raises Problem when one is too large for the log, else Unavailable."""
        change = ChangeRecorded(
            actor=who.name,
            action=action,
            # A token that somebody put into an address or a reason would be read by every viewer, for 90 days.
            subject=hide_tokens(subject),
            parameters=parameters,
            reason=hide_tokens(reason or who.reason),
            outcome=outcome,
            role=str(who.role or ""),
            address=who.address,
        )
        audit = Fact(streams.AUDIT, change)
        for fact in (*facts, audit):
            if fact.body is not None and len(body_bytes(fact.body)) > BODY_BYTES_MAX:
                raise Problem(
                    413,
                    "too-large",
                    f"the record would be larger than {BODY_BYTES_MAX} bytes",
                    way_out="Send a smaller document; keep data outside of it.",
                )
        await self._outlet.publish(*map(self._sealed, facts), audit)
        who.recorded += 1

    def _sealed(self, fact: Fact) -> Fact:
        """What asks something of a task goes out signed where the console has a key."""
        return replace(fact, seal=self._sealer) if fact.stream is streams.TASKS else fact

    async def seen(self, predicate: Callable[[], bool], wait_ms: int) -> bool:
        """Wait until the tables show something, at most `wait_ms`."""
        feed = self.board.feed
        try:
            async with asyncio.timeout(wait_ms / 1000):
                while not feed.closed:
                    tick = feed.tick()
                    if predicate():
                        return True
                    await tick.wait()
        except TimeoutError:
            pass
        return predicate()

    def now_ms(self) -> int:
        """Wall clock."""
        return self.runtime.clock.now_ms()

    # ------------------------------------------------------------------------------------------------------------------

    async def _same_body(self, task: Task, document: object) -> bool:
        """Whether the task was submitted with this very content."""
        if task.origin is None or task.end == "rejected":
            return False
        record = await self.reader.one(*task.origin)
        if record is None or record.value is None:
            return False
        try:
            return body_digest(read_document(record.value, source="the log")) == body_digest(document)
        except Refused:
            return False

    async def _distrust(self, task: Task, event: str) -> Problem | None:
        """The answer where placement refused a submission for its signature."""
        for entry in task.course.ordered():
            if entry.cause != event or entry.type != REFUSED:
                continue
            record = await self.reader.one(entry.topic, entry.partition, entry.offset)
            read = decode(record, streams.ASSIGNMENTS) if record is not None else None
            body = read.body if isinstance(read, Received) else None
            if isinstance(body, SubmissionRefused) and body.reason.reason is Reason.PERMISSION:
                return Problem(
                    403,
                    "not-trusted",
                    f"placement does not take this console's submissions: {body.reason.available}",
                    way_out="Give the console a signing_key_file, and make its key known: evenflow signers add.",
                )
        return None

    def _heard_of(self, key: str, event: str) -> bool:
        task = self.board.tasks.find(key)
        return task is not None and self._noted(task, event)

    def _answered(self, key: str, submitted: Submitted) -> bool:
        task = self.board.tasks.find(key)
        if task is None:
            return False
        if submitted.known or self._caused(task, submitted.event, REFUSED):
            return True
        first = task.origin is not None and self._began(task, submitted.event)
        return first and task.decided

    def _began(self, task: Task, event: str) -> bool:
        """Whether this submission is the one that made the task."""
        submissions = [e for e in task.course.ordered() if e.type == EventType.TASK_SUBMITTED]
        return bool(submissions) and submissions[0].id == event

    def _noted(self, task: Task, event: str) -> bool:
        return any(entry.id == event for entry in task.course.ordered())

    def _caused(self, task: Task, event: str, event_type: EventType) -> bool:
        return any(entry.cause == event and entry.type == event_type for entry in task.course.ordered())


REFUSED: Final = EventType.SUBMISSION_REFUSED


def _written(raw: bytes, document: object, task: Demand) -> bytes:
    """The author's own bytes where they are JSON; a made id is put in front, YAML is written as JSON."""
    assert isinstance(document, dict)  # noqa: S101  the door accepted it
    has_id = "id" in document
    try:
        read_json(raw, source="the body")
    except Refused:
        whole = document if has_id else {"id": task.id, **document}
        return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()
    if has_id:
        return raw
    start = raw.index(b"{") + 1
    comma = b"," if document else b""
    return raw[:start] + f'"id":"{task.id}"'.encode() + comma + raw[start:]


def priority_of(document: dict[str, Any]) -> int:
    """The priority in a body, 0 to 1000. Raises Problem."""
    priority = document.get("priority")
    if type(priority) is not int or not 0 <= priority <= 1000:
        raise invalid("priority", "must be a whole number from 0 to 1000")
    return priority


def node_deadline(document: dict[str, Any]) -> int | None:
    """`deadline_s` of a drain in milliseconds, at most 30 days. Raises Problem."""
    seconds = document.get("deadline_s")
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= 2_592_000:
        raise FieldRefused("deadline_s", "must be seconds from 0 to 2592000")
    return round(seconds * 1000)
