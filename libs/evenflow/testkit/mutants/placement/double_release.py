"""Breaks R22: a release that is told again, of an attempt that gave its place back, frees its successor's place."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from evenflow.events.contracts.agent import AttemptReclaimed
from evenflow.placement.deciding import endings, receipts
from evenflow.placement.deciding.draft import Draft
from evenflow.platform.broker.codec import Received
from evenflow.testkit.mutants.replacing import replaced

_on_receipt = receipts.on_receipt


def _by_number_alone(draft: Draft, received: Received) -> None:
    body: Any = received.body
    row = draft.task(f"{body.tenant}/{body.task}")
    if isinstance(body, AttemptReclaimed) and row is not None and row.current is not None:
        changed = draft.change(row.key)
        for member in changed.current.members if changed.current is not None else ():
            if body.attempt < row.attempt and member.member == body.member:
                endings.release(draft, changed, row.attempt, member)
    _on_receipt(draft, received)


def with_double_release() -> AbstractContextManager[None]:
    """Releases that ignore which attempt they are about while entered."""
    return replaced(receipts, "on_receipt", _by_number_alone)
