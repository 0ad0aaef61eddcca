"""One input record into the draft: which use-case takes which type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from evenflow.core.lifecycle.alerts import Alert
from evenflow.core.probing.sequence import Freshness
from evenflow.events.contract import Contract
from evenflow.events.contracts import agent, checkpoint, tasks
from evenflow.placement.deciding import receipts, submissions
from evenflow.placement.deciding.draft import Draft
from evenflow.placement.deciding.replays import Replays
from evenflow.placement.memory.rows import TaskRow
from evenflow.platform.broker.codec import Received

CHECKPOINTS_KEPT: Final = 3
#: Header of a dead letter that was sent again: it skips the sequence test only.
RETRIED: Final = "x-dlq-origin"


def hear(replays: Replays, received: Received, *, retried: bool) -> Freshness:
    """Judge a receipt's stamp; whatever carries none is new."""
    stamp = received.envelope.stamp
    if stamp is None or retried or not isinstance(received.body, agent.Receipt):
        return Freshness.FRESH
    return replays.hear(stamp.node, stamp.session, received.partition, stamp.sequence, received.value)


def reduce(draft: Draft, received: Received, hearing: Freshness) -> None:
    """Fold one readable record in. Types this build does not know are counted and passed over."""
    body = received.body
    fold = _FOLDS.get(type(body)) if body is not None else None
    if fold is not None:
        fold(draft, received)
    elif isinstance(body, agent.Receipt):
        _receipt(draft, received, hearing)
    else:
        draft.counts.unknown_types += 1


def _receipt(draft: Draft, received: Received, hearing: Freshness) -> None:
    body: Any = received.body
    stamp = received.envelope.stamp
    if hearing is Freshness.REPEAT:
        draft.counts.stale_receipts += 1
    elif hearing is not Freshness.FRESH:
        draft.counts.refused_receipts += 1
        what = f"{body.TYPE} for {body.tenant}/{body.task}: its sequence number says {hearing}"
        draft.note("receipt refused", node=body.node, problem=what, origin=received.origin)
        draft.raise_alert(Alert.NODE_IDENTITY, body.node, what)
    elif stamp is None and draft.settings.signed_receipts_only:
        draft.park(received, "unsigned", "a receipt must carry its node's stamp")
    elif stamp is not None and stamp.node != body.node:
        draft.counts.refused_receipts += 1
        draft.note("receipt refused", node=stamp.node, problem=f"it speaks for {body.node}", origin=received.origin)
        draft.raise_alert(Alert.NODE_IDENTITY, stamp.node, f"it sent a receipt in the name of {body.node}")
    else:
        receipts.on_receipt(draft, received)


# --- checkpoints ------------------------------------------------------------------------------------------------------


def on_verified(draft: Draft, received: Received) -> None:
    """Keep the newest few that may be resumed from; those of an attempt that was lost never count."""
    body: Any = received.body
    row = draft.task(f"{body.tenant}/{body.task}")
    if row is None or row.terminal or body.generation > row.attempt or body.generation in row.lost_generations:
        return
    point = {
        "checkpoint": body.checkpoint,
        "generation": body.generation,
        "progress_ms": body.progress_ms,
        "manifest": body.manifest,
        "size_bytes": body.size_bytes,
        "site": body.site,
    }
    others = [one for one in row.checkpoints if one["manifest"] != body.manifest]
    kept = sorted([*others, point], key=lambda one: (one["generation"], one["checkpoint"]), reverse=True)
    _keep(draft, row, kept[:CHECKPOINTS_KEPT])


def on_gone(draft: Draft, received: Received) -> None:
    """A checkpoint is damaged or deleted: never resumed from again."""
    body: Any = received.body
    row = draft.task(f"{body.tenant}/{body.task}")
    if row is not None and not row.terminal:
        _keep(draft, row, [one for one in row.checkpoints if one["manifest"] != body.manifest])


def _keep(draft: Draft, row: TaskRow, checkpoints: list[dict[str, Any]]) -> None:
    if checkpoints != row.checkpoints:
        draft.change(row.key).checkpoints = checkpoints


_FOLDS: Final[dict[type[Contract], Callable[[Draft, Received], None]]] = {
    tasks.TaskSubmitted: submissions.on_submitted,
    tasks.TaskCancelRequested: submissions.on_cancel,
    tasks.TaskChangeRequested: submissions.on_change,
    checkpoint.CheckpointVerified: on_verified,
    checkpoint.CheckpointDamaged: on_gone,
    checkpoint.CheckpointPruned: on_gone,
}
