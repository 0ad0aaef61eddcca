"""Trying the rows one after another under load, and what came of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from evenflow.core.errors import EvenflowError
from evenflow.platform.clock import Clock
from evenflow.testkit.processes.faults.harm.row import Row
from evenflow.testkit.processes.faults.rows import ROWS
from evenflow.testkit.processes.faults.world import World

RECOVER_S: Final = 60.0
SETTLE_S: Final = 300.0
#: Tasks in flight work for so long at least, and at most for as long as the rows take.
SHORTEST_S: Final = 20.0
ROW_S: Final = 5.0
AUDIT: Final = Path("tests/integration/audit.py")


@dataclass(frozen=True, slots=True)
class Result:
    """One row: how long from its beginning until a task went through everything again."""

    name: str
    group: str
    recovered_ms: int
    complaint: str = ""


@dataclass
class Report:
    """All rows, and what was left at the end of each world, by its log."""

    results: list[Result] = field(default_factory=list)
    left: dict[str, dict[str, int]] = field(default_factory=dict)
    audits: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


def chosen_rows(*, full: bool, names: Sequence[str] = ()) -> list[Row]:
    """The rows of a run; `names` are parts of names."""
    rows = [row for row in ROWS if full or row.brief]
    return [row for row in rows if not names or any(name in row.name for name in names)]


async def try_rows(
    rows: Sequence[Row], flight: int, root: Path, folder: Path, clock: Clock, say: Callable[[str], None]
) -> Report:
    """Try each, those of one kind of log in one world. Raises Unavailable when a world does not even start."""
    report = Report()
    for log in dict.fromkeys(row.log for row in rows):
        those = [row for row in rows if row.log == log]
        async with World(root, folder / log, clock, say, log) as world:
            await _try(world, those, flight, root, report)
    return report


async def _try(world: World, rows: Sequence[Row], flight: int, root: Path, report: Report) -> None:
    say = world.say
    longest_s = SHORTEST_S + ROW_S * len(rows)
    await world.submit(flight, shortest_s=SHORTEST_S, longest_s=longest_s)
    await world.probe(within_s=RECOVER_S)
    say(f"{flight} tasks in flight")
    for number, row in enumerate(rows, 1):
        result = await _tried(world, row)
        report.results.append(result)
        report.complaints += [f"{row.name}: {result.complaint}"] if result.complaint else []
        say(f"{number} of {len(rows)}: {row.name}: " + (result.complaint or f"well after {result.recovered_ms} ms"))
    left = await world.settled(within_s=SETTLE_S)
    code, audit = await audited(root, world.brokers)
    report.left[world.log] = left
    report.audits.append(audit)
    report.complaints += [f"{count} of {what} left at the end" for what, count in left.items() if count]
    report.complaints += [] if code == 0 else ["the audit found something"]


async def _tried(world: World, row: Row) -> Result:
    began_ms = world.clock.monotonic_ms()
    try:
        await row.do(world)
        await world.probe(within_s=RECOVER_S)
    except (EvenflowError, TimeoutError) as error:
        return Result(row.name, row.group, 0, f"{error or 'nothing went through any more'}")
    return Result(row.name, row.group, world.clock.monotonic_ms() - began_ms)


async def audited(root: Path, brokers: str) -> tuple[int, str]:
    """The audit in a process of its own: it shares nothing with the product."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(root / AUDIT), brokers, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode("utf-8", "replace").strip()
