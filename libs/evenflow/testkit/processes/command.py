"""What `python -m evenflow.testkit.processes` does, on local servers of its own in a fresh folder.

takeover --count N   end the leader N times, half of them killed; 1 when a take-over breaks its limit
zombie               let a leader stand still in a round while another takes over; 1 when it does any harm
faults               do harm to services, servers and stores under load, one row after another; 1 for any bad row
                     --full all rows, --only TEXT those whose names hold it, --flight N tasks in flight
upgrade              replace services of an earlier revision one by one under load; 1 when anything is parked or lost
                     --rev REV the revision (default: see upgrade.earlier_revision), --flight N tasks in flight

rebuild-archive      let the ledger expire from the log, lose every view, compare what comes back; 1 for any difference
                     --flight N tasks

--json               the figures as one object (before the command)
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from evenflow.core.errors import EvenflowError
from evenflow.platform.clock import SystemClock
from evenflow.testkit.processes.faults.running import Report, chosen_rows, try_rows
from evenflow.testkit.processes.rebuild import Rebuilt, rebuild
from evenflow.testkit.processes.take_over import KILL_LIMIT_MS, STOP_LIMIT_MS, TakeOvers, take_overs
from evenflow.testkit.processes.upgrade import Upgrade, earlier_revision, upgrade
from evenflow.testkit.processes.zombie import Zombie, zombie
from evenflow.testkit.servers.addresses import NEEDED
from evenflow.testkit.servers.local import LocalServers

TASKS_REBUILT: Final = 100
FLIGHT_FULL: Final = 2_000
FLIGHT_BRIEF: Final = 500

Found = TakeOvers | Zombie | Report | Upgrade | Rebuilt


def main(arguments: Sequence[str]) -> int:
    """Measure; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m evenflow.testkit.processes", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("takeover").add_argument("--count", type=int, default=20)
    commands.add_parser("zombie")
    faults = commands.add_parser("faults")
    faults.add_argument("--full", action="store_true")
    faults.add_argument("--only", action="append", default=[])
    faults.add_argument("--flight", type=int, default=0)
    upgrading = commands.add_parser("upgrade")
    upgrading.add_argument("--rev", default="")
    upgrading.add_argument("--flight", type=int, default=FLIGHT_BRIEF)
    commands.add_parser("rebuild-archive").add_argument("--flight", type=int, default=TASKS_REBUILT)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    try:
        return asyncio.run(_run(chosen))
    except EvenflowError as error:
        _say(f"error: {error}")
        return 1


async def _run(chosen: argparse.Namespace) -> int:
    root = Path.cwd()
    cache = root / ".cache"
    cache.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="processes-", dir=cache))
    try:
        found = await _found(chosen, root, folder)
    except EvenflowError:
        _say(f"logs and data are in {folder}")
        raise
    _print(json.dumps({**asdict(found), "complaints": found.complaints}) if chosen.json else _report(found))
    if found.complaints:
        _say(f"logs and data are in {folder}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


async def _found(chosen: argparse.Namespace, root: Path, folder: Path) -> Found:
    if chosen.command == "rebuild-archive":
        return await rebuild(chosen.flight, root, folder, SystemClock(), _say)
    if chosen.command == "faults":
        return await _faults(chosen, root, folder)
    if chosen.command == "upgrade":
        revision = chosen.rev or earlier_revision(root)
        return await upgrade(revision, chosen.flight, root, folder, SystemClock(), _say)
    return await _deciders(chosen, root, folder)


async def _faults(chosen: argparse.Namespace, root: Path, folder: Path) -> Report:
    rows = chosen_rows(full=chosen.full or bool(chosen.only), names=chosen.only)
    flight = chosen.flight or (FLIGHT_FULL if chosen.full else FLIGHT_BRIEF)
    return await try_rows(rows, flight, root, folder, SystemClock(), _say)


async def _deciders(chosen: argparse.Namespace, root: Path, folder: Path) -> TakeOvers | Zombie:
    clock = SystemClock()
    servers = LocalServers(root, folder / "servers", clock, _say, tied=True)
    try:
        environment = (await servers.start(NEEDED)).host_environment()
        if chosen.command == "takeover":
            return await take_overs(chosen.count, folder, environment, clock, _say)
        return await zombie(folder, environment, clock, _say)
    finally:
        await servers.stop()


def _report(found: Found) -> str:
    if isinstance(found, Upgrade):
        rows = found.rows()
    elif isinstance(found, Rebuilt):
        rows = found.table()
    elif isinstance(found, Report):
        rows = [
            f"{one.recovered_ms:>8} ms  {one.group:<10}  {one.name}" + (f"  {one.complaint}" if one.complaint else "")
            for one in found.results
        ]
        rows += [f"left at the end: {found.left}", *found.audits]
    elif isinstance(found, Zombie):
        rows = [
            f"it said: {found.said}",
            f"exit code {found.exit_code}",
            f"rounds of epoch {found.epoch} committed after its successor's first: {found.late_rounds}",
            f"{found.tasks} tasks, {len(found.assigned_twice)} assigned twice",
        ]
    else:
        rows = [
            _span("kill -9", found.killed_ms, KILL_LIMIT_MS),
            _span("stop", found.stopped_ms, STOP_LIMIT_MS),
            f"{found.tasks} tasks over {found.epochs} epochs, {len(found.assigned_twice)} assigned twice",
        ]
    return "\n".join([*rows, *(f"FAILS: {complaint}" for complaint in found.complaints)])


def _span(name: str, times_ms: list[int], limit_ms: int) -> str:
    if not times_ms:
        return f"{name}: none"
    middle = sorted(times_ms)[len(times_ms) // 2]
    return f"{name}: {len(times_ms)} times, median {middle} ms, longest {max(times_ms)} ms (at most {limit_ms})"


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
