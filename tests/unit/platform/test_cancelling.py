"""A cancellation that nobody asked for is an end that is told; one that was asked for is none."""

from __future__ import annotations

import asyncio

import pytest

from evenflow.core.errors import Ended
from evenflow.platform.cancelling import CANCELLED, asked_for, watched


async def from_inside() -> None:
    """What a client does that waits for a task of its own which it cancelled."""
    inner = asyncio.ensure_future(asyncio.sleep(10))
    inner.cancel()
    await inner


async def test_a_part_that_is_cancelled_from_inside_ends_its_service() -> None:
    """Without being told, the service would live on without it."""
    told: list[BaseException] = []
    task = watched(asyncio.create_task(from_inside(), name="the table"), told.append)
    await asyncio.wait({task})
    await asyncio.sleep(0)
    (error,) = told
    assert isinstance(error, Ended)
    assert (error.exit_code, error.message) == (CANCELLED, "the table was cancelled from inside")


@pytest.mark.parametrize("how", ["cancelled", "finished", "failed"])
async def test_every_other_end_is_the_task_s_own_business(how: str) -> None:
    """Stopping a service tells nothing; errors come out where the task is waited for."""
    told: list[BaseException] = []

    async def work() -> None:
        if how == "failed":
            raise ValueError("broken")
        await asyncio.sleep(10 if how == "cancelled" else 0)

    task = watched(asyncio.create_task(work()), told.append)
    await asyncio.sleep(0)
    if how == "cancelled":
        task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(0)
    assert told == []


async def test_who_is_asked_to_end_knows_it() -> None:
    """Also while the cancellation is being handled."""
    seen: list[bool] = []

    async def work(*, inside: bool) -> None:
        try:
            await (from_inside() if inside else asyncio.sleep(10))
        except asyncio.CancelledError:
            seen.append(asked_for())

    await work(inside=True)
    task = asyncio.create_task(work(inside=False))
    await asyncio.sleep(0)
    task.cancel()
    await task
    assert seen == [False, True]
