"""Fail points inside the file log: every step of every kind of change, of checkpoints, of opening and of closing.

A point is `kind/step`, as `commit/after-records`. The process kills itself at the n-th visit of one point. Steps that
are one call into SQLite, named `in-…`, are hit from outside: the process says that it enters, and is shot soon after.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from evenflow.platform.broker.embedded.storage.port import Change, Loaded
from evenflow.platform.broker.embedded.storage.sqlite import FileStorage

#: How a statement of a change is called.
STATEMENTS = {
    "insert into record": "records",
    "insert or replace into committed": "offsets",
    "insert into opened": "opened",
    "delete from opened": "ended",
    "update record set kind": "aborted",
    "insert or replace into identity": "identities",
    "insert or replace into topic": "topics",
    "insert into part": "partitions",
    "insert or replace into part": "partitions",
    "delete from record where id>=": "trimmed",
    "update part": "places",
    "delete from record where id=?": "compacted",
}


class Points:
    """Counts visits, and ends the process at one of them. `entered` is the descriptor that asks to be shot."""

    def __init__(self, target: str, hit: int, entered: int) -> None:
        self.target, self.hit, self.entered = target, hit, entered
        self.kind = ""
        self.visits: dict[str, int] = {}

    def reach(self, name: str) -> None:
        if self._is_here(name):
            os.kill(os.getpid(), signal.SIGKILL)

    @contextlib.contextmanager
    def inside(self, name: str) -> Iterator[None]:
        if self._is_here(name):
            os.write(self.entered, b"!")
        yield

    def _is_here(self, name: str) -> bool:
        self.visits[name] = self.visits.get(name, 0) + 1
        return name == self.target and self.visits[name] == self.hit


class Dying(sqlite3.Connection):
    """A connection that visits the points around each of its calls."""

    points: Points

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        points = self.points
        if sql == "begin immediate":
            points.reach(f"{points.kind}/before-begin")
            cursor = super().execute(sql, *values)
            points.reach(f"{points.kind}/after-begin")
            return cursor
        if sql == "commit":
            with self._around(points.kind, "commit"):
                return super().execute(sql, *values)
        if sql.startswith("pragma wal_checkpoint"):
            with self._around("checkpoint", sql[22:-1]):
                return super().execute(sql, *values)
        if sql.startswith("pragma journal_mode"):
            with self._around("open", "recovery"):
                return super().execute(sql, *values)
        return super().execute(sql, *values)

    @contextlib.contextmanager
    def _around(self, kind: str, step: str) -> Iterator[None]:
        self.points.reach(f"{kind}/before-{step}")
        with self.points.inside(f"{kind}/in-{step}"):
            yield
        self.points.reach(f"{kind}/after-{step}")

    def executemany(self, sql: str, values: Any) -> sqlite3.Cursor:
        cursor = super().executemany(sql, values)
        name = next(name for text, name in STATEMENTS.items() if sql.startswith(text))
        self.points.reach(f"{self.points.kind}/after-{name}")
        return cursor

    def executescript(self, sql: str) -> sqlite3.Cursor:
        cursor = super().executescript(sql)
        self.points.reach("open/after-schema")
        return cursor


class DyingStorage(FileStorage):
    """The product's storage, told what kind of change it writes. The target `torn/between` makes it tear commits."""

    def __init__(self, *given: Any, points: Points, **more: Any) -> None:
        self._points = points
        self._starts: dict[int, int] = {}
        super().__init__(*given, **more)

    def load(self) -> Loaded:
        loaded = super().load()
        self._starts = {stored.partition_id: stored.start_offset for stored in loaded.partitions}
        self._points.reach("open/after-load")
        return loaded

    def write(self, change: Change) -> None:
        self._points.kind = kind = self._kind(change)
        if kind == "commit" and change.offsets and self._points.target == "torn/between":
            super().write(replace(change, records=[], ended=[]))
            self._points.reach("torn/between")
            change = replace(change, offsets=[])
        super().write(change)
        self._points.reach(f"{kind}/before-answer")

    def close(self) -> None:
        self._points.reach("close/before")
        super().close()
        self._points.reach("close/after")

    def _kind(self, change: Change) -> str:
        if change.topics:
            return "topics"
        if change.compacted:
            return "compaction"
        if change.trimmed:
            return "trim" if self._trims(change) else "archived"
        if change.ended:
            return ("time-out" if change.identities else "abort") if change.aborted else "commit"
        if change.identities:
            return "fence"
        if change.opened:
            return "opening"
        if any(record.transaction is not None for _, record in change.records):
            return "round"
        return "append" if change.records else "offsets"

    def _trims(self, change: Change) -> bool:
        (stored,) = change.trimmed
        before = self._starts.get(stored.partition_id, 0)
        self._starts[stored.partition_id] = stored.start_offset
        return stored.start_offset > before
