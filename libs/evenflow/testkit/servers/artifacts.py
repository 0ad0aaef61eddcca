"""What has to be fetched or built before a server can run: once, with versions and checksums pinned, then kept.

Everything comes through Maven, Go, cargo and pip as this machine has them configured; deploy/local says what and with
which checksums. A finished artifact is a folder named by what it was made from, so a changed pin is built anew. A build
goes to a folder of another name first: one that was cut short is never taken for a whole one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from evenflow.core.errors import Refused, Unavailable
from evenflow.platform.clock import SystemClock

BUILD_S_MAX: Final = 1_800
LOG_SHOWN_LINES: Final = 15
#: Of each artifact, made from this many different pins.
KEPT_COUNT: Final = 3

Say = Callable[[str], None]


class Artifact(ABC):
    """One thing to make. `material` is its folder under deploy, `programs` what must be on the PATH."""

    name: str
    material: str
    programs: tuple[str, ...]
    install: str

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pins = root / "deploy" / self.material
        if not self.pins.is_dir():
            raise Refused(f"{self.pins} is not there: start this from the top of the source tree")

    @abstractmethod
    def build(self, into: Path, log: Path) -> None:
        """Make it in an empty folder."""

    @property
    def folder_name(self) -> str:
        """Changes with the pins, this machine's kind and how it is built."""
        seen = hashlib.sha256(f"{self.name} {platform.machine()} {sys.version_info[:2]}".encode())
        for path in sorted(self.pins.rglob("*")):
            if path.is_file():
                seen.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        return f"{self.name}-{seen.hexdigest()[:16]}"

    def require_programs(self) -> None:
        """Raises Unavailable naming what is not installed."""
        absent = [program for program in self.programs if shutil.which(program) is None]
        if absent:
            raise Unavailable(f"{self.name} needs {', '.join(absent)}: {self.install}")


def obtain(artifact: Artifact, cache: Path, say: Say) -> Path:
    """The finished artifact's folder, made first where it is not there. Raises Unavailable with the end of the log."""
    finished = cache / artifact.folder_name
    if finished.is_dir():
        return finished
    artifact.require_programs()
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{artifact.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two commands at once: the second one finds it finished
        if finished.is_dir():
            return finished
        clock = SystemClock()
        begun_ms = clock.monotonic_ms()
        log = cache / f"{artifact.name}.log"
        log.write_bytes(b"")
        say(f"building {artifact.name} (log: {log})")
        partial = finished.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        artifact.build(partial, log)
        partial.rename(finished)
        _forget_old(artifact, cache, finished)
        say(f"built {artifact.name} in {(clock.monotonic_ms() - begun_ms) / 1000:.1f} s")
    return finished


def _forget_old(artifact: Artifact, cache: Path, newest: Path) -> None:
    """Remove what older pins made, but for the last few: another checkout may still use those."""
    named = re.compile(rf"{re.escape(artifact.name)}-[0-9a-f]{{16}}")
    others = [path for path in cache.iterdir() if named.fullmatch(path.name) and path != newest]
    others.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in others[KEPT_COUNT - 1 :]:
        shutil.rmtree(path, ignore_errors=True)


class GoProgram(Artifact):
    """One program of a Go module; `go.sum` pins the module and all it needs. `package` is where its main stands.

    `tags` leave out parts that are not needed.
    """

    programs = ("go",)
    install = "install a Go toolchain at least as new as go.mod in the program's folder under deploy says"
    package: str
    program: str
    tags: tuple[str, ...] = ()

    def build(self, into: Path, log: Path) -> None:
        """Build with the module files as they stand; Go refuses what has another checksum."""
        tags = ["-tags", ",".join(self.tags)] if self.tags else []
        command = ["go", "build", "-mod=readonly", "-trimpath", *tags, "-o", str(into / self.program), self.package]
        run(command, log, folder=self.pins, environment={"CGO_ENABLED": "0"})


def run(command: Sequence[str], log: Path, *, folder: Path, environment: Mapping[str, str] | None = None) -> None:
    """Run a builder to its end, its output in the log. Raises Unavailable with the log's end when it fails."""
    with log.open("ab") as output:
        output.write(f"$ {' '.join(command)}\n".encode())
        output.flush()
        try:
            ended = subprocess.run(  # noqa: S603  builders named in this package
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, check=False,
                timeout=BUILD_S_MAX, env={**os.environ, **(environment or {})},
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"{command[0]} did not end within {BUILD_S_MAX} s; its log is {log}") from error
        except OSError as error:
            raise Unavailable(f"{command[0]} can't be started: {error}") from error
    if ended.returncode:
        last = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_SHOWN_LINES:])
        raise Unavailable(f"{command[0]} ended with {ended.returncode}; the end of {log}:\n{last}")


def check_files(folder: Path, sums: Path) -> None:
    """Hold every file of a folder to a list of `sha256  name`. Raises Refused naming what is wrong."""
    rows = [row.split() for row in sums.read_text(encoding="ascii").splitlines() if row and not row.startswith("#")]
    pinned = {name: digest for digest, name in rows}
    present = {path.name: path for path in folder.iterdir() if path.is_file()}
    wrong = [
        *(f"{name} is missing" for name in sorted(pinned) if name not in present),
        *(f"{name} is not pinned" for name in sorted(present) if name not in pinned),
        *(
            f"{name} has another checksum"
            for name in sorted(present)
            if name in pinned and digest_of(present[name]) != pinned[name]
        ),
    ]
    if wrong:
        raise Refused(f"not what {sums} names: {'; '.join(wrong[:5])}")


def digest_of(path: Path) -> str:
    """The file's SHA-256 in hex."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
