"""The `evenflow` command as a user runs it: processes, files, output, exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
COMMAND = (sys.executable, "-c", "from evenflow.cli.main import run; run()")
READY_S = 60.0


def surroundings(**more: str) -> dict[str, str]:
    """The environment of a command: this repository's code, and no setting from outside."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EVENFLOW_")}
    paths = [str(ROOT / "libs"), str(ROOT / "services")]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1", **more}


@dataclass
class Done:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def evenflow(*arguments: str, given: bytes = b"", timeout_s: float = 60.0, **environment: str) -> Done:
    """Run a command to its end."""
    ran = subprocess.run(
        [*COMMAND, *arguments],
        input=given,
        capture_output=True,
        timeout=timeout_s,
        env=surroundings(**environment),
        check=False,
    )
    return Done(ran.returncode, ran.stdout.decode(), ran.stderr.decode())


class Dev:
    """`evenflow dev` as a process of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self._arguments = arguments
        self.environment: dict[str, str] = {}
        self.process: subprocess.Popen[bytes] | None = None
        self.url = self.gateway_url = self.token = ""
        self.ready_s = 0.0

    def start(self, *more: str) -> None:
        """Start it and wait until it says that it is ready."""
        output = self.folder / "dev.out"
        begun = time.monotonic()
        with output.open("wb") as out, (self.folder / "dev.err").open("wb") as err:
            self.process = subprocess.Popen(
                [*COMMAND, "dev", "--port", "0", "--gateway-port", "0", *self._arguments, *more],
                stdout=out,
                stderr=err,
                env=surroundings(**self.environment),
            )
        while "Ctrl-C stops it" not in output.read_text():
            if self.process.poll() is not None or time.monotonic() - begun > READY_S:
                pytest.fail(f"dev did not start: {(self.folder / 'dev.err').read_text()[-2000:]}")
            time.sleep(0.05)
        self.ready_s = time.monotonic() - begun
        text = output.read_text()
        self.url = re.findall(r"ready: (http://\S+)/api/v1", text)[0]
        self.gateway_url, self.token = re.findall(r"--url (\S+) --token (\S+)", text)[0]

    def run(self, *arguments: str, given: bytes = b"", **environment: str) -> Done:
        """A command against it."""
        return evenflow(*arguments, given=given, EVENFLOW_URL=self.url, **environment)

    def until(self, what: str, check: Any, timeout_s: float = 60.0) -> Any:
        """Ask again until the answer is right; the right answer."""
        ends = time.monotonic() + timeout_s
        while True:
            found = check()
            if found:
                return found
            if time.monotonic() > ends:
                pytest.fail(f"{what} did not happen within {timeout_s} s")
            time.sleep(0.2)

    def memory_mib(self) -> float:
        """The most it ever held."""
        assert self.process is not None
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024

    def kill(self) -> None:
        """As a power cut does."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Tell it to end; its exit code and how long it took."""
        assert self.process is not None
        begun = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(30)
        return code, time.monotonic() - begun


@pytest.fixture
def command() -> Any:
    return evenflow


@pytest.fixture
def new_dev(tmp_path: Path) -> Iterator[Any]:
    """Makes development servers that are gone when the test ends."""
    made: list[Dev] = []

    def make(*arguments: str) -> Dev:
        made.append(Dev(tmp_path, *arguments))
        return made[-1]

    yield make
    for dev in made:
        if dev.process is not None and dev.process.poll() is None:
            dev.process.kill()
            dev.process.wait(10)


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    """One server for the tests of a module, without load."""
    served = Dev(tmp_path_factory.mktemp("dev"), "--no-load")
    served.start()
    yield served
    if served.process is not None and served.process.poll() is None:
        served.stop()


class Agent:
    """`evenflow agent` as a process of its own."""

    def __init__(self, dev: Dev, node: str, folder: Path, log: Path) -> None:
        arguments = ["agent", "--url", dev.gateway_url, "--token", dev.token, "--node", node, "--site", "east"]
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [*COMMAND, *arguments, "--data", str(folder)],
                stdout=out,
                stderr=subprocess.STDOUT,
                env=surroundings(),
            )

    def kill(self) -> None:
        """As a crash does."""
        self.process.kill()
        self.process.wait(10)


@pytest.fixture
def new_agent(tmp_path: Path) -> Iterator[Any]:
    """Starts agents that are gone when the test ends."""
    made: list[Agent] = []

    def make(dev: Dev, node: str) -> Agent:
        made.append(Agent(dev, node, tmp_path / "machines" / node, tmp_path / f"{node}.log"))
        return made[-1]

    yield make
    for agent in made:
        if agent.process.poll() is None:
            agent.kill()
