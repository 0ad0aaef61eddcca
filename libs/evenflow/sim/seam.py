"""All contact with private parts of asyncio, anyio and FastAPI: the only file to change when either is upgraded.

Pinned to CPython 3.11 to 3.13 and anyio 4; `tests/unit/sim/test_seam.py` fails when one of the parts used here is gone
or means something else. Each entry says which name it leans on.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import sys
from collections import deque
from collections.abc import Hashable, Iterator
from typing import Any, Final, TypeVar

import anyio
from anyio._backends import _asyncio as anyio_asyncio
from fastapi.dependencies import models as fastapi_models

#: Versions whose private parts were read and tested.
PYTHON_MIN: Final = (3, 11)
PYTHON_MAX: Final = (3, 13)

_Element = TypeVar("_Element", bound=Hashable)


class PrivateParts(asyncio.BaseEventLoop):
    """`asyncio.BaseEventLoop` with the private attributes that a loop of our own needs, typed.

    `_ready` is the queue of handles to run (every `call_soon` appends to it), `_stopping` is set by `stop()`, and
    `run_forever` calls `_run_once` until then.
    """

    _ready: deque[asyncio.Handle]
    _stopping: bool


def context_of(handle: asyncio.Handle) -> contextvars.Context:
    """The context that a handle's callback runs in (`Handle._context`; `get_context` came with 3.12)."""
    return handle._context  # type: ignore[attr-defined,no-any-return]  # 3.11 has no accessor; asked all the time


def run_handle(handle: asyncio.Handle) -> None:
    """Run a handle's callback in its context; errors go to the loop's exception handler (`Handle._run`)."""
    handle._run()


@contextlib.contextmanager
def as_running(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let code that asks for the running loop find this one, though it does not turn (`asyncio._set_running_loop`)."""
    before = asyncio._get_running_loop()
    asyncio._set_running_loop(loop)
    try:
        yield
    finally:
        asyncio._set_running_loop(before)


def silence_destroyed_task(task: asyncio.Task[Any]) -> None:
    """Keep asyncio from complaining about a task that its world abandoned (`Task._log_destroy_pending`)."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # private to asyncio


def forget_task_state(task: asyncio.Task[Any]) -> None:
    """Drop anyio's record of a task.

    `_task_states` is a weak-key dictionary whose value reaches its key through the cancel scope, so an abandoned task
    would keep its whole world alive.
    """
    anyio_asyncio._task_states.pop(task, None)


def forget_calls() -> None:
    """Empty FastAPI's caches of what it knows about endpoints: they keep bound methods, and with them whole worlds."""
    for value in vars(fastapi_models).values():
        if isinstance(value, functools._lru_cache_wrapper):
            value.cache_clear()


class OrderedSet(dict[_Element, None]):
    """The methods of `set` that anyio uses, in order of insertion instead of address."""

    def add(self, element: _Element) -> None:
        """Append the element unless it is there."""
        self[element] = None

    def remove(self, element: _Element) -> None:
        """Take the element out; KeyError when absent."""
        del self[element]

    def discard(self, element: _Element) -> None:
        """Take the element out if it is there."""
        self.pop(element, None)


@contextlib.contextmanager
def ordered_anyio() -> Iterator[None]:
    """Make anyio cancel children in the order they were started.

    `CancelScope._tasks`, `CancelScope._child_scopes` and `TaskGroup._tasks` are plain sets of objects hashed by
    address; the order in which a cancelled group's children run would differ from process to process.
    """
    scope, group = anyio_asyncio.CancelScope, anyio_asyncio.TaskGroup
    scope_init, group_init = scope.__init__, group.__init__

    def init_scope(self: Any, *arguments: Any, **named: Any) -> None:
        scope_init(self, *arguments, **named)
        self._tasks = OrderedSet()
        self._child_scopes = OrderedSet()

    def init_group(self: Any) -> None:
        group_init(self)
        self._tasks = OrderedSet()

    scope.__init__ = init_scope  # type: ignore[method-assign]  # put back below
    group.__init__ = init_group  # type: ignore[method-assign]  # put back below
    try:
        yield
    finally:
        scope.__init__ = scope_init  # type: ignore[method-assign]  # put back below
        group.__init__ = group_init  # type: ignore[method-assign]  # put back below


def check_versions() -> None:
    """Raise RuntimeError on an interpreter or an anyio whose private parts nobody has read."""
    if not PYTHON_MIN <= sys.version_info[:2] <= PYTHON_MAX:
        raise RuntimeError(f"the simulation's loop is tested on Python 3.11 to 3.13, not {sys.version.split()[0]}")
    if not hasattr(anyio_asyncio, "_task_states") or not hasattr(anyio, "CancelScope"):
        raise RuntimeError("this anyio has other private parts than the simulation's seam knows")
