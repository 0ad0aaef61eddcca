"""The console's figures: tasks by state, broken chains, dead letters that nobody answered. Looked at when asked for."""

from __future__ import annotations

from collections import Counter
from typing import Final

from evenflow.console.letters import SCANNED_MAX, Letters
from evenflow.console.log_reader import LogReader
from evenflow.console.projection.board import Board
from evenflow.core.lifecycle.task import TaskState
from evenflow.events.streams import STREAMS, dead_letters_of
from evenflow.platform.observability.signals import DEAD_LETTERS, LEDGER_BROKEN, TASKS
from evenflow.platform.runtime import Runtime

_TOPICS: Final = tuple(stream.name for stream in STREAMS if stream.dead_letters)


class Measures:
    """Records levels of the console's tables."""

    def __init__(self, runtime: Runtime, board: Board, letters: Letters, reader: LogReader) -> None:
        self._metrics = runtime.metrics
        self._board = board
        self._letters = letters
        self._reader = reader
        self._seen: dict[str, tuple[int, int, int]] = {}

    async def measure(self) -> None:
        """All of them. Raises Unavailable when the log does not answer."""
        board, metrics = self._board, self._metrics
        states = Counter(str(task.state()[0]) for task in board.tasks.by_key.values())
        for state in TaskState:
            metrics.of(TASKS).record(states[state], state=state)
        broken = sum(1 for book in board.ledger.books.values() if book.broken_at)
        metrics.of(LEDGER_BROKEN).record(broken)
        await self._dead_letters()

    async def _dead_letters(self) -> None:
        """Topics are read again only where letters came, went or were answered: a full look is long."""
        answered = len(self._board.papers.letters)
        bounds = await self._reader.bounds([dead_letters_of(topic) for topic in _TOPICS])
        for topic in _TOPICS:
            seen = (*bounds[dead_letters_of(topic)], answered)
            if self._seen.get(topic) == seen:
                continue
            rows = (
                [] if seen[0] == seen[1] else await self._letters.listed(topic=topic, state="open", limit=SCANNED_MAX)
            )
            self._metrics.of(DEAD_LETTERS).record(len(rows), topic=topic)
            self._seen[topic] = seen
