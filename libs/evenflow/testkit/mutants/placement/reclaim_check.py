"""Breaks rule 7: capacity comes back with the word that the work is over, not with the proof that its place is free."""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.core.lifecycle.member import MemberState
from evenflow.events.contracts import agent
from evenflow.placement.deciding import endings, receipts
from evenflow.placement.deciding.draft import Draft
from evenflow.placement.memory.rows import MemberRow, TaskRow
from evenflow.testkit.mutants.replacing import replaced

_take_outcome = receipts._take_outcome  # noqa: SLF001  the mutant works inside


def _trusting(draft: Draft, row: TaskRow, member: MemberRow, state: MemberState, outcome: agent.Outcome) -> None:
    attempt = row.attempt
    _take_outcome(draft, row, member, state, outcome)
    if member.state.done:
        endings.release(draft, row, attempt, member)


def without_reclaim_check() -> AbstractContextManager[None]:
    """Capacity freed on a status while entered."""
    return replaced(receipts, "_take_outcome", _trusting)
