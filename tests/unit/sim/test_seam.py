"""The private parts of asyncio and anyio that the loop leans on: a version that changed them fails here first."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import sys
from collections import deque

from anyio._backends import _asyncio as anyio_asyncio

from evenflow.sim import seam


def test_the_interpreter_is_one_whose_private_parts_were_read() -> None:
    """Python 3.11 to 3.13."""
    seam.check_versions()
    assert seam.PYTHON_MIN <= sys.version_info[:2] <= seam.PYTHON_MAX


def test_call_soon_appends_a_handle_that_carries_its_context() -> None:
    """`_ready` is a deque of handles; `_context`, `_run` and `cancelled` mean what the loop thinks."""
    loop = asyncio.BaseEventLoop()
    mark = contextvars.ContextVar[int]("mark")
    context = contextvars.copy_context()
    context.run(mark.set, 7)
    seen: list[int] = []
    loop.call_soon(lambda: seen.append(mark.get()), context=context)
    ready = loop._ready  # type: ignore[attr-defined]  # the private part under test
    assert isinstance(ready, deque)
    handle = ready.popleft()
    assert seam.context_of(handle)[mark] == 7
    seam.run_handle(handle)
    assert seen == [7]
    loop.close()


def test_run_forever_turns_by_run_once_until_stopping() -> None:
    """`run_forever` calls `_run_once` and looks at `_stopping` after each turn."""
    source = inspect.getsource(asyncio.BaseEventLoop.run_forever)
    assert "_run_once()" in source
    assert "_stopping" in source


def test_anyio_keeps_its_tasks_where_the_seam_orders_them() -> None:
    """Inside `ordered_anyio` the three sets are ordered; afterwards they are plain sets again."""
    with seam.ordered_anyio():
        scope = anyio_asyncio.CancelScope()
        assert isinstance(scope._tasks, seam.OrderedSet)
        assert isinstance(scope._child_scopes, seam.OrderedSet)
        assert isinstance(anyio_asyncio.TaskGroup()._tasks, seam.OrderedSet)
    assert isinstance(anyio_asyncio.CancelScope()._tasks, set)
    assert "_task_states" in vars(anyio_asyncio)


def test_anyio_uses_no_other_method_of_those_sets() -> None:
    """The ordered set has add, remove and discard; a new use in anyio would need another method."""
    source = inspect.getsource(anyio_asyncio)
    for name in ("_tasks", "_child_scopes"):
        used = {part.split("(")[0] for part in source.split(f".{name}.")[1:]}
        assert used <= {"add", "remove", "discard"}, used
