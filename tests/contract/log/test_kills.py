"""kill -9 at every fail point of the file log: whatever the moment, nothing acknowledged is lost and nothing half seen.

Each point is hit twice, and moments in between now and then. EVENFLOW_KILLS=N hits each N times.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.log.killing.checking import Told, check

ROOT = Path(__file__).parents[3]
SEED = 20_261_130
ROUNDS = int(os.environ.get("EVENFLOW_KILLS", "2"))
#: A folder grows with every life: after so many the next one begins anew.
LIVES = 12
#: How often a life visits a point at least, in its first moments.
HIT_MAX = 12

AROUND_A_WRITE = ("before-begin", "after-begin", "before-commit", "in-commit", "after-commit", "before-answer")
STATEMENTS = {
    "topics": ("topics", "partitions"),
    "append": ("records", "offsets"),
    "offsets": ("offsets",),
    "opening": ("records", "opened"),
    "round": ("records",),
    "commit": ("records", "offsets", "ended"),
    "abort": ("records", "ended", "aborted"),
    "time-out": ("records", "ended", "aborted", "identities"),
    "fence": ("identities",),
    "archived": ("trimmed", "places"),
    "trim": ("trimmed", "places"),
    "compaction": ("trimmed", "places", "compacted"),
}
ONCE = {"topics", "open", "close"}
POINTS = [
    *(f"{kind}/{step}" for kind in STATEMENTS for step in AROUND_A_WRITE),
    *(f"{kind}/after-{name}" for kind, names in STATEMENTS.items() for name in names),
    *(f"checkpoint/{side}-{mode}" for mode in ("passive", "restart") for side in ("before", "in", "after")),
    *(f"archive/{side}-object" for side in ("before", "in", "after")),
    *(f"open/{step}" for step in ("before-recovery", "in-recovery", "after-recovery", "after-schema", "after-load")),
    *(f"close/{step}" for step in ("before", "after")),
]


class Nursery:
    """A process that starts writers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def life(self, folder: Path, first: int, point: str, hit: int = 1, **more: float) -> dict[str, Any]:
        order = {"folder": str(folder), "first": first, "point": point, "hit": hit, "delay_s": 0.0, "live_s": 20.0}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({**order, **more}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


@contextlib.contextmanager
def nursery() -> Iterator[Nursery]:
    paths = os.pathsep.join((str(ROOT), str(ROOT / "libs")))
    command = [sys.executable, "-m", "tests.contract.log.killing.nursery"]
    environment = {**os.environ, "PYTHONPATH": paths}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    ) as process:
        yield Nursery(process)
        assert process.stdin is not None
        process.stdin.close()


def plan(draws: random.Random) -> list[tuple[str, int]]:
    """(point, visit) of every kill, in a drawn order."""
    kills = [
        (point, 1 if point.split("/")[0] in ONCE else draws.randint(1, 3 if turn == 0 else HIT_MAX))
        for turn in range(ROUNDS)
        for point in POINTS
    ]
    kills += [("anywhere", 1)] * (10 * ROUNDS)
    draws.shuffle(kills)
    return kills


async def test_a_log_killed_at_any_point_keeps_every_promise(tmp_path):
    """Proves durability, atomicity, fencing and cleaning over kills at every point, several lives on each folder."""
    draws = random.Random(SEED)
    killed: Counter[str] = Counter()
    told, folder, lives = Told(), tmp_path / "0", 0
    acknowledged = 0
    with nursery() as writers:
        for number, (point, hit) in enumerate(plan(draws)):
            if lives >= LIVES or point.startswith("topics/"):
                acknowledged += told.count
                told, folder, lives = Told(), tmp_path / str(number), 0
            lives += 1
            delay_s = draws.uniform(0.01, 0.15) if point == "anywhere" else draws.uniform(0.0, 0.0008)
            live_s = 0.05 if point.startswith("close/") else 20.0
            life = await asyncio.to_thread(
                writers.life, folder, lives * 100_000, point, hit, delay_s=delay_s, live_s=live_s
            )
            assert (life["signal"], life["late"]) == (signal.SIGKILL, False), f"{point} at visit {hit}: {life['code']}"
            killed[point] += 1
            told.hear(life["told"])
            try:
                await check(folder, told)
            except AssertionError as error:
                pytest.fail(f"killed at {point}, visit {hit}, life {lives} of {folder.name}: {error}")
    assert set(POINTS) <= set(killed)
    sys.stdout.write(
        f"\n{killed.total()} kills at {len(killed)} points; {acknowledged + told.count} acknowledgements checked\n"
    )


async def test_a_log_that_writes_in_two_steps_is_found_out(tmp_path):
    """Proves that the check can fail: a writer whose commits are torn is caught by a kill between the halves."""
    told = Told()
    with nursery() as writers:
        life = await asyncio.to_thread(writers.life, tmp_path / "data", 100_000, "torn/between", 9)
    assert life["signal"] == signal.SIGKILL
    told.hear(life["told"])
    with pytest.raises(AssertionError):
        await check(tmp_path / "data", told)


async def test_a_writer_that_stops_by_itself_was_at_every_point(tmp_path):
    """Proves that the list of points is what the log really does: none is missing in it and none is never reached."""
    visits: Counter[str] = Counter()
    told = Told()
    with nursery() as writers:
        for life in range(8):
            answer = await asyncio.to_thread(writers.life, tmp_path / "data", (life + 1) * 100_000, "", live_s=0.6)
            assert (answer["signal"], answer["code"]) == (0, 0)
            visits.update(answer["visits"])
            told.hear(answer["told"])
            await check(tmp_path / "data", told)
            if set(visits) >= set(POINTS):
                break
    by_chance = {"opening/after-offsets", "round/after-offsets"}
    assert set(visits) - by_chance == set(POINTS)
