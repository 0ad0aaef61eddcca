"""Breaks R46: an end told of an earlier attempt is taken for that of the current one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from evenflow.events.contracts.agent import AttemptFailed, AttemptStopped, AttemptSucceeded
from evenflow.placement.deciding import receipts
from evenflow.placement.deciding.draft import Draft
from evenflow.platform.broker.codec import Received
from evenflow.testkit.mutants.replacing import replaced

_on_receipt = receipts.on_receipt


def _whatever_attempt(draft: Draft, received: Received) -> None:
    body: Any = received.body
    row = draft.task(f"{body.tenant}/{body.task}")
    if isinstance(body, AttemptSucceeded | AttemptFailed | AttemptStopped) and row is not None and row.current:
        node = next((one.node for one in row.current.members if one.member == body.member), body.node)
        taken = {"attempt": row.attempt, "epoch": row.current.epoch, "node": node}
        received = replace(received, body=body.model_copy(update=taken))
    _on_receipt(draft, received)


def without_late_refusal() -> AbstractContextManager[None]:
    """Late receipts that count while entered."""
    return replaced(receipts, "on_receipt", _whatever_attempt)
