"""What `python -m evenflow.testkit.soak` does: run, watch, judge; 1 when a bound breaks.

--minutes N   of load and faults (default 10); the first third, at most three minutes, is warm-up
--seed N      of load and faults (default 1)
--keep DIR    keep the process's folder there
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Final

from evenflow.platform.clock import SystemClock
from evenflow.testkit.soak.faults import Faults
from evenflow.testkit.soak.figures import MB, Sample, broken, descriptors_growth, slope_mb_per_minute
from evenflow.testkit.soak.log_file import LogFile
from evenflow.testkit.soak.process import SMALL_BOUNDS, Dev, start_dev

SAMPLE_S: Final = 10.0
SAMPLE_SHORT_S: Final = 2.0
WARM_UP_S_MAX: Final = 180.0
DRAINED_WITHIN_S: Final = 60.0
COMPLAINTS_SHOWN_MAX: Final = 5


def say(text: str) -> None:
    """A line, at once."""
    print(text, flush=True)  # noqa: T201  the command's own output


class Soak:
    """One run."""

    def __init__(self, dev: Dev, folder: Path, clock: SystemClock, minutes: float, seed: int) -> None:
        self._dev = dev
        self._clock = clock
        self._log = LogFile(folder / "data")
        self._faults = Faults(dev, folder, clock, seed)
        self._length_s = minutes * 60
        self._warm_up_s = min(WARM_UP_S_MAX, self._length_s / 3)
        self._every_s = SAMPLE_S if minutes > 2 else SAMPLE_SHORT_S
        self._begun_ms = clock.monotonic_ms()
        self._lag_max = 0
        self._letters = 0
        self.samples: list[Sample] = []

    @property
    def _at_s(self) -> float:
        return (self._clock.monotonic_ms() - self._begun_ms) / 1000

    async def run(self) -> list[str]:
        """Load and faults for the whole time, then none until everything is read; what is broken."""
        self._faults.start()
        try:
            while self._at_s < self._length_s and self._dev.running.lives:
                await self._clock.sleep(self._every_s)
                if not self._faults.paused:
                    self._look()
        finally:
            await self._faults.stop()
        lag_left = await self._drained() if self._dev.running.lives else 0
        if self._dev.running.lives:
            self._letters = self._log.letters()
        lives = self._dev.running.lives
        self._log.close()
        complaints = self._dev.running.complained()
        judged = [one for one in self.samples if one.at_s >= self._warm_up_s]
        problems = broken(judged, lag_left)
        if not lives:
            problems.append(f"the process ended with {self._dev.running.process.returncode}")
        self._show(judged, lag_left, complaints)
        return problems

    def _look(self) -> None:
        running = self._dev.running
        if not running.lives:
            return
        sample = Sample(self._at_s, running.memory_bytes(), running.descriptors(), self._log.lag(), self._log.done())
        self.samples.append(sample)
        self._lag_max = max(self._lag_max, sample.lag)
        phase = "warm-up" if sample.at_s < self._warm_up_s else "judged"
        say(
            f"{sample.at_s:6.0f} s {phase:8} {sample.memory_bytes / MB:7.1f} MB {sample.descriptors:4} descriptors"
            f" lag {sample.lag:4} {sample.done:6} tasks ended, {sum(self._faults.count.values())} faults and requests"
        )

    async def _drained(self) -> int:
        """The lag once it is zero, or what is left after a bounded time; its own gentle load goes on."""
        until_s = self._at_s + DRAINED_WITHIN_S
        least = self._log.lag()
        while least and self._at_s < until_s:
            await self._clock.sleep(0.2)
            least = min(least, self._log.lag())
        return least

    def _show(self, judged: list[Sample], lag_left: int, complaints: list[str]) -> None:
        memory = [one.memory_bytes / MB for one in judged] or [0.0]
        say(f"\nfaults: {', '.join(f'{name} {count}' for name, count in sorted(self._faults.count.items()))}")
        say(f"bounds set low, so that they are reached in the warm-up: {', '.join(sorted(SMALL_BOUNDS))}")
        say(f"memory after the warm-up of {self._warm_up_s:.0f} s: {min(memory):.1f} to {max(memory):.1f} MB")
        say(f"memory slope:       {slope_mb_per_minute(judged):+.3f} MB a minute over {len(judged)} samples")
        say(f"descriptors growth: {descriptors_growth(judged):+d}")
        say(f"lag: at most {self._lag_max}, {lag_left} left; {self._letters} records parked")
        say(f"tasks ended: {self.samples[-1].done if self.samples else 0}")
        say(f"lines of complaint: {len(complaints)}")
        for line in complaints[:COMPLAINTS_SHOWN_MAX]:
            say(f"  {line[:300]}")


async def soak(minutes: float, seed: int, folder: Path) -> list[str]:
    """Start, run, end; what is broken."""
    clock = SystemClock()
    dev = await start_dev(folder, clock, seed)
    say(f"evenflow dev is process {dev.running.pid}, seed {seed}, {minutes:g} minutes")
    problems: list[str] = []
    try:
        problems = await Soak(dev, folder, clock, minutes, seed).run()
    finally:
        lived = dev.running.lives
        code = await dev.running.end()
        if lived and code:
            problems.append(f"told to stop, the process ended with {code}")
    return problems


async def _until_told(minutes: float, seed: int, folder: Path) -> list[str]:
    """The soak; a signal ends it early, and its processes with it."""
    running = asyncio.get_running_loop().create_task(soak(minutes, seed, folder))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    return await running


def main(arguments: list[str]) -> int:
    """The whole run."""
    parser = argparse.ArgumentParser(prog="evenflow.testkit.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=None)
    chosen = parser.parse_args(arguments)
    folder = chosen.keep or Path(tempfile.mkdtemp(prefix="evenflow-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        problems = asyncio.run(_until_told(chosen.minutes, chosen.seed, folder))
    except asyncio.CancelledError:
        problems = ["told to stop before its time"]
    finally:
        if chosen.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    for problem in problems:
        say(f"PROBLEM {problem}")
    say("soak: nothing found" if not problems else f"soak: {len(problems)} problems")
    return 1 if problems else 0
