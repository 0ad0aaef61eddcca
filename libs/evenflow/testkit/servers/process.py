"""A server as a process: started with its output in a file, looked for by id and start time, stopped by its id.

A process is known by its id together with the moment it began, so that an id given to another program meanwhile is
never signalled. Reads /proc: Linux.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from evenflow.core.errors import Unavailable
from evenflow.platform.clock import Clock

LOOK_S: Final = 0.02
LOG_SHOWN_BYTES: Final = 2_000
#: Below the range from which systems give ports to clients, so that no client takes one between choice and use.
PORTS: Final = range(20_000, 32_000)
LOOPBACK: Final = "127.0.0.1"


@dataclass
class Running:
    """A process that was started, here or by an earlier command."""

    name: str
    pid: int
    ticks: int
    log: Path
    child: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def lives(self) -> bool:
        """Whether it has not ended; what waits for its parent to look has ended."""
        if self.child is not None:
            return self.child.poll() is None
        return _ticks(self.pid) == self.ticks

    def tell(self, number: signal.Signals) -> None:
        """Send a signal, if it lives."""
        if self.lives:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def said(self) -> str:
        """The end of its output."""
        with self.log.open("rb") as output:
            output.seek(max(0, self.log.stat().st_size - LOG_SHOWN_BYTES))
            return output.read().decode("utf-8", "replace")

    def memory_bytes(self) -> int:
        """Resident memory."""
        rows = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(row.split()[1]) * 1024 for row in rows if row.startswith("VmRSS"))


def spawn(
    name: str, command: Sequence[str], log: Path, *, tied: bool, environment: Mapping[str, str] | None = None
) -> Running:
    """Start a process whose output is added to `log`.

    A tied process is killed by the system when the one that started it ends, however it ends; any other lives on.
    Raises Unavailable when the program can't be started.
    """
    setpriv = shutil.which("setpriv") if tied else None
    whole = [setpriv, "--pdeathsig", "KILL", "--", *command] if setpriv else list(command)
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        with log.open("ab") as output:
            child = subprocess.Popen(  # noqa: S603  the command lines of this package's own servers
                whole, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=log.parent, start_new_session=True,
                env={**os.environ, **(environment or {})},
            )  # fmt: skip
    except OSError as error:
        raise Unavailable(f"{name} can't be started: {error}") from error
    return Running(name, child.pid, _ticks(child.pid) or 0, log, child)


async def stop(running: Iterable[Running], clock: Clock, *, within_s: float) -> list[str]:
    """Ask all to stop at once, insist after `within_s`; names of those that had to be killed.

    Brokers of one cluster need each other to stop in order, so they are never stopped one after another.
    """
    those = list(running)
    for one in those:
        one.tell(signal.SIGCONT)
        one.tell(signal.SIGTERM)
    until_ms = clock.monotonic_ms() + round(within_s * 1000)
    while any(one.lives for one in those) and clock.monotonic_ms() < until_ms:
        await clock.sleep(LOOK_S)
    killed = [one for one in those if one.lives]
    for one in killed:
        one.tell(signal.SIGKILL)
    while any(one.lives for one in killed):
        await clock.sleep(LOOK_S)
    return [one.name for one in killed]


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on now. Raises Unavailable when there are not enough."""
    found: list[int] = []
    begin = os.getpid() * 61 % len(PORTS)
    for step in range(len(PORTS)):
        if len(found) == count:
            return found
        port = PORTS[(begin + step) % len(PORTS)]
        if is_free(port):
            found.append(port)
    raise Unavailable(f"{count} free ports of {LOOPBACK} from {PORTS.start} to {PORTS.stop} were not found")


def is_free(port: int) -> bool:
    """Whether a server could listen there; a left-over one would answer in the place of a new one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _ticks(pid: int) -> int | None:
    """When a process began, in the system's ticks; None when it has ended."""
    try:
        row = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = row.rpartition(")")[2].split()  # the name before may hold anything
    return None if fields[0] in ("Z", "X") else int(fields[19])
