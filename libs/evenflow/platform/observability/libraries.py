"""What client libraries log, as lines of the process's own log: warnings and worse, each text once in a while.

A client that can't reach its server says so many times a second; one line in ten seconds tells as much. All are
warnings here: what a client calls an error it mostly tries again, and what it can't mend comes out of the call.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from evenflow.platform.clock import Clock

QUIET_MS: Final = 10_000
TEXTS_REMEMBERED_MAX: Final = 500
TEXT_CHARACTERS_MAX: Final = 500


class LibraryLines(logging.Handler):
    """A handler for the root logger of a process."""

    def __init__(self, log: Any, clock: Clock) -> None:
        super().__init__(logging.WARNING)
        self._log = log
        self._clock = clock
        self._said_ms: dict[str, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Say it, unless the same was said a moment ago."""
        text = record.getMessage()[:TEXT_CHARACTERS_MAX]
        now_ms = self._clock.monotonic_ms()
        said_ms = self._said_ms.get(text)
        if said_ms is not None and now_ms - said_ms < QUIET_MS:
            return
        if len(self._said_ms) >= TEXTS_REMEMBERED_MAX:
            self._said_ms.clear()
        self._said_ms[text] = now_ms
        error = record.exc_info[1] if record.exc_info else None
        self._log.warning(
            "library said", library=record.name.split(".")[0], text=text, **({"exc_info": error} if error else {})
        )


def hear_libraries(log: Any, clock: Clock) -> None:
    """From now on what libraries log comes out of `log`. Once a process, by whoever hosts it."""
    logging.getLogger().handlers[:] = [LibraryLines(log, clock)]
