"""How an attempt ends, and what that means for its task.

An attempt is one try of the whole task with all its members. Its number starts at 1; `generation` numbers a gang's
membership and grows with each attempt and resize; `epoch` is the decider's number.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from evenflow.core.lifecycle.causes import Cause


class AttemptEnd(StrEnum):
    """What became of an attempt."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    PREEMPTED = "preempted"
    MOVED = "moved"
    LOST = "lost"
    CANCELLED = "cancelled"
    START_FAILED = "start-failed"


class Wish(StrEnum):
    """What placement wants of a node for one member."""

    RUN = "run"
    STOP = "stop"
    RECLAIM = "reclaim"


#: Causes that use up the task's failure budget; start-failed does so once per task.
COUNTED: Final = frozenset({Cause.USER_ERROR, Cause.OUT_OF_MEMORY, Cause.UNKNOWN})

#: cause of the end → how the attempt is said to have ended
END_OF_CAUSE: Final[dict[Cause, AttemptEnd]] = {
    Cause.USER_ERROR: AttemptEnd.FAILED,
    Cause.OUT_OF_MEMORY: AttemptEnd.FAILED,
    Cause.UNKNOWN: AttemptEnd.FAILED,
    Cause.DEADLINE: AttemptEnd.FAILED,
    Cause.DEVICE_BROKEN: AttemptEnd.LOST,
    Cause.IDLE: AttemptEnd.PREEMPTED,
    Cause.LEFTOVER: AttemptEnd.LOST,
    Cause.PEER_LOST: AttemptEnd.LOST,
    Cause.NODE_LOST: AttemptEnd.LOST,
    Cause.LINK_LOST: AttemptEnd.LOST,
    Cause.PREEMPTED: AttemptEnd.PREEMPTED,
    Cause.CANCELLED: AttemptEnd.CANCELLED,
    Cause.START_FAILED: AttemptEnd.START_FAILED,
    Cause.READY_TIMEOUT: AttemptEnd.START_FAILED,
    Cause.MAINTENANCE: AttemptEnd.MOVED,
    Cause.QUOTA_EXPIRY: AttemptEnd.MOVED,
    Cause.DRAINED: AttemptEnd.MOVED,
    Cause.MOVED: AttemptEnd.MOVED,
    Cause.NODE_RECLAIMED: AttemptEnd.MOVED,
}
