"""Starts writers quickly: everything is imported once, each life is a fork. Reads one order a line, answers with one.

Order: {"folder", "first", "point", "hit", "delay_s", "live_s"}. The point `anywhere` is a shot after `delay_s`; an
empty one lets the writer live for `live_s` and stop by itself. Answer: {"told": [lines], "signal", "visits"}.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import sqlite3
import sys
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any

from tests.contract.log.killing.points import Dying, DyingStorage, Points
from tests.contract.log.killing.writer import Writer

from evenflow.platform.broker.embedded.storage import checkpointing

LIFE_S_MAX = 40.0


def live(order: dict[str, Any], entered: int, report: int) -> None:
    """The child: open the folder, write, and be killed or stop."""
    points = Points(order["point"], order["hit"], entered)
    Dying.points = points
    sqlite3.connect = partial(sqlite3.connect, factory=Dying)
    # Both kinds of checkpoint every few milliseconds instead of every few seconds.
    checkpointing.PASS_PAGES, checkpointing.LENGTH_PAGES_MAX = 12, 60
    folder = Path(order["folder"])

    async def main() -> None:
        storage = DyingStorage(folder, points=points)
        await Writer(folder, storage, points, order["first"]).live(order["live_s"])

    asyncio.run(main())
    os.write(report, json.dumps(points.visits).encode())


def child(order: dict[str, Any], told: int, entered: int, report: int) -> None:
    os.dup2(told, 1)
    try:
        live(order, entered, report)
        code = 0
    except BaseException:  # noqa: BLE001  the child must end here, not go on as its parent
        traceback.print_exc()
        code = 1
    os._exit(code)


def one_life(order: dict[str, Any]) -> dict[str, Any]:
    """Fork, listen, shoot when asked to, and wait for the end."""
    pipes = {name: os.pipe() for name in ("told", "entered", "report")}
    pid = os.fork()
    if pid == 0:
        child(order, *(pipes[name][1] for name in ("told", "entered", "report")))
    for _, end in pipes.values():
        os.close(end)
    open_ends = {reading: name for name, (reading, _) in pipes.items()}
    heard = dict.fromkeys(pipes, b"")
    begun = time.monotonic()
    shot = begun + order["delay_s"] if order["point"] == "anywhere" else begun + LIFE_S_MAX
    while open_ends:
        now = time.monotonic()
        ready, _, _ = select.select(list(open_ends), [], [], max(0.0, shot - now))
        if not ready:
            os.kill(pid, signal.SIGKILL)
            shot = now + LIFE_S_MAX
        for end in ready:
            got = os.read(end, 65_536)
            heard[open_ends[end]] += got
            if got == b"!":
                shot = time.monotonic() + order["delay_s"]
            if not got:
                os.close(end)
                del open_ends[end]
    _, status = os.waitpid(pid, 0)
    return {
        "told": heard["told"].decode().splitlines(),
        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0,
        "visits": json.loads(heard["report"] or b"{}"),
        "late": time.monotonic() - begun > LIFE_S_MAX,
    }


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(json.dumps(one_life(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
