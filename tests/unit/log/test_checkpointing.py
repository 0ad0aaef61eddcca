"""The file beside the log's database stays short, whoever reads it."""

from __future__ import annotations

import sqlite3
import time

import pytest

from evenflow.platform.broker.embedded.storage import checkpointing
from evenflow.platform.broker.embedded.storage.checkpointing import PAGE_BYTES, Checkpointer

ROUNDS = 400
BLOB = b"x" * 40_000


@pytest.fixture
def writer(tmp_path):
    """A database in the mode of the log."""
    database = sqlite3.connect(tmp_path / "log.sqlite", isolation_level=None)
    database.execute("pragma journal_mode=wal")
    database.execute("pragma wal_autocheckpoint=0")
    database.execute("create table record(id integer primary key, value blob)")
    yield database
    database.close()


def write(database: sqlite3.Connection, keeper: Checkpointer, count: int = ROUNDS) -> None:
    """Commit one after another, as the log does."""
    for _ in range(count):
        database.execute("insert into record(value) values(?)", (BLOB,))
        keeper.wrote(len(BLOB) // PAGE_BYTES + 1)
        time.sleep(0.0005)  # The log's writer does other things between two commits.


def test_the_file_stays_short_under_steady_writes(tmp_path, writer, monkeypatch):
    """Proves that 16 MB written leave a file near its bound of 1 MB, and every row in the database."""
    monkeypatch.setattr(checkpointing, "PASS_PAGES", 64)
    monkeypatch.setattr(checkpointing, "LENGTH_PAGES_MAX", 256)
    keeper = Checkpointer(tmp_path / "log.sqlite", writer)
    write(writer, keeper)
    keeper.stop()
    assert (tmp_path / "log.sqlite-wal").stat().st_size < 8 * 256 * PAGE_BYTES
    assert writer.execute("select count(*), sum(length(value)) from record").fetchone() == (ROUNDS, ROUNDS * len(BLOB))


def test_a_reader_outside_holds_nobody_up(tmp_path, writer, monkeypatch):
    """Proves that a long read lets the writer go on at once, and that the file is begun anew when it ends."""
    monkeypatch.setattr(checkpointing, "PASS_PAGES", 64)
    monkeypatch.setattr(checkpointing, "LENGTH_PAGES_MAX", 256)
    keeper = Checkpointer(tmp_path / "log.sqlite", writer)
    write(writer, keeper, 10)
    reader = sqlite3.connect(tmp_path / "log.sqlite", isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from record").fetchone()
    began = time.monotonic()
    write(writer, keeper, 100)
    assert time.monotonic() - began < 4.0  # One wait for the reader alone would be SQLite's five seconds.
    assert writer.execute("pragma busy_timeout").fetchone() == (5_000,)
    reader.close()
    held = (tmp_path / "log.sqlite-wal").stat().st_size
    write(writer, keeper, ROUNDS)
    keeper.stop()
    assert (tmp_path / "log.sqlite-wal").stat().st_size < held + 8 * 256 * PAGE_BYTES
