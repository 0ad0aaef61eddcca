"""The log's file as somebody outside of the process sees it: what groups have not read, how many tasks ended."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

#: Groups whose offsets nobody reads back are for displays; they lag by up to their period.
_LAG: Final = """
select count(*) from record join part on part.id = record.id >> 40
    join committed on committed.topic = part.topic and committed.number = part.number
    where record.kind = 0 and (record.id & 0xFFFFFFFFFF) >= committed.off
"""
_DONE: Final = """
select count(*) from record join part on part.id = record.id >> 40
    where part.topic = 'evenflow.assignments.v1' and record.kind = 0
    and instr(record.headers, cast('["ce_type","task.ended"]' as blob)) > 0
"""
_LETTERS: Final = """
select count(*) from record join part on part.id = record.id >> 40 where part.topic like '%.dlq' and record.kind = 0
"""


class LogFile:
    """Looks into a log that another process holds, read only."""

    def __init__(self, folder: Path) -> None:
        self._database = sqlite3.connect(f"file:{folder}/log/log.sqlite?mode=ro", uri=True, isolation_level=None)
        self._database.execute("pragma busy_timeout=2000")

    def close(self) -> None:
        """Let go of it."""
        self._database.close()

    def lag(self) -> int:
        """Records that some group has not read yet, over all groups."""
        return self._number(_LAG)

    def done(self) -> int:
        """Tasks that ended."""
        return self._number(_DONE)

    def letters(self) -> int:
        """Records that were parked."""
        return self._number(_LETTERS)

    def _number(self, query: str) -> int:
        row = self._database.execute(query).fetchone()
        return int(row[0])
