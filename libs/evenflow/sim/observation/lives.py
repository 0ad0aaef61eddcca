"""The fold of task decisions, desired state and receipts: what becomes of tasks, attempts and members."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from evenflow.core.lifecycle import member as members
from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.member import MemberState
from evenflow.core.lifecycle.task import TERMINAL, TaskState
from evenflow.sim.observation.entities import AttemptView, MemberView, TaskView
from evenflow.sim.observation.record import Seen

if TYPE_CHECKING:
    from evenflow.sim.observation.model import Observation

#: Ends of an attempt that are counted under their own name.
_COUNTED_ENDS: Final = ("lost", "moved")
#: tenant, task, attempt and member in the key of a wish, after its node.
_PARTS_OF_RUN: Final = 4


def _body_task(model: Observation, record: Seen) -> TaskView:
    body = record.body
    return model.task(str(body.get("tenant", "default")), str(body.get("task", "")))


def enter(model: Observation, task: TaskView, state: TaskState, **more: Any) -> None:
    """Put a task into a state, with a row when it is another one."""
    before = task.state
    task.state = state
    if before is not state or more.get("reasons"):
        nodes = () if task.current is None else tuple(sorted({m.node for m in task.current.members.values()}))
        row = {"node": nodes[0] if len(nodes) == 1 else None, "nodes": list(nodes), "queue": task.queue, **more}
        model.change("task", task.shown, None if before is None else str(before), str(state), **row)
    model.note_task(task)


def _live(model: Observation, record: Seen) -> TaskView | None:
    """The task that a decision is about; a decision about an ended one is noted as impossible."""
    task = _body_task(model, record)
    if task.state in TERMINAL:
        model.impossible("INV5", f"{record.type} after {task.shown} was {task.state}")
        return None
    return task


def _queued(model: Observation, record: Seen) -> None:
    task = _body_task(model, record)
    submitted_ms = int(record.body.get("submitted_ms", 0))
    if task.state in TERMINAL and submitted_ms != task.submitted_ms:
        # The id was free again: another task of the same name begins its life.
        task = model.begin_anew(task)
    elif task.state in TERMINAL:
        model.impossible("INV5", f"{record.type} after {task.shown} was {task.state}")
        return
    task.submitted_ms = submitted_ms
    task.queue = str(record.body.get("queue", ""))
    task.names[str(record.body.get("name", ""))] = None
    details = list(record.body.get("reasons", ()))
    task.reasons = tuple(dict.fromkeys(str(detail.get("reason")) for detail in details))
    if task.state is not TaskState.QUEUED:
        task.waiting_since_ms = model.now_ms
    if task.reasons:
        task.unexplained_since_ms = None
    elif task.unexplained_since_ms is None:
        task.unexplained_since_ms = model.now_ms
    model.count("queued", task=task.shown, queue=task.queue)
    enter(model, task, TaskState.QUEUED, reasons=list(task.reasons), details=details)


def _place(entry: Mapping[str, Any]) -> MemberView:
    return MemberView(
        number=int(entry.get("member", 0)),
        node=str(entry.get("node", "")),
        site=str(entry.get("site", "")),
        devices=tuple((int(share["index"]), int(share["milli"])) for share in entry.get("devices", ())),
        cpu_milli=int(entry.get("cpu_milli", 0)),
        memory_bytes=int(entry.get("memory_bytes", 0)),
        disk_bytes=int(entry.get("disk_bytes", 0)),
        price_micro=int(entry.get("price_per_hour_micro", 0)),
        cpu_price_micro=int(entry.get("cpu_price_per_hour_micro", 0)),
    )


def _assigned(model: Observation, record: Seen) -> None:
    body = record.body
    task = _live(model, record)
    if task is None:
        return
    task.queue = str(body.get("queue", task.queue))
    task.submitted_ms = int(body.get("submitted_ms", task.submitted_ms))
    if task.current is not None:
        model.impossible("INV2", f"attempt {body.get('attempt')} of {task.shown} began beside {task.current.number}")
        _finish(model, task, None)
    places = [_place(entry) for entry in body.get("members", ())]
    attempt = AttemptView(
        number=int(body.get("attempt", 0)),
        generation=int(body.get("generation", 0)),
        epoch=int(body.get("epoch", 0)),
        assigned_ms=model.now_ms,
        members={place.number: place for place in places},
        estimate_micro=int(body.get("estimate_micro", 0)),
        crossing=body.get("crossing"),
        resume=tuple(body.get("resume", ())),
    )
    task.attempts[attempt.number] = attempt
    task.current = attempt
    task.reasons = ()
    task.unexplained_since_ms = None
    for place in places:
        model.use_queue(task.queue, place, booked=True)
    model.use_node(attempt, 1)
    if attempt.crossing is not None and attempt.crossing.get("taken"):
        model.count("crossed", task=task.shown, queue=task.queue, node=places[0].node if places else "")
    row = {"node": places[0].node if places else None, "site": places[0].site if places else None}
    model.change("attempt", f"{task.shown}/{attempt.number}", None, "assigned", generation=attempt.generation, **row)
    for place in places:
        name = f"{task.shown}/{attempt.number}/{place.number}"
        model.change("member", name, None, "assigned", node=place.node, site=place.site, devices=list(place.devices))
    enter(model, task, TaskState.STARTING, attempt=attempt.number)


def _preempted(model: Observation, record: Seen) -> None:
    task = _live(model, record)
    if task is None:
        return
    model.count("preempted", task=task.shown, queue=task.queue, node=_node_of(task.current))
    if task.current is not None:
        task.current.stopping = True
        enter(model, task, TaskState.STOPPING, by=record.body.get("by"))


def _finish(model: Observation, task: TaskView, use: Mapping[str, Any] | None) -> None:
    """An attempt ended, by placement's word."""
    attempt = task.current
    if use is not None and (attempt is None or attempt.number != use.get("attempt")):
        attempt = task.attempts.get(int(use.get("attempt", 0)))
    if attempt is None or attempt.ended_ms is not None:
        return
    attempt.end = None if use is None else str(use.get("end"))
    attempt.cause = None if use is None else use.get("cause")
    attempt.ended_ms = model.now_ms
    for member in attempt.members.values():
        if attempt.end == "lost" or model.is_lost(member.node):
            model.use_queue(task.queue, member, booked=False)
    model.change(
        "attempt",
        f"{task.shown}/{attempt.number}",
        "live",
        attempt.end or "ended",
        cause=attempt.cause,
        node=_node_of(attempt),
    )
    if attempt.end in _COUNTED_ENDS:
        model.count(attempt.end, task=task.shown, queue=task.queue, node=_node_of(attempt))
    if attempt is task.current:
        task.current = None


def _requeued(model: Observation, record: Seen) -> None:
    task = _live(model, record)
    if task is None:
        return
    node = _node_of(task.current)
    task.failure_count = int(record.body.get("failure_count", task.failure_count))
    _finish(model, task, record.body.get("use"))
    task.unreachable = False
    task.waiting_since_ms = model.now_ms
    task.unexplained_since_ms = model.now_ms
    model.count("requeued", task=task.shown, queue=task.queue, node=node)
    enter(model, task, TaskState.QUEUED)


def _rejected(model: Observation, record: Seen) -> None:
    task = _body_task(model, record)
    queue = str(record.body.get("queue", ""))
    reason = str((record.body.get("reason") or {}).get("reason", ""))
    model.count("rejected", task=task.shown, queue=queue)
    if not reason:
        model.impossible("INV9", f"{task.shown} was rejected without a reason")
    if task.state is None or (task.current is None and task.state is TaskState.QUEUED):
        task.queue = queue
        task.rejected_path = str(record.body.get("path", ""))
        task.reasons = (reason,) if reason else ()
        enter(model, task, TaskState.REJECTED, reasons=list(task.reasons), path=task.rejected_path)


def _ended(model: Observation, record: Seen) -> None:
    task = _live(model, record)
    if task is None:
        return
    node = _node_of(task.current)
    task.failure_count = int(record.body.get("failure_count", task.failure_count))
    task.cause = record.body.get("cause")
    _finish(model, task, record.body.get("use"))
    task.reasons = ()
    task.unreachable = False
    task.unexplained_since_ms = None
    model.count("ended", task=task.shown, queue=task.queue, node=node)
    enter(model, task, TaskState(str(record.body.get("end"))), cause=task.cause, node=node or None)


def _submission_refused(model: Observation, record: Seen) -> None:
    model.count("refused", task=_body_task(model, record).shown)


def _node_of(attempt: AttemptView | None) -> str:
    return "" if attempt is None or not attempt.members else next(iter(attempt.members.values())).node


def _desired(model: Observation, record: Seen) -> None:
    body = record.body
    if not body:
        _withdrawn(model, record)
        return
    task = _body_task(model, record)
    if body.get("specification"):
        task.document = body["specification"]
        task.names[str(body["specification"].get("name", ""))] = None
    if body.get("wish") not in ("stop", "reclaim"):
        return
    attempt = task.current
    if attempt is None or attempt.number != body.get("attempt") or attempt.stopping or task.state in TERMINAL:
        return
    if all(member.state.done for member in attempt.members.values()):
        return
    attempt.stopping = True
    enter(model, task, TaskState.STOPPING, cause=body.get("cause"))


def _withdrawn(model: Observation, record: Seen) -> None:
    """A wish went away. On a node that was removed no receipt will come: what was held there is given up by this."""
    name, _, rest = (record.key or b"").decode("utf-8", "replace").partition("/")
    node, parts = model.nodes.get(name), rest.split("/")
    if node is None or not node.removed or len(parts) != _PARTS_OF_RUN:
        return
    task = model.tasks.get((parts[0], parts[1]))
    attempt = None if task is None else task.attempts.get(int(parts[2]))
    member = None if attempt is None else attempt.members.get(int(parts[3]))
    if task is not None and attempt is not None and member is not None and member.free_ms is None:
        free(model, task, attempt, member)


def _receipt(state: MemberState) -> Callable[[Observation, Seen], None]:
    def fold(model: Observation, record: Seen) -> None:
        found = _believed(model, record)
        if found is None:
            return
        task, attempt, member = found
        if members.may_follow(member.state, state):
            before, member.state = member.state, state
            _advance(model, record, task, attempt, member)
            name = f"{task.shown}/{attempt.number}/{member.number}"
            model.change("member", name, str(before), str(state), node=member.node, site=member.site)
        _after_receipt(model, task, attempt)

    return fold


def _believed(model: Observation, record: Seen) -> tuple[TaskView, AttemptView, MemberView] | None:
    """The member that a receipt is about, if it is one that was issued to that node."""
    body = record.body
    task = model.tasks.get((str(body.get("tenant", "default")), str(body.get("task", ""))))
    attempt = None if task is None else task.attempts.get(body.get("attempt", -1))
    member = None if attempt is None else attempt.members.get(body.get("member", -1))
    if task is None or attempt is None or member is None or member.node != body.get("node"):
        return None
    return task, attempt, member


def _advance(model: Observation, record: Seen, task: TaskView, attempt: AttemptView, member: MemberView) -> None:
    body = record.body
    where = {"task": task.shown, "queue": task.queue, "node": member.node}
    match member.state:
        case MemberState.ACCEPTED:
            model.count("start", **where)
        case MemberState.STARTED:
            member.started_ms = model.now_ms
            member.resumed_progress_ms = int(body.get("resumed_progress_ms", 0))
            member.resumed_generation = int(body.get("resumed_generation", 0))
            member.damaged = tuple(body.get("damaged", ()))
            model.count("started", **where)
        case MemberState.REFUSED:
            model.count("refused", **where)
        case MemberState.STOPPED:
            model.count("stopped", **where)
        case MemberState.RECLAIMED:
            if member.free_ms is None and not body.get("leftover"):
                free(model, task, attempt, member)
        case _:
            pass
    if member.state.done and member.done_ms is None:
        member.done_ms = model.now_ms


def free(model: Observation, task: TaskView, attempt: AttemptView, member: MemberView) -> None:
    """The member's devices are proven free."""
    member.free_ms = model.now_ms
    model.use_node(attempt, -1, (member.number,))
    model.use_queue(task.queue, member, booked=False)


def _after_receipt(model: Observation, task: TaskView, attempt: AttemptView) -> None:
    if attempt is not task.current or task.state in TERMINAL:
        return
    ready = all(member.started_ms is not None for member in attempt.members.values())
    if ready and task.state is TaskState.STARTING and not attempt.stopping:
        enter(model, task, TaskState.RUNNING, attempt=attempt.number)


def _progressed(model: Observation, record: Seen) -> None:
    found = _believed(model, record)
    if found is not None:
        found[2].progress_ms = max(found[2].progress_ms, int(record.body.get("progress_ms", 0)))


def _accepted(model: Observation, record: Seen) -> None:
    """An agent that remembers a member never takes it twice: an acceptance in another session is an empty machine's."""
    _receipt(MemberState.ACCEPTED)(model, record)
    found, session = _believed(model, record), record.header("session")
    if found is None or not session:
        return
    member = found[2]
    member.taken_anew |= member.session not in ("", session)
    member.session = member.session or session


def _reclaimed_late(model: Observation, record: Seen) -> None:
    """A reclaim receipt frees the devices even if its state was passed: a leftover that is gone is told again."""
    _receipt(MemberState.RECLAIMED)(model, record)
    found = _believed(model, record)
    if found is None or found[2].free_ms is not None:
        return
    if record.body.get("leftover"):
        found[2].leftover = True
    else:
        free(model, *found)


FOLDS: Final[dict[str, Callable[[Observation, Seen], None]]] = {
    EventType.TASK_QUEUED: _queued,
    EventType.TASK_ASSIGNED: _assigned,
    EventType.TASK_PREEMPTED: _preempted,
    EventType.TASK_REQUEUED: _requeued,
    EventType.TASK_REJECTED: _rejected,
    EventType.TASK_ENDED: _ended,
    EventType.SUBMISSION_REFUSED: _submission_refused,
    EventType.ATTEMPT_DESIRED: _desired,
    EventType.ATTEMPT_ACCEPTED: _accepted,
    EventType.ATTEMPT_REFUSED: _receipt(MemberState.REFUSED),
    EventType.ATTEMPT_STAGED: _receipt(MemberState.STAGED),
    EventType.ATTEMPT_STARTED: _receipt(MemberState.STARTED),
    EventType.ATTEMPT_PROGRESSED: _progressed,
    EventType.ATTEMPT_SUCCEEDED: _receipt(MemberState.SUCCEEDED),
    EventType.ATTEMPT_FAILED: _receipt(MemberState.FAILED),
    EventType.ATTEMPT_STOPPED: _receipt(MemberState.STOPPED),
    EventType.ATTEMPT_RECLAIMED: _reclaimed_late,
}
