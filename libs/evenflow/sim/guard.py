"""The guard of a world: a worker thread, another loop, a socket or a blocking sleep fails at once, and is named.

A thread would run in real time, in an order nobody chose. FastStream's dependency solver hops to one for every
synchronous dependency; the guard is how that is noticed.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from anyio._backends._asyncio import AsyncIOBackend

from evenflow.sim.loop import Stuck, function_name
from evenflow.sim.seam import ordered_anyio


async def _no_worker_thread(_cls: type, func: Callable[..., Any], *_args: Any, **_named: Any) -> Any:
    raise Stuck(f"{function_name(func)} was given to a worker thread by anyio")


def _no_thread(thread: threading.Thread) -> None:
    target = getattr(thread, "_target", None) or type(thread).run
    raise Stuck(f"a thread was started for {function_name(target)}")


def _no_loop(_policy: object) -> None:
    raise Stuck("another event loop was asked for: the world has one, and nothing is awaited outside it")


def _no_socket(_socket: object, *_args: Any, **_named: Any) -> None:
    raise Stuck("a socket was opened: the simulated world has none")


def _no_sleep(_seconds: float) -> None:
    raise Stuck("time.sleep would stop the whole world: await the clock's sleep")


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Forbid threads, other loops, sockets and blocking sleeps, and order anyio's sets, until the end of the block.

    Process-wide: worlds of one interpreter run one after the other.
    """
    replaced: list[tuple[Any, str, Any]] = [
        (AsyncIOBackend, "run_sync_in_worker_thread", classmethod(_no_worker_thread)),
        (threading.Thread, "start", _no_thread),
        (asyncio.events.BaseDefaultEventLoopPolicy, "new_event_loop", _no_loop),
        (socket.socket, "__init__", _no_socket),
        (time, "sleep", _no_sleep),
    ]
    before = [(owner, name, owner.__dict__[name]) for owner, name, _ in replaced]
    with ordered_anyio():
        for owner, name, new in replaced:
            setattr(owner, name, new)
        try:
            yield
        finally:
            for owner, name, old in before:
                setattr(owner, name, old)
