"""The machine's process table as /proc shows it: who belongs to a run, and whether a process is still the same one."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
#: The variable that marks every process of a run, also those that left its process group.
MARK: Final = "EVENFLOW_RUN"


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """One process. `started` is its start time in the kernel's ticks: with the pid it names a process for good."""

    pid: int
    state: str
    group: int
    session: int
    started: int

    @property
    def alive(self) -> bool:
        """A zombie holds nothing but its number."""
        return self.state not in ("Z", "X")


def entry_of(pid: int) -> ProcessEntry | None:
    """The process with this number, if there is one."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name may hold spaces and brackets
    if len(fields) < 20:
        return None
    return ProcessEntry(pid, fields[0], int(fields[2]), int(fields[3]), int(fields[19]))


def belonging_to(key: str, session: int | None) -> list[ProcessEntry]:
    """Living processes of a run: those of its session, and those that carry its mark wherever they went."""
    mark = f"{MARK}={key}".encode()
    found = []
    for pid in sorted(int(path.name) for path in PROC.iterdir() if path.name.isdigit()):
        entry = entry_of(pid)
        if entry is None or not entry.alive or entry.pid == os.getpid():
            continue
        if (session is not None and entry.session == session) or _carries(entry.pid, mark):
            found.append(entry)
    return found


def _carries(pid: int, mark: bytes) -> bool:
    try:
        return mark in (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def send_signal(entries: list[ProcessEntry], number: signal.Signals) -> None:
    """Signal each; one that is gone meanwhile is passed over."""
    for entry in entries:
        try:
            os.kill(entry.pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def boot_id() -> str:
    """The kernel's own name of this boot."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "boot-unknown"


def oom_kills() -> int:
    """How many processes the kernel has killed for want of memory since the boot; 0 where it does not say."""
    try:
        for line in (PROC / "vmstat").read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
    except (OSError, ValueError):
        pass
    return 0
