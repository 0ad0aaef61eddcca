"""What client libraries log comes out of the process's own log, without repetition."""

from __future__ import annotations

import json
import logging

from evenflow.platform.observability.libraries import QUIET_MS, LibraryLines
from evenflow.platform.observability.logs import make_log


class Hand:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.at_ms = 1_000

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic_ms(self) -> int:
        return self.at_ms

    async def sleep(self, seconds: float) -> None: ...


def test_warnings_become_lines_once_in_ten_seconds_and_secrets_stay_hidden() -> None:
    """A client without a server repeats itself; its text passes the same door as every other line."""
    lines: list[str] = []
    clock = Hand()
    log = make_log(service="placement", instance="p", clock=clock, write=lines.append)
    logger = logging.Logger("aiokafka.conn")  # noqa: LOG001  of this test alone
    logger.addHandler(LibraryLines(log, clock))
    for _ in range(50):
        logger.warning("no server at %s", "mongodb://user:geheim@host/db")
    logger.info("nothing to see")
    clock.at_ms += QUIET_MS
    logger.warning("no server at %s", "mongodb://user:geheim@host/db")
    logger.error("a task of the client ended", exc_info=ValueError("broken"))
    found = [json.loads(line) for line in lines]
    assert [(row["level"], row["event"], row["library"]) for row in found] == [
        ("warning", "library said", "aiokafka"),
        ("warning", "library said", "aiokafka"),
        ("warning", "library said", "aiokafka"),
    ]
    assert found[2]["error"] == "ValueError"
    assert "geheim" not in "".join(lines)
