"""The fenced blocks of README, docs and the other pages, and which of their commands no test runs, with the reason.

Languages: `sh` is run by bash, a page's blocks in order in one clean copy of the tree; `python` is run; `yaml` is read
by the door it is for; `text` is output or a drawing. A block in which some commands are not run is marked `sh in-part`,
and each of those commands stands in LEFT_OUT.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LANGUAGES = ("sh", "python", "yaml", "text")
IN_PART = "in-part"
#: Pages whose blocks need the real servers; tests/integration/docs runs them.
ON_SERVERS = ("docs/processes.md", "deploy/local/README.md")
#: (page, command): why it is not run here.
LEFT_OUT = {
    ("README.md", "make demo"): "takes minutes; tests/e2e/test_demo.py runs its first arrivals",
    ("README.md", "make test"): "this test is a part of it",
    ("docs/exploration.md", "make explore"): "takes minutes; a step of .ci/run",
    ("docs/mutants.md", "make mutants"): "takes an hour",
    ("docs/mutants.md", "make mutants MUTANTS"): "takes minutes",
    ("docs/mutants.md", "make mutants-known"): "takes minutes; a step of .ci/run",
    ("docs/mutants.md", "python -m evenflow.testkit.mutants"): "takes minutes",
    ("CONTRIBUTING.md", "make setup"): "installs; a step of .ci/run",
    ("CONTRIBUTING.md", "make check"): "its parts are steps of .ci/run",
    ("CONTRIBUTING.md", "make test"): "this test is a part of it",
    ("CONTRIBUTING.md", "make integration"): "these tests are a part of it",
    ("CONTRIBUTING.md", ".ci/run"): "this test is a part of it",
    ("deploy/local/README.md", "make integration"): "this test is a part of it",
}
PROGRAMS = {"evenflow": "-m evenflow.cli", "python": "", "pytest": "-m pytest"}


@dataclass(frozen=True)
class Block:
    """One fenced block. `line` is that of its fence."""

    page: str
    line: int
    language: str
    marks: tuple[str, ...]
    text: str

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"{self.page}:{self.line}"

    def left_out(self, line: str) -> tuple[str, str] | None:
        """The entry by which a line is not run: the longest that it begins with."""
        found = [entry for entry in LEFT_OUT if entry[0] == self.page and re.match(re.escape(entry[1]) + r"\b", line)]
        return max(found, key=lambda entry: len(entry[1]), default=None) if IN_PART in self.marks else None

    @property
    def script(self) -> str:
        """What is run of it."""
        return "\n".join(line for line in self.text.splitlines() if self.left_out(line) is None) + "\n"


def pages() -> list[str]:
    """Every page that a reader may copy from."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    found += [*(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def blocks(page: str) -> Iterator[Block]:
    """The blocks of one page, in order."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    begun = 0
    for number, line in enumerate(lines, 1):
        if not line.lstrip().startswith("```"):
            continue
        if not begun:
            begun = number
            continue
        words = lines[begun - 1].lstrip().removeprefix("```").split()
        language, *marks = words or [""]
        yield Block(page, begun, language, tuple(marks), "\n".join(lines[begun : number - 1]) + "\n")
        begun = 0
    if begun:
        yield Block(page, begun, "never closed", (), "")


def commands(page: str) -> list[Block]:
    """Those of its blocks that bash runs, with something left to run."""
    return [block for block in blocks(page) if block.language == "sh" and block.script.strip()]


def checkout(into: Path) -> Path:
    """A copy of the tree as git knows it, whose `.venv` is this interpreter: nothing is installed, nothing shared."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, check=False, text=True,
    )  # fmt: skip
    names = [name for name in listed.stdout.split("\0") if name]
    if listed.returncode:  # an unpacked archive has no history
        hidden = (".git", ".venv", ".cache", "__pycache__")
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
        names = [name for name in names if not any(part in hidden for part in Path(name).parts)]
    for name in names:
        if (ROOT / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, into / name)
    programs = into / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, how in PROGRAMS.items():
        path = f"{into / 'libs'}:{into / 'services'}"
        (programs / name).write_text(
            f'#!/bin/sh\nPYTHONPATH={path} exec {sys.executable} {how} "$@"\n', encoding="utf-8"
        )
        (programs / name).chmod(0o755)
    (into / ".venv" / ".installed").touch()
    return into


def run(
    block: Block, folder: Path, environment: Mapping[str, str], *, within_s: float, replaced: Mapping[str, str]
) -> str:
    """Run what a reader would copy; its output. Fails with the block's place when it ends with another code than 0."""
    script = block.script
    for old, new in replaced.items():
        script = script.replace(old, new)
    told = {name: os.environ[name] for name in ("HOME", "LANG", "EVENFLOW_SERVERS_CACHE") if name in os.environ}
    told["PATH"] = f"{folder / '.venv' / 'bin'}:{os.environ['PATH']}"
    output = folder / f"output-{block.line}"
    with output.open("wb") as out:
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script], cwd=folder, env={**told, **environment},
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            code: int | str = process.wait(within_s)
        except subprocess.TimeoutExpired:
            code = f"none after {within_s:.0f} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)
    said = output.read_text(encoding="utf-8", errors="replace")
    assert code == 0, f"{block.place} ended with {code}:\n{script}\n{said[-3000:]}"
    return said
