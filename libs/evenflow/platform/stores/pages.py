"""A page of documents as an asynchronous iterator that may be dropped half way.

An abandoned async generator is closed from the collector through the loop, at a time nobody chose; on the virtual-time
loop that is an error. This iterator holds no frame, so leaving a loop early costs nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence

from evenflow.platform.stores.ports import Stored


class Page(AsyncIterator[Stored]):
    """Loads its documents at the first step, then hands them out in order."""

    def __init__(self, load: Callable[[], Awaitable[Sequence[Stored]]]) -> None:
        self._load = load
        self._rows: Iterator[Stored] | None = None

    async def __anext__(self) -> Stored:
        """The next document; raises what the store raises."""
        if self._rows is None:
            self._rows = iter(await self._load())
        try:
            return next(self._rows)
        except StopIteration:
            raise StopAsyncIteration from None
