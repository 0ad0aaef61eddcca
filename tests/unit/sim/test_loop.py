"""The virtual loop: time, order, hangs found, processes killed and paused."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import random
import warnings
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from evenflow.sim.guard import guarded
from evenflow.sim.loop import Stuck, VirtualLoop
from evenflow.sim.process import PROCESS, Process, process_of


def _in_process(loop: VirtualLoop, process: Process, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    context = contextvars.copy_context()
    context.run(PROCESS.set, process)
    return loop.create_task(coroutine, context=context)


def _run(main: Callable[[VirtualLoop], Coroutine[Any, Any, Any]], *, seed: int | None = None) -> Any:
    loop = VirtualLoop(None if seed is None else random.Random(seed))
    with guarded():
        try:
            return loop.run_until_complete(main(loop))
        finally:
            loop.bury()
            loop.close()


def test_a_day_of_sleep_takes_no_time_and_ends_on_the_second() -> None:
    """Virtual time jumps to the next timer and adds up exactly."""

    async def main(loop: VirtualLoop) -> tuple[float, int]:
        await asyncio.sleep(86_400)
        for _ in range(10):
            await asyncio.sleep(0.1)
        return loop.time(), loop.time_ms()

    seconds, ms = _run(main)
    assert seconds == pytest.approx(86_401)
    assert ms == 86_401_000


def test_equal_times_run_in_the_order_they_were_asked_for() -> None:
    """Timers are ordered by time, then by sequence."""
    seen: list[int] = []

    async def main(loop: VirtualLoop) -> None:
        for number in range(5):
            loop.call_later(1, seen.append, number)
        loop.call_later(0.5, seen.append, 99)
        await asyncio.sleep(2)

    _run(main)
    assert seen == [99, 0, 1, 2, 3, 4]


def test_waiting_for_what_never_comes_is_found() -> None:
    """A future nobody resolves raises Stuck instead of sleeping for ever."""

    async def main(loop: VirtualLoop) -> None:
        await loop.create_future()

    with pytest.raises(Stuck, match="nothing left to run"):
        _run(main)


def test_a_moment_that_never_ends_is_found() -> None:
    """A busy loop that only gives way, and never lets time pass, raises Stuck."""

    async def main(_loop: VirtualLoop) -> None:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(Stuck, match="time stands still"):
        _run(main)


def test_a_killed_process_runs_nothing_more_not_even_finally() -> None:
    """Death is real: neither `finally` nor a pending timer of the process runs."""
    seen: list[str] = []

    async def victim() -> None:
        try:
            asyncio.get_running_loop().call_later(5, seen.append, "timer")
            await asyncio.sleep(10)
            seen.append("end")
        finally:
            seen.append("finally")

    async def main(loop: VirtualLoop) -> None:
        process = process_of(1, "victim", 1)
        _in_process(loop, process, victim())
        await asyncio.sleep(1)
        loop.kill(process)
        await asyncio.sleep(60)
        assert seen == []

    _run(main)


def test_a_paused_process_goes_on_where_it_was_and_its_timers_fire_late_together() -> None:
    """A pause holds callbacks in order; a timer due meanwhile fires at the resume."""
    seen: list[tuple[str, float]] = []

    async def worker(loop: VirtualLoop) -> None:
        for step in ("one", "two"):
            await asyncio.sleep(1)
            seen.append((step, loop.time()))

    async def main(loop: VirtualLoop) -> None:
        process = process_of(1, "worker", 1)
        _in_process(loop, process, worker(loop))
        loop.pause(process)
        await asyncio.sleep(10)
        loop.resume(process)
        await asyncio.sleep(10)

    _run(main)
    assert seen == [("one", 11.0), ("two", 12.0)]


def test_a_process_can_be_killed_at_any_callback() -> None:
    """`kill_at` reaches every callback once: a sweep over all of them ends at a different step each time."""

    def progress(callback_number: int) -> int:
        done: list[int] = []

        async def worker() -> None:
            for number in range(4):
                await asyncio.sleep(1)
                done.append(number)

        async def main(loop: VirtualLoop) -> None:
            process = process_of(1, "worker", 1)
            loop.kill_at("worker", callback_number, loop.kill)
            _in_process(loop, process, worker())
            await asyncio.sleep(10)

        _run(main)
        return len(done)

    found = [progress(number) for number in range(1, 12)]
    assert found[0] == 0
    assert found[-1] == 4
    assert sorted(found) == found


def test_processes_are_interleaved_by_the_seed_and_keep_their_own_order() -> None:
    """Two seeds differ, one seed repeats, and each process's callbacks stay in order."""

    def order(seed: int) -> list[tuple[str, int]]:
        seen: list[tuple[str, int]] = []

        def note(name: str, number: int) -> None:
            seen.append((name, number))

        async def main(loop: VirtualLoop) -> None:
            for name in "abc":
                context = contextvars.copy_context()
                context.run(PROCESS.set, process_of(seed, name, 1))
                for number in range(6):
                    loop.call_soon(note, name, number, context=context)
            await asyncio.sleep(1)

        _run(main, seed=seed)
        for name in "abc":
            assert [number for who, number in seen if who == name] == list(range(6))
        return seen

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_children_of_a_cancelled_group_end_in_the_order_they_started() -> None:
    """anyio's task sets are ordered, whatever the addresses: same order after stirring the heap."""

    def order() -> list[int]:
        seen: list[int] = []
        junk = [object() for _ in range(random.SystemRandom().randrange(5_000))]

        async def child(number: int) -> None:
            try:
                await anyio.sleep(100)
            finally:
                seen.append(number)

        async def main(_loop: VirtualLoop) -> None:
            async with anyio.create_task_group() as group:
                for number in range(12):
                    group.start_soon(child, number)
                await anyio.sleep(1)
                group.cancel_scope.cancel()

        _run(main)
        del junk
        return seen

    assert [order() for _ in range(4)] == [list(range(12))] * 4


def test_timeouts_of_every_kind_fire_in_virtual_time() -> None:
    """`asyncio.timeout`, `wait_for`, `move_on_after` and anyio's streams need only the loop's clock."""

    async def main(loop: VirtualLoop) -> list[float]:
        times: list[float] = []
        for limit in (asyncio.timeout(3), anyio.fail_after(4)):
            with pytest.raises(TimeoutError):
                async with _as_async(limit):
                    await asyncio.sleep(100)
            times.append(loop.time())
        with anyio.move_on_after(0.1):
            await anyio.sleep(1)
        times.append(loop.time())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(loop.create_future(), 1)
        times.append(loop.time())
        return times

    assert _run(main) == pytest.approx([3, 7, 7.1, 8.1])


@asynccontextmanager
async def _as_async(manager: Any) -> AsyncIterator[None]:
    if hasattr(manager, "__aenter__"):
        async with manager:
            yield
    else:
        with manager:
            yield


def test_worlds_leave_nothing_behind() -> None:
    """Tasks abandoned inside anyio scopes are freed with their world: `bury` drops them from anyio's table."""
    from anyio._backends import _asyncio as anyio_asyncio

    async def abandoned() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, 1_000)
            await anyio.sleep(1_000)

    async def main(loop: VirtualLoop) -> None:
        process = process_of(1, "victim", 1)
        _in_process(loop, process, abandoned())
        await asyncio.sleep(1)
        loop.kill(process)

    before = len(anyio_asyncio._task_states)
    for _ in range(20):
        _run(main)
    assert len(anyio_asyncio._task_states) <= before


def test_what_a_buried_coroutine_begins_while_it_closes_is_buried_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its `finally` finds the world's loop, asks for no other one, and leaves nothing behind."""
    loop = VirtualLoop()
    asked: list[object] = []
    monkeypatch.setattr(asyncio.events.BaseDefaultEventLoopPolicy, "get_event_loop", asked.append)
    began: list[str] = []

    async def late() -> None:
        began.append("ran")

    async def waits() -> None:
        try:
            await asyncio.sleep(1_000)
        finally:
            began.append("closed")
            await asyncio.gather(late(), late())

    async def main() -> None:
        loop.create_task(waits())
        await asyncio.sleep(1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loop.run_until_complete(loop.create_task(main()))
        loop.bury()
        loop.close()
        gc.collect()
    assert (began, asked) == (["closed"], [])
