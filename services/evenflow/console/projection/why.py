"""Why a task is where it is: all blockers with their arithmetic while it waits, place and terms once it has one."""

from __future__ import annotations

from typing import Any, Final

from evenflow.console.projection.board import Board
from evenflow.console.projection.task import Task
from evenflow.core.lifecycle.reasons import Reason
from evenflow.core.lifecycle.task import TaskState

#: What somebody can do about a reason, in one sentence.
WAYS_OUT: Final[dict[Reason, str]] = {
    Reason.QUOTA: "Tasks of this queue must end first, or its limit be raised (evenflow queues shows both).",
    Reason.QUEUE_UNKNOWN: "Submit to a queue that exists, or publish a document for this one.",
    Reason.ID_CONFLICT: "Choose another id; this one belongs to a task with another body.",
    Reason.PINNED: "The nodes named in `where` must come free or come back.",
    Reason.APART: "The tasks it must stay apart from must end first.",
    Reason.WAITING_LIMIT: "Submit again when fewer tasks of this queue wait.",
    Reason.CROSSING: "There is room elsewhere, but moving the data costs more than waiting; see the terms below.",
    Reason.PATH: "No link leads from the data to the free nodes; publish one.",
    Reason.FAILED_HERE: "It failed on these nodes; others must come free.",
    Reason.DEVICE_COUNT: "Devices must come free, or nodes join.",
    Reason.DEVICE_SHARE: "Shares of a device must come free.",
    Reason.DEVICE_MODEL: "Nodes with this model must come free or join; allow more models.",
    Reason.DEVICE_MEMORY: "Devices with that much memory must come free or join.",
    Reason.PRECISION: "Nodes whose devices know this precision must join.",
    Reason.CPU: "Cores must come free, or nodes join.",
    Reason.MEMORY: "Memory must come free, or nodes join.",
    Reason.DISK: "Disk must come free, or nodes join.",
    Reason.LABEL: "No node carries these labels.",
    Reason.SITE: "Allow more sites in `where`, or wait for these.",
    Reason.RESIDENCY: "The data may not leave its regions.",
    Reason.PERMISSION: "The nodes' owners do not admit this task.",
    Reason.NODE_STATE: "Nodes are cordoned, draining, lost or quarantined (evenflow nodes).",
    Reason.NODE_SIZE: "A node that large must join, or the task ask for less.",
    Reason.BACKING_OFF: "It is tried again by itself at the time given.",
    Reason.RECLAIM_PENDING: "Its earlier attempt has ended and not yet been proven gone from its node.",
    Reason.OBSERVER_BLIND: "Too many nodes are silent at once to judge; nothing is given up meanwhile.",
    Reason.NEVER_FITS: "No registered node could ever hold it; ask for less or join a larger node.",
    Reason.DATASET: "No site holds this dataset yet; register it.",
    Reason.ORDER: "Tasks before it go first.",
    Reason.RESERVED: "The room is kept for a task before it.",
    Reason.ADJACENCY: "Its members must stand closer together than the free nodes do.",
    Reason.INVALID: "Correct the field and submit again.",
}


def why(board: Board, task: Task, now_ms: int) -> dict[str, Any]:
    """The explanation of one task, with how fresh it is."""
    state, since_ms = task.state()
    rounds = board.activity.rounds
    last = rounds[-1] if rounds else None
    shown: dict[str, Any] = {
        "tenant": task.tenant,
        "task": task.task,
        "queue": task.queue,
        "state": str(state),
        "since_ms": since_ms,
        "for_ms": max(0, now_ms - since_ms),
        "view": {
            "as_of_ms": board.as_of_ms,
            "age_ms": max(0, now_ms - board.as_of_ms),
            "round": last["round"] if last is not None else 0,
            "round_age_ms": max(0, now_ms - last["at_ms"]) if last is not None else None,
        },
    }
    if state is TaskState.QUEUED:
        shown |= _waiting(task, now_ms)
    elif not task.terminal:
        shown |= _placed(task)
    else:
        shown |= {
            "end": task.end,
            "cause": task.cause,
            "message": task.message,
            "path": task.path,
            "failures": task.failure_count,
            "reasons": [_reason(one.model_dump(mode="json")) for one in task.reasons],
        }
    return shown


def _reason(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "way_out": WAYS_OUT.get(Reason(row["reason"]), "")}


def _waiting(task: Task, now_ms: int) -> dict[str, Any]:
    crossing = task.refused_crossing
    return {
        "decided": task.decided,
        "position": task.position,
        "reasons": [_reason(one.model_dump(mode="json")) for one in task.reasons],
        "reasons_age_ms": max(0, now_ms - task.reasons_ms) if task.reasons_ms else None,
        "not_before_ms": task.not_before_ms,
        "crossing": crossing.model_dump() if crossing is not None else None,
    }


def _placed(task: Task) -> dict[str, Any]:
    attempt = task.attempt(task.current)
    return {
        "attempt": attempt.attempt,
        "epoch": attempt.epoch,
        "round": attempt.round,
        "waited_ms": attempt.wait_ms,
        "waited_for": [one.model_dump(mode="json") for one in attempt.waited_for],
        "places": [
            {
                "member": member.member,
                "node": member.place.node,
                "site": member.place.site,
                "devices": [device.model_dump() for device in member.place.devices],
                "price_per_hour_micro": member.place.price_per_hour_micro,
            }
            for member in attempt.in_order
            if member.place is not None
        ],
        "estimate_micro": attempt.estimate_micro,
        "resume_count": attempt.resume_count,
        "staging": [one.model_dump() for one in attempt.staging],
        "crossing": attempt.crossing.model_dump() if attempt.crossing is not None else None,
    }
