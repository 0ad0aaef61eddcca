"""States of a task and how they may follow one another.

    queued ──▶ starting ──▶ running ──▶ succeeded | failed
      ▲  │        │           │
      │  │        ▼           ▼
      └──┼──── stopping ◀─────┘      (an attempt ends without ending the task: back to queued)
         ▼        ▼
      cancelled, rejected, failed

A terminal state never changes. `unreachable` is a flag beside running, not a state.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class TaskState(StrEnum):
    """Where a task is in its life."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REJECTED = "rejected"

    @property
    def terminal(self) -> bool:
        """Whether nothing can follow."""
        return self in TERMINAL


TERMINAL: Final = frozenset({TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED, TaskState.REJECTED})

#: state → states that may follow. None is "does not exist yet".
TRANSITIONS: Final[dict[TaskState | None, frozenset[TaskState]]] = {
    None: frozenset({TaskState.QUEUED, TaskState.REJECTED}),
    TaskState.QUEUED: frozenset({TaskState.STARTING, TaskState.CANCELLED, TaskState.FAILED, TaskState.REJECTED}),
    TaskState.STARTING: frozenset(
        {
            TaskState.RUNNING,
            TaskState.STOPPING,
            TaskState.QUEUED,
            TaskState.SUCCEEDED,
            TaskState.FAILED,
            TaskState.CANCELLED,
        }
    ),
    TaskState.RUNNING: frozenset(
        {TaskState.STOPPING, TaskState.QUEUED, TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED}
    ),
    TaskState.STOPPING: frozenset({TaskState.QUEUED, TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED}),
    TaskState.SUCCEEDED: frozenset(),
    TaskState.FAILED: frozenset(),
    TaskState.CANCELLED: frozenset(),
    TaskState.REJECTED: frozenset(),
}


def may_follow(before: TaskState | None, after: TaskState) -> bool:
    """Whether a task in `before` (None: unknown) may enter `after`."""
    return after in TRANSITIONS[before]
