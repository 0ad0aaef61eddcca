"""A run's output: kept in one bounded file, and sent to the store in chunks so that others can read it.

    logs/<tenant>/<task>/a<attempt>/m<member>/<12 digits: offset of its first byte>

Chunks in order of name are the output; a chunk never changes once it is there. The process writes straight into the
file, so it needs no agent to write; when the file is full its beginning is cut off, whether it was sent or not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from evenflow.agent.executors.run_folder import Noted
from evenflow.agent.ports import Launch
from evenflow.core.errors import EvenflowError
from evenflow.platform.clock import Clock
from evenflow.platform.stores.ports import Objects

CHUNK_BYTES: Final = 256 * 1024
FILE_BYTES_MAX: Final = 16 * 1024 * 1024
SENT_BYTES_MAX: Final = 256 * 1024 * 1024
CHUNKS_PER_TURN: Final = 8
#: Least time between two chunks that are not full; it grows with their number, so that a slow printer makes few.
PERIOD_MS: Final = 500
PERIOD_MS_MAX: Final = 30_000


def log_folder(tenant: str, task: str, attempt: int, member: int) -> str:
    """Where one member's output is, ending in '/'."""
    return f"logs/{tenant}/{task}/a{attempt}/m{member}/"


class OutputLog:
    """Sends one run's output. What it remembers is in the run's notes."""

    def __init__(
        self, path: Path, launch: Launch, noted: Noted, *, clock: Clock, objects: Objects | None, log: Any
    ) -> None:
        self.path = path
        self._folder = log_folder(launch.tenant, launch.task.id, launch.attempt, launch.member)
        self._noted = noted
        self._clock = clock
        self._objects = objects
        self._log = log
        self._due_ms = 0
        self._chunk_count = 0

    async def send(self, *, last: bool = False) -> bool:
        """Send what is new: full chunks at once, less after a while or as the `last`; True when the notes changed.

        A store that is away is tried next time.
        """
        changed = False
        for _ in range(CHUNKS_PER_TURN):
            data = self._read(CHUNK_BYTES)
            due = last or len(data) == CHUNK_BYTES or self._clock.monotonic_ms() >= self._due_ms
            if not data or not due or self._noted.sent >= SENT_BYTES_MAX:
                break
            if self._objects is not None:
                try:
                    await self._objects.put(f"{self._folder}{self._noted.sent:012d}", data)
                except EvenflowError as error:
                    self._log.debug("output not sent", path=self._folder, problem=error.message)
                    break
            self._noted.sent += len(data)
            self._chunk_count += 1
            self._due_ms = self._clock.monotonic_ms() + min(PERIOD_MS_MAX, PERIOD_MS + 10 * self._chunk_count)
            changed = True
        return self._bound() or changed

    def _read(self, size: int) -> bytes:
        try:
            with self.path.open("rb") as source:
                source.seek(max(0, self._noted.sent - self._noted.base))
                return source.read(size)
        except OSError:
            return b""

    def _bound(self) -> bool:
        """Empty the file when it is full; the process appends, so it goes on at the beginning."""
        try:
            size = self.path.stat().st_size
            if size < FILE_BYTES_MAX:
                return False
            with self.path.open("r+b") as file:
                file.truncate(0)
        except OSError:
            return False
        self._noted.base += size
        self._noted.sent = max(self._noted.sent, self._noted.base)
        return True
