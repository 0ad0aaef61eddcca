"""Named places before and after each commit, publish and store write, where the simulation kills processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

FailPoint = Callable[[str], Awaitable[None]]


async def no_fail_point(name: str) -> None:
    """Production's fail point: nothing happens."""
