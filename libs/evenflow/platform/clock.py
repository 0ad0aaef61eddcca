"""Time and ids as injected things: the only door to the wall clock, sleeping and randomness.

Wall time is for people and for records; durations come from one side's monotonic clock and are never the difference of
two machines' wall clocks.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from typing import Protocol


class Clock(Protocol):
    """Wall and monotonic time in integer milliseconds."""

    def now_ms(self) -> int:
        """Wall clock, milliseconds since 1970-01-01T00:00:00Z."""

    def monotonic_ms(self) -> int:
        """A clock that never goes back; only differences mean something."""

    async def sleep(self, seconds: float) -> None:
        """Give way for `seconds` of this process's time."""


class Ids(Protocol):
    """A source of new identifiers."""

    def new_id(self) -> str:
        """A fresh id within the grammar of all ids: [a-z0-9][a-z0-9._-]{0,127}."""


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Wall clock in milliseconds."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Monotonic clock in milliseconds."""
        return time.monotonic_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        """asyncio's sleep."""
        await asyncio.sleep(seconds)


class RandomIds:
    """Ids of 80 random bits after a millisecond stamp, so that they sort by age."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def new_id(self) -> str:
        """A new id such as 019a…-f3…."""
        return f"{self._clock.now_ms():012x}-{secrets.token_hex(10)}"


def system_random() -> random.Random:
    """A generator seeded by the operating system, for jitter and sampling."""
    return random.Random(secrets.randbits(128))  # noqa: S311  jitter, not secrets
