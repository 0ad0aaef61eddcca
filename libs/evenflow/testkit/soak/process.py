"""`evenflow dev` and an agent as processes of the soak's own, started, looked at and ended by their ids."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evenflow.platform.clock import Clock

READY_S: Final = 120.0
STOP_S: Final = 30.0
LOOK_S: Final = 0.1
#: Bounds that are reached within a minute, so that growth after the warm-up is growth without a bound.
SMALL_BOUNDS: Final[dict[str, str]] = {
    "EVENFLOW_HOST_LOG_CACHE_BYTES": "1048576",
    "EVENFLOW_CONSOLE_ENDED_TASK_COUNT_MAX": "20",
    "EVENFLOW_CONSOLE_LEDGER_ENTRY_COUNT_MAX": "100",
    "EVENFLOW_CONSOLE_EVENT_COUNT_MAX": "200",
    "EVENFLOW_CONSOLE_CHANGE_COUNT_MAX": "100",
    "EVENFLOW_CONSOLE_ROUND_COUNT_MAX": "50",
    "EVENFLOW_CONSOLE_COURSE_ENTRY_COUNT_MAX": "100",
    "EVENFLOW_GATEWAY_TOMBSTONES_PER_NODE_MAX": "20",
    "EVENFLOW_PLACEMENT_ENDED_TASKS_MAX": "20",
    "EVENFLOW_PLACEMENT_REPLAY_WINDOW_COUNT": "64",
    "EVENFLOW_BILLING_ENTRY_RETENTION_MS": "15000",
}


@dataclass(slots=True)
class Running:
    """A process and what it wrote."""

    process: asyncio.subprocess.Process
    output: Path
    errors: Path

    @property
    def pid(self) -> int:
        """Its id."""
        return self.process.pid

    @property
    def lives(self) -> bool:
        """Whether it has not ended."""
        return self.process.returncode is None

    def said(self) -> str:
        """Its output."""
        return self.output.read_text(encoding="utf-8", errors="replace")

    def complained(self) -> list[str]:
        """Lines of its error output."""
        return self.errors.read_text(encoding="utf-8", errors="replace").splitlines()

    def memory_bytes(self) -> int:
        """Resident memory."""
        rows = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(row.split()[1]) * 1024 for row in rows if row.startswith("VmRSS"))

    def descriptors(self) -> int:
        """Open files and sockets."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def tell(self, number: signal.Signals) -> None:
        """Send a signal, if it lives."""
        if self.lives:
            self.process.send_signal(number)

    async def end(self) -> int:
        """Ask it to stop, insist after a while; its exit code."""
        self.tell(signal.SIGCONT)
        self.tell(signal.SIGINT)
        try:
            async with asyncio.timeout(STOP_S):
                return await self.process.wait()
        except TimeoutError:
            self.tell(signal.SIGKILL)
            return await self.process.wait()


async def start(folder: Path, name: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Running:
    """`evenflow …` with its output in files of the folder."""
    output, errors = folder / f"{name}.out", folder / f"{name}.err"
    own = {key: value for key, value in os.environ.items() if not key.startswith("EVENFLOW_")}
    with output.open("ab") as out, errors.open("ab") as err:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "evenflow.cli", *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=err,
            env={**own, "PYTHONUNBUFFERED": "1", **(environment or {})}, start_new_session=True,
        )  # fmt: skip
    return Running(process, output, errors)


@dataclass(slots=True)
class Dev:
    """A ready `evenflow dev` with its addresses."""

    running: Running
    console: str
    gateway: str
    token: str


async def start_dev(folder: Path, clock: Clock, seed: int) -> Dev:
    """Start it on free ports with everything under the folder. Raises RuntimeError when it is not ready in time."""
    running = await start(
        folder, "dev", "dev", "--port", "0", "--gateway-port", "0", "--data", str(folder / "data"), "--seed", str(seed),
        environment=SMALL_BOUNDS,
    )  # fmt: skip
    until_ms = clock.monotonic_ms() + round(READY_S * 1000)
    while clock.monotonic_ms() < until_ms and running.lives:
        told = re.search(r"agent --url (\S+) --token (\S+)", running.said())
        console = re.search(r"ready: (http://[^/]+)/", running.said())
        if told is not None and console is not None:
            return Dev(running, console[1], told[1], told[2])
        await clock.sleep(LOOK_S)
    code = await running.end()
    raise RuntimeError(f"evenflow dev was not ready within {READY_S} s (exit {code}): {running.complained()[-3:]}")
