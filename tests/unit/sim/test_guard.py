"""Threads, sockets and blocking sleeps fail at once and name who asked."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import anyio.to_thread
import pytest

from evenflow.sim.guard import guarded
from evenflow.sim.loop import Stuck, VirtualLoop


def blocking_work() -> None:
    """Something that a careless handler would hand to a thread."""


async def _through_anyio() -> None:
    await anyio.to_thread.run_sync(blocking_work)


async def _through_asyncio() -> None:
    await asyncio.to_thread(blocking_work)


async def _through_the_executor() -> None:
    await asyncio.get_running_loop().run_in_executor(None, blocking_work)


async def _through_a_thread() -> None:
    threading.Thread(target=blocking_work).start()


@pytest.mark.parametrize("ask", [_through_anyio, _through_asyncio, _through_the_executor, _through_a_thread])
def test_a_worker_thread_fails_with_the_functions_name(ask: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Whatever the door, the error says which function wanted a thread."""
    loop = VirtualLoop()
    try:
        with guarded(), pytest.raises(Stuck, match="blocking_work"):
            loop.run_until_complete(ask())
    finally:
        loop.bury()
        loop.close()


def test_loops_sockets_and_blocking_sleeps_fail_inside_and_work_again_outside() -> None:
    """The guard is put back at the end of the block."""
    with guarded():
        with pytest.raises(Stuck, match="loop"):
            asyncio.new_event_loop()
        with pytest.raises(Stuck, match="socket"):
            socket.socket()
        with pytest.raises(Stuck, match="sleep"):
            time.sleep(1)
    time.sleep(0)
    asyncio.new_event_loop().close()
    thread = threading.Thread(target=blocking_work)
    thread.start()
    thread.join()
