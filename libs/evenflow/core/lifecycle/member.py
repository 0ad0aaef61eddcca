"""States of one member of an attempt, as placement believes them from receipts.

    assigned ─▶ accepted ─▶ staged ─▶ started ─▶ succeeded | failed | stopped ─▶ reclaimed
        └──────────┴──────────┴─────────┴──▶ refused (the agent never took it)
    any of them ─▶ lost (placement gave the attempt up; only a reclaim can still follow)

Receipts may arrive late, twice and out of order: a receipt that would go back is a counted no-op. Capacity returns only
with `reclaimed`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class MemberState(StrEnum):
    """How far one member got."""

    ASSIGNED = "assigned"
    ACCEPTED = "accepted"
    STAGED = "staged"
    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    REFUSED = "refused"
    LOST = "lost"
    RECLAIMED = "reclaimed"

    @property
    def done(self) -> bool:
        """Whether its work is over, whatever became of it."""
        return RANK[self] >= RANK[MemberState.SUCCEEDED]


#: A receipt applies only if its state ranks higher than the member's: late and repeated ones change nothing.
RANK: Final[dict[MemberState, int]] = {
    MemberState.ASSIGNED: 0,
    MemberState.ACCEPTED: 1,
    MemberState.STAGED: 2,
    MemberState.STARTED: 3,
    MemberState.SUCCEEDED: 4,
    MemberState.FAILED: 4,
    MemberState.STOPPED: 4,
    MemberState.REFUSED: 4,
    MemberState.LOST: 4,
    MemberState.RECLAIMED: 5,
}


def may_follow(before: MemberState, after: MemberState) -> bool:
    """Whether a member in `before` may enter `after`; equal rank never follows."""
    return RANK[after] > RANK[before]
