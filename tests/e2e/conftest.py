"""Whole processes: `evenflow dev`, agents and the command line, started, watched and ended by their own ids.

Every process started here is ended here, by its id; ports are free ones; folders are the test's own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]
EVENFLOW = (sys.executable, "-m", "evenflow.cli")
READY_S = 30.0
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("EVENFLOW_")},
    "PYTHONPATH": f"{ROOT / 'libs'}{os.pathsep}{ROOT / 'services'}",
    "PYTHONUNBUFFERED": "1",
}
#: What is an age, and nothing else: how long ago, and the moments from which that is counted anew at each reading.
AGES = re.compile(r"^(as_of_ms|.*age_ms|for_ms|.*_ago_ms)$")


def until(what: str, look: Callable[[], Any], *, within_s: float = 20.0, every_s: float = 0.1) -> Any:
    """The first true answer; fails with `what` and the last answer when there is none in time."""
    end = time.monotonic() + within_s
    while True:
        answer = look()
        if answer:
            return answer
        if time.monotonic() > end:
            pytest.fail(f"{what}: not within {within_s} s; last seen {answer!r}")
        time.sleep(every_s)


def without_ages(value: Any) -> Any:
    """The same JSON without ages. A node's live load was taken at a moment, which is the age of that load."""
    if isinstance(value, dict):
        kept = {name: without_ages(each) for name, each in value.items() if not AGES.match(name)}
        if isinstance(kept.get("load"), dict):
            kept["load"].pop("time_ms")
        return kept
    return [without_ages(each) for each in value] if isinstance(value, list) else value


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Where two JSON values differ, by path."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted({*one, *other})
        return [found for name in names for found in differences(one.get(name), other.get(name), f"{path}.{name}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [found for index, (a, b) in pairs for found in differences(a, b, f"{path}[{index}]")]
    return [] if one == other else [f"{path}: {str(one)[:300]} != {str(other)[:300]}"]


@dataclasses.dataclass
class Started:
    """A process of the test's own, with its output in files."""

    process: subprocess.Popen[bytes]
    output: Path
    errors: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def complained(self) -> str:
        return self.errors.read_text(errors="replace")

    def lives(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """At once, with no chance to tidy up."""
        self.process.kill()
        self.process.wait(10)

    def end(self) -> int:
        """As a person would: ask it to stop, and give its exit code."""
        if self.lives():
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.kill()
        return self.process.wait(10)

    def cpu_s(self) -> float:
        """Processor time it took so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss_bytes(self) -> int:
        """What it holds in memory."""
        rows = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(row.split()[1]) * 1024 for row in rows if row.startswith("VmRSS"))


@dataclasses.dataclass
class Dev(Started):
    """A ready `evenflow dev`."""

    console: str = ""
    gateway: str = ""
    token: str = ""
    ready_s: float = 0.0
    ready_cpu_s: float = 0.0
    client: httpx.Client = dataclasses.field(default_factory=lambda: httpx.Client(timeout=30, trust_env=False))

    def api(self, method: str, path: str, **more: Any) -> httpx.Response:
        """One request to the console."""
        return self.client.request(method, f"{self.console}{path}", **more)

    def get(self, path: str, **query: Any) -> Any:
        """A good answer's JSON."""
        answer = self.api("GET", path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def task(self, name: str) -> Any:
        """A task's whole status."""
        return self.get(f"/api/v1/tasks/{name}")

    def until_task(self, name: str, is_so: Callable[[Any], bool], *, within_s: float = 20.0) -> Any:
        """The task's status once it is so."""

        def look() -> Any:
            status = self.task(name)
            return status if is_so(status) else None

        return until(f"task {name}", look, within_s=within_s)


class Processes:
    """Starts processes and remembers them, so that none stays."""

    until = staticmethod(until)
    without_ages = staticmethod(without_ages)
    differences = staticmethod(differences)

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._all: list[Started] = []
        self._clients: list[httpx.Client] = []

    def start(self, *arguments: str, name: str, **environment: str) -> Started:
        """`evenflow …` in the background."""
        number = len(self._all)
        output, errors = (self.folder / f"{number}-{name}.{end}" for end in ("out", "err"))
        with output.open("wb") as out, errors.open("wb") as err:
            process = subprocess.Popen(
                [*EVENFLOW, *arguments], stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                env={**ENVIRONMENT, **environment}, cwd=self.folder, start_new_session=True,
            )  # fmt: skip
        started = Started(process, output, errors)
        self._all.append(started)
        return started

    def dev(self, *arguments: str, **environment: str) -> Dev:
        """A ready `evenflow dev` on free ports."""
        begun = time.monotonic()
        started = self.start("dev", "--port", "0", "--gateway-port", "0", *arguments, name="dev", **environment)

        def look() -> Any:
            assert started.lives(), started.complained()
            return re.search(r"agent --url (\S+) --token (\S+)", started.said())

        told = until("evenflow dev is ready", look, within_s=READY_S, every_s=0.02)
        ready_s = time.monotonic() - begun
        console = re.search(r"ready: (http://[^/]+)/", started.said())
        assert console is not None
        dev = Dev(
            started.process, started.output, started.errors, console[1], gateway=told[1], token=told[2],
            ready_s=ready_s, ready_cpu_s=started.cpu_s(),
        )  # fmt: skip
        self._clients.append(dev.client)
        return dev

    def run(self, *arguments: str, code: int = 0, stdin: bytes = b"") -> str:
        """`evenflow …` to its end; its output."""
        done = subprocess.run(
            [*EVENFLOW, *arguments], capture_output=True, check=False, env=ENVIRONMENT, cwd=self.folder, input=stdin,
            timeout=60,
        )  # fmt: skip
        assert done.returncode == code, (arguments, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return (done.stdout if code == 0 else done.stderr).decode()

    def json(self, *arguments: str) -> Any:
        """`evenflow … -o json`, read."""
        return json.loads(self.run(*arguments, "-o", "json"))

    def pages(self, *arguments: str) -> Any:
        """A listing by all its pages: the items of all, the rest of the first page."""
        page = self.json(*arguments, "--limit", "500")
        whole = dict(page)
        while page.get("next"):
            page = self.json(*arguments, "--limit", "500", "--after", page["next"])
            whole["items"] = whole["items"] + page["items"]
        return whole | {"next": ""}

    def end_all(self) -> None:
        """End whatever lives, agents' tasks too: they are in sessions of their own."""
        for client in self._clients:
            client.close()
        for one in reversed(self._all):
            if one.lives():
                with contextlib.suppress(ProcessLookupError):
                    one.process.send_signal(signal.SIGTERM)
        for one in reversed(self._all):
            try:
                one.process.wait(10)
            except subprocess.TimeoutExpired:
                one.kill()
        for pid in working_in(self.folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def working_in(folder: Path) -> list[int]:
    """Processes that work in a folder of the test's own: tasks, which outlive their agents on purpose."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "cwd").readlink().is_relative_to(folder):
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


@contextlib.contextmanager
def a_folder_and_its_processes() -> Iterator[Processes]:
    """A short path of the test's own, and everything that is started in it; nothing of it outlives the test."""
    made = Processes(Path(tempfile.mkdtemp(prefix="evenflow-e2e-")))
    try:
        yield made
    finally:
        made.end_all()
        shutil.rmtree(made.folder, ignore_errors=True)


@pytest.fixture
def processes() -> Iterator[Processes]:
    """For one test."""
    with a_folder_and_its_processes() as made:
        yield made


@pytest.fixture
def folder(processes: Processes) -> Path:
    """The folder of one test."""
    return processes.folder


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Processes, Dev]]:
    """One ready `evenflow dev` with its simulated nodes for all tests of a file."""
    with a_folder_and_its_processes() as made:
        yield made, made.dev("--no-load")
