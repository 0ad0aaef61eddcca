"""The door for tasks: submissions, cancels, changes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from pydantic_core import to_json

from evenflow.core.errors import FieldRefused
from evenflow.core.lifecycle.causes import Cause
from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.reasons import Reason
from evenflow.core.lifecycle.task import TaskState
from evenflow.events.contract import ID_PATTERN
from evenflow.events.contracts.tasks import TaskCancelRequested, TaskChangeRequested
from evenflow.events.documents.reading import Unreadable, read_json
from evenflow.events.documents.task_specification import body_digest, parse_task
from evenflow.events.envelope import derived_id
from evenflow.placement.deciding import endings
from evenflow.placement.deciding.draft import Draft
from evenflow.placement.deciding.trust import outlived, trusted
from evenflow.placement.memory.rows import TaskRow
from evenflow.platform.broker.codec import Received

_ID: Final = re.compile(ID_PATTERN)
_SHOWN_LENGTH_MAX: Final = 256
_PROBLEM_LENGTH_MAX: Final = 2_000
PRIORITY_MAX: Final = 1_000
#: State and desired state carry the specification beside other fields; each must fit into one record.
SPECIFICATION_BYTES_MAX: Final = 524_288
#: An assignment names every member's place in one record.
GANG_MAX: Final = 1_536


def on_submitted(draft: Draft, received: Received) -> None:
    """Let a submission in, refuse it, or see that it is there already."""
    raw = received.json
    try:
        document = read_json(raw, source=received.origin)
    except Unreadable as error:
        draft.park(received, error.code, _text(error.problem))
        return
    tenant, name = _shown_id(document, received)
    if not trusted(draft, received, tenant, name):
        return
    try:
        task = parse_task(document, new_id=lambda: _made_id(received))
    except FieldRefused as error:
        problem = _key_problem(document, received.key)
        if problem is None:
            _reject_invalid(draft, received, document, error)
        else:
            draft.park(received, "key-mismatch", _text(problem))
        return
    if task.key != received.key and (problem := _key_problem(document, received.key)) is not None:
        draft.park(received, "key-mismatch", _text(problem))
        return
    digest = body_digest(document)
    if _known(draft, received, task.tenant, task.id, digest):
        return
    row = TaskRow(
        tenant=task.tenant,
        id=task.id,
        queue=task.queue,
        digest=digest,
        state=TaskState.QUEUED,
        submitted_ms=draft.now_ms,
        priority=task.priority,
        specification=_specification(raw, document, task.id),
        task=task,
        queued_ms=draft.now_ms,
        correlation_id=received.envelope.correlation_id,
    )
    if len(row.specification) > SPECIFICATION_BYTES_MAX:
        problem = f"has {len(row.specification)} bytes; at most {SPECIFICATION_BYTES_MAX} are taken"
        _reject(draft, received, row, Reason.INVALID, problem)
        return
    if task.members > GANG_MAX:
        problem = f"is {task.members}; a gang of one pool has at most {GANG_MAX} members"
        _reject(draft, received, row, Reason.INVALID, problem, path="members")
        return
    if task.queue not in draft.tables.queues:
        _reject(draft, received, row, Reason.QUEUE_UNKNOWN, f"queue {task.queue} is not known", path="queue")
        return
    waiting = draft.model.waiting.count(task.queue) + draft.entered.get(task.queue, 0)
    limit = draft.tables.queues[task.queue].waiting_limit
    if waiting >= limit:
        _reject(draft, received, row, Reason.WAITING_LIMIT, f"queue {task.queue} holds {limit} waiting tasks already")
        return
    draft.add(row)
    draft.fresh[row.key] = row
    draft.entered[task.queue] = draft.entered.get(task.queue, 0) + 1


def _made_id(received: Received) -> str:
    """The id of a task whose author gave none: the same for the same record, however often it arrives."""
    return f"t-{derived_id(received.envelope.id)}"


def _key_problem(document: object, key: str) -> str | None:
    """Whether the record travels under another key than its task's; None where the body names no usable id."""
    if not isinstance(document, dict):
        return None
    name, tenant = document.get("id"), document.get("tenant", "default")
    if not (isinstance(name, str) and _ID.fullmatch(name) and isinstance(tenant, str) and _ID.fullmatch(tenant)):
        return None
    wanted = f"{tenant}/{name}"
    return None if key == wanted else f"is {key[:200]!r} but the body belongs to {wanted!r}"


def _specification(raw: bytes, document: Any, task_id: str) -> bytes:
    """The document as it is kept and sent on: its author's bytes, or with the id that was made for it."""
    if "id" in document:
        return raw.strip()
    return to_json({**document, "id": task_id})


def _known(draft: Draft, received: Received, tenant: str, name: str, digest: str) -> bool:
    """Whether the id is taken: by the same body (nothing happens) or another one (refused; that task is untouched)."""
    known = draft.task(f"{tenant}/{name}")
    if known is None:
        return False
    if known.digest != digest:
        reason = {"reason": Reason.ID_CONFLICT, "dimension": "id", "needed": "another id", "available": known.state}
        body = {"tenant": tenant, "task": name, "reason": reason}
        draft.say_of(EventType.SUBMISSION_REFUSED, known.key, tenant, body, received)
    return True


def _shown_id(document: object, received: Received) -> tuple[str, str]:
    """Tenant and id under which a refused document is reported: its own where it gives something printable."""
    name: object = None
    tenant: object = None
    if isinstance(document, dict):
        name, tenant = document.get("id"), document.get("tenant", "default")
    return _shown(tenant, "default"), _shown(name, _made_id(received))


def _shown(value: object, otherwise: str) -> str:
    if isinstance(value, str) and value and len(value) <= _SHOWN_LENGTH_MAX and value.isprintable():
        return value.encode("utf-8", "replace").decode()
    return otherwise


def _reject_invalid(draft: Draft, received: Received, document: object, error: FieldRefused) -> None:
    tenant, name = _shown_id(document, received)
    try:
        digest = body_digest(document)
    except FieldRefused:
        digest = derived_id(received.json.hex())
    if _known(draft, received, tenant, name, digest):
        return
    queue = document.get("queue", "default") if isinstance(document, dict) else ""
    row = TaskRow(
        tenant=tenant,
        id=name,
        queue=queue if isinstance(queue, str) and _ID.fullmatch(queue) else "",
        digest=digest,
        state=TaskState.REJECTED,
        submitted_ms=draft.now_ms,
        correlation_id=received.envelope.correlation_id,
    )
    _reject(draft, received, row, Reason.INVALID, error.problem, path=error.path)


def _reject(draft: Draft, received: Received, row: TaskRow, reason: Reason, problem: str, *, path: str = "") -> None:
    """Refuse for good; the id is remembered, so that the same record again says nothing again."""
    row.state = TaskState.REJECTED
    row.ended_ms = draft.now_ms
    row.specification = b""
    row.task = None
    draft.add(row)
    detail = {"reason": reason, "dimension": _text(path)}
    body = {"reason": detail, "path": _text(path), "problem": _text(problem)}
    draft.say(EventType.TASK_REJECTED, row, body, received)
    draft.counts.rejected += 1


def _text(value: str) -> str:
    return value[:_PROBLEM_LENGTH_MAX].encode("utf-8", "replace").decode()


def on_cancel(draft: Draft, received: Received) -> None:
    """Cancel a task, whatever it is doing. Ended and unknown tasks are left alone."""
    body = received.body
    if not isinstance(body, TaskCancelRequested):
        raise TypeError(body)
    if not trusted(draft, received, body.tenant, body.task):
        return
    row = draft.task(f"{body.tenant}/{body.task}")
    if row is None:
        draft.note("cancel of an unknown task ignored", task=f"{body.tenant}/{body.task}", origin=received.origin)
        return
    if row.terminal or (row.current is not None and row.current.cause in endings.FINAL):
        return
    row = draft.change(row.key)
    attempt = row.current
    if attempt is None:
        endings.end_waiting(draft, row, TaskState.CANCELLED, Cause.CANCELLED, body.reason)
    elif row.unreachable:
        lost = [member for member in attempt.members if not member.state.done]
        attempt.cause = Cause.CANCELLED
        endings.lose_members(draft, row, lost, Cause.CANCELLED)
    else:
        endings.stop_attempt(draft, row, Cause.CANCELLED, body.reason)


def on_change(draft: Draft, received: Received) -> None:
    """Change a task's priority. Every other change is refused with its field."""
    body = received.body
    if not isinstance(body, TaskChangeRequested):
        raise TypeError(body)
    if not trusted(draft, received, body.tenant, body.task):
        return
    key = f"{body.tenant}/{body.task}"
    row = draft.task(key)
    path, problem = _change_problem(row, body.change)
    if row is not None and not problem and outlived(received, row.changed_ms):
        path, problem = "change", "was signed before the change that the task took last; ask again"
    if problem or row is None:
        refusal = {"tenant": body.tenant, "task": body.task, "path": path, "problem": problem}
        draft.say_of(EventType.TASK_CHANGE_REFUSED, key, body.tenant, refusal, received)
        return
    if row.priority == body.change["priority"]:
        return
    row = draft.change(key)
    if received.envelope.submitter is not None:
        row.changed_ms = received.envelope.time_ms
    row.priority = body.change["priority"]
    if row.task is not None:
        row.task = replace(row.task, priority=row.priority)
    members = row.task.members if row.task is not None else 1
    draft.say(EventType.TASK_CHANGED, row, {"priority": row.priority, "members": members}, received)
    if row.state is TaskState.QUEUED:
        draft.fresh[row.key] = row


def _change_problem(row: TaskRow | None, change: dict[str, Any]) -> tuple[str, str]:
    if row is None:
        return "task", "is not known"
    if row.terminal:
        return "task", f"has ended: {row.state}"
    for name in change:
        if name != "priority":
            shown = str(name)[:_SHOWN_LENGTH_MAX].encode("utf-8", "replace").decode()
            return shown, "can't be changed; only priority can"
    value = change.get("priority")
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= PRIORITY_MAX:
        return "priority", f"must be an integer from 0 to {PRIORITY_MAX}"
    return "", ""
