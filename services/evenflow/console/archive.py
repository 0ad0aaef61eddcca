"""Ended tasks beyond the bound go to the documents and out of memory."""

from __future__ import annotations

from typing import Any, Final

from evenflow.console.projection.board import Board
from evenflow.console.stores import EndedTasks
from evenflow.core.errors import Unavailable
from evenflow.platform.runtime import Runtime

BATCH: Final = 500


class Archive:
    """Periodic work."""

    def __init__(self, runtime: Runtime, board: Board, ended: EndedTasks) -> None:
        self._runtime = runtime
        self._board = board
        self._ended = ended

    async def step(self) -> None:
        """Keep what is overdue; while the store is away nothing is forgotten but what the fold's own bound drops."""
        overdue = self._board.tasks.overdue(BATCH)
        if not overdue:
            return
        rows: dict[str, dict[str, Any]] = {
            task.key: {
                "status": self._board.task_status(task),
                "events": [entry.row() for entry in task.course.ordered()],
                "dropped": task.course.dropped_count,
            }
            for task in overdue
        }
        try:
            await self._ended.keep(rows)
        except Unavailable as error:
            self._runtime.log.warning("ended tasks not kept", problem=str(error), count=len(rows))
            return
        for task in overdue:
            self._board.tasks.forget(task)
