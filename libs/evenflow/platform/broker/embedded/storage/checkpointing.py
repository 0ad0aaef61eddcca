"""Bringing the write-ahead file into the database beside the writer, so that appends don't wait for the disk.

A thread with a connection of its own copies what was written; SQLite lets it do so while the writer goes on. Only the
writer itself can begin the file anew, so once the file is long it does that, with little left to copy.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path
from typing import Final

PAGE_BYTES: Final = 4_096
#: Pages written between two passes of the thread.
PASS_PAGES: Final = 2_000
#: Pages of the write-ahead file at which the writer begins it anew: 64 MiB.
LENGTH_PAGES_MAX: Final = 16_384
#: The thread is always between two short passes; one that takes longer is left to the process's end.
STOP_LIMIT_S: Final = 10.0


class Checkpointer:
    """Keeps the write-ahead file of one database short. The thread begins with the first pass that is due."""

    def __init__(self, path: Path, writer: sqlite3.Connection) -> None:
        self._path = path
        self._writer = writer
        self._written = 0
        self._length = 0
        self._due = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def wrote(self, pages: int) -> None:
        """The writer committed about so many pages. Never fails: what is committed stays."""
        self._written += pages
        if self._written < PASS_PAGES or not self._idle.is_set():
            return
        if self._length > LENGTH_PAGES_MAX:
            self._begin_anew()
        self._written = 0
        self._idle.clear()
        self._due.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="log-checkpoint", daemon=True)
            self._thread.start()

    def _begin_anew(self) -> None:
        """Have the next commit write at the file's beginning; not while somebody outside reads: a later pass does."""
        self._length = 0
        run = self._writer.execute
        with contextlib.suppress(sqlite3.Error):
            (patience_ms,) = run("pragma busy_timeout").fetchone()
            run("pragma busy_timeout=0")
            run("pragma wal_checkpoint(restart)")
            run(f"pragma busy_timeout={patience_ms}")

    def stop(self) -> None:
        """End the thread."""
        self._stopping = True
        self._due.set()
        if self._thread is not None:
            self._thread.join(STOP_LIMIT_S)

    def _work(self) -> None:
        database = sqlite3.connect(self._path, isolation_level=None)
        try:
            while True:
                self._due.wait()
                self._due.clear()
                if self._stopping:
                    return
                try:
                    _, length, _ = database.execute("pragma wal_checkpoint(passive)").fetchone()
                    self._length = length
                except sqlite3.Error:
                    # The writer meets the same trouble in its next commit, and reports it.
                    self._length = LENGTH_PAGES_MAX + 1
                self._idle.set()
        finally:
            database.close()
