"""The agent's disk: SQLite for real nodes, memory that outlives the agent for simulated ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from evenflow.agent.journal import Held, Outgoing
from evenflow.core.errors import Refused

SLOTS_MAX: Final = 20_000
LAYOUT: Final = 1

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS held (key TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS slots (slot TEXT PRIMARY KEY, attempt INTEGER NOT NULL, age INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS outbox (sequence INTEGER PRIMARY KEY, size INTEGER NOT NULL, body TEXT NOT NULL);
"""


class MemoryDisk:
    """The disk of a simulated machine: keep the object, and a restarted agent finds everything."""

    def __init__(self) -> None:
        self._held: dict[str, Held] = {}
        self._slots: dict[str, int] = {}
        self._outbox: dict[int, Outgoing] = {}
        self._sequence = 0
        self._session = ""

    def members(self) -> list[Held]:
        """Every member held, in order of key."""
        return [self._held[key] for key in sorted(self._held)]

    def newest(self) -> dict[str, int]:
        """slot → highest attempt applied."""
        return dict(self._slots)

    def session(self) -> str:
        """The last session's id."""
        return self._session

    def remember_session(self, session: str) -> None:
        """Keep the session's id."""
        self._session = session

    def reserve_sequence(self) -> int:
        """A new sequence."""
        self._sequence += 1
        return self._sequence

    def commit(
        self, *, held: Sequence[Held] = (), forget: Sequence[str] = (), records: Sequence[Outgoing] = ()
    ) -> None:
        """Apply at once."""
        for row in held:
            self._held[row.key] = row
            attempt = max(row.desired.attempt, self._slots.pop(row.slot, 0))
            self._slots[row.slot] = attempt
        while len(self._slots) > SLOTS_MAX:
            del self._slots[next(iter(self._slots))]
        for key in forget:
            self._held.pop(key, None)
        for record in records:
            self._outbox[record.sequence] = record
            self._sequence = max(self._sequence, record.sequence)

    def pending(self, count_max: int, bytes_max: int) -> list[Outgoing]:
        """The oldest records not acknowledged."""
        found: list[Outgoing] = []
        size = 0
        for record in self._outbox.values():
            size += len(record.value)
            if found and (len(found) >= count_max or size > bytes_max):
                break
            found.append(record)
        return found

    def pending_count(self) -> int:
        """How many wait."""
        return len(self._outbox)

    def acknowledge(self, sequence: int) -> None:
        """Drop up to this sequence."""
        for done in [number for number in self._outbox if number <= sequence]:
            del self._outbox[done]

    def close(self) -> None:
        """Nothing to close."""


class SqliteDisk:
    """One SQLite file. A commit is on the disk when the call returns; sequences are reserved in blocks."""

    BLOCK: Final = 256

    def __init__(self, path: Path, *, lock_timeout_s: float = 5.0) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._database = sqlite3.connect(path, isolation_level=None, timeout=lock_timeout_s)
        try:
            self._database.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._database.execute("PRAGMA journal_mode=WAL")
            self._database.execute("PRAGMA synchronous=FULL")
            self._database.execute("BEGIN IMMEDIATE")
            self._database.execute("COMMIT")
        except sqlite3.OperationalError as error:
            self._database.close()
            raise Refused(f"{path} is in use by another agent of this node") from error
        self._database.executescript(_TABLES)
        layout = int(self._fact("layout", str(LAYOUT)))
        if layout > LAYOUT:
            raise Refused(f"{path} was written by a newer agent (layout {layout}, this one knows {LAYOUT})")
        self._keep("layout", str(LAYOUT))
        self._reserved = self._sequence = max(int(self._fact("sequence", "0")), self._outbox_top())
        self._age = int(self._database.execute("SELECT coalesce(max(age), 0) FROM slots").fetchone()[0])

    def members(self) -> list[Held]:
        """Every member held, in order of key."""
        rows = self._database.execute("SELECT body FROM held ORDER BY key").fetchall()
        return [Held.model_validate_json(body) for (body,) in rows]

    def newest(self) -> dict[str, int]:
        """slot → highest attempt applied."""
        return dict(self._database.execute("SELECT slot, attempt FROM slots ORDER BY slot").fetchall())

    def session(self) -> str:
        """The last session's id."""
        return self._fact("session", "")

    def remember_session(self, session: str) -> None:
        """Keep the session's id."""
        self._keep("session", session)

    def reserve_sequence(self) -> int:
        """A new sequence; a block of them is skipped at a restart."""
        self._sequence += 1
        if self._sequence > self._reserved:
            self._reserved = self._sequence + self.BLOCK
            self._keep("sequence", str(self._reserved))
        return self._sequence

    def commit(
        self, *, held: Sequence[Held] = (), forget: Sequence[str] = (), records: Sequence[Outgoing] = ()
    ) -> None:
        """Apply in one transaction."""
        database = self._database
        database.execute("BEGIN IMMEDIATE")
        try:
            for row in held:
                self._age += 1
                database.execute("INSERT OR REPLACE INTO held VALUES (?, ?)", (row.key, row.model_dump_json()))
                database.execute(
                    "INSERT INTO slots VALUES (?, ?, ?) ON CONFLICT (slot) DO UPDATE SET "
                    "attempt = max(attempt, excluded.attempt), age = excluded.age",
                    (row.slot, row.desired.attempt, self._age),
                )
            database.execute("DELETE FROM slots WHERE age <= ?", (self._age - SLOTS_MAX,))
            database.executemany("DELETE FROM held WHERE key = ?", [(key,) for key in forget])
            for record in records:
                database.execute(
                    "INSERT INTO outbox VALUES (?, ?, ?)",
                    (record.sequence, len(record.value), record.model_dump_json()),
                )
            database.execute("COMMIT")
        except BaseException:
            database.execute("ROLLBACK")
            raise
        for record in records:
            self._sequence = max(self._sequence, record.sequence)

    def pending(self, count_max: int, bytes_max: int) -> list[Outgoing]:
        """The oldest records not acknowledged."""
        rows = self._database.execute(
            "SELECT size, body FROM outbox ORDER BY sequence LIMIT ?", (count_max,)
        ).fetchall()
        found: list[Outgoing] = []
        total = 0
        for size, body in rows:
            total += size
            if found and total > bytes_max:
                break
            found.append(Outgoing.model_validate_json(body))
        return found

    def pending_count(self) -> int:
        """How many wait."""
        return int(self._database.execute("SELECT count(*) FROM outbox").fetchone()[0])

    def acknowledge(self, sequence: int) -> None:
        """Drop up to this sequence."""
        self._database.execute("DELETE FROM outbox WHERE sequence <= ?", (sequence,))

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _outbox_top(self) -> int:
        return int(self._database.execute("SELECT coalesce(max(sequence), 0) FROM outbox").fetchone()[0])

    def _fact(self, name: str, default: str) -> str:
        row = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return str(row[0]) if row is not None else default

    def _keep(self, name: str, value: str) -> None:
        self._database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))
