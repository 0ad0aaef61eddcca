"""A run that was started and can't be found: the machine booted since, or its traces are gone."""

from __future__ import annotations

from collections.abc import Callable

from evenflow.agent.ports import Ended


class Gone:
    """Whatever is asked of it, the answer is its end."""

    def __init__(self, end: Callable[[], Ended]) -> None:
        self._end = end

    async def next(self) -> Ended:
        """Its end."""
        return self._end()

    async def stop(self, grace_ms: int, *, save: bool) -> Ended:
        """Its end."""
        return self._end()

    async def kill(self) -> Ended:
        """Its end."""
        return self._end()

    async def save(self) -> None:
        """Nothing to save."""
