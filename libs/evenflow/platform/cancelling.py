"""Telling a cancellation that somebody asked for from one that comes out of a library.

A client that is closed, or loses its connection, may let `CancelledError` out of a call. Nothing that catches
`Exception` sees it, so the task that made the call ends in silence, and its service lives on without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, TypeVar

from evenflow.core.errors import Ended

T = TypeVar("T")

#: How a service ends that lost a part of itself this way: it can't know what that part had done.
CANCELLED: Final = 5


def asked_for() -> bool:
    """Whether the task that handles a CancelledError just now was asked to end, a time limit of its own included."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def watched(task: asyncio.Task[T], ended: Callable[[BaseException], Any]) -> asyncio.Task[T]:
    """Tell `ended` when the task is cancelled though nobody asked for it. Errors are the task's own business."""

    def look(done: asyncio.Task[T]) -> None:
        if done.cancelled() and not done.cancelling():
            ended(Ended(f"{done.get_name()} was cancelled from inside", exit_code=CANCELLED))

    task.add_done_callback(look)
    return task
