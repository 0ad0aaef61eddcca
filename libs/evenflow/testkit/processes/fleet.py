"""Starting, watching, stopping and killing services as processes, each with its log in a folder.

async with Processes(folder, addresses.host_environment(), clock) as processes:
    one = await processes.start("placement")
    await processes.ready(one)
    one.running.tell(signal.SIGKILL)
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import httpx

from evenflow.core.errors import Unavailable
from evenflow.platform.clock import Clock
from evenflow.testkit.servers.process import Running, spawn, stop

DOORS: Final = ("operations", "console", "gateway")
LOOK_S: Final = 0.05
BEGIN_S: Final = 90.0
READY_S: Final = 90.0
STOP_S: Final = 20.0


@dataclass
class ServiceProcess:
    """One copy of a service. `doors` are its URLs by name: operations, and console or gateway."""

    name: str
    running: Running
    doors: dict[str, str] = field(default_factory=dict)

    def lines(self) -> Iterator[dict[str, Any]]:
        """What it logged; a line that is cut off or of something else is left out."""
        for text in self.running.log.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict):
                yield line

    def said(self, event: str) -> list[dict[str, Any]]:
        """Its lines of one event."""
        return [line for line in self.lines() if line.get("event") == event]

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it lives. A signal's number below zero."""
        return None if self.running.child is None else self.running.child.poll()

    async def state(self) -> dict[str, Any]:
        """What /ready answers. Raises httpx.HTTPError when nobody does."""
        async with httpx.AsyncClient(timeout=5) as client:
            answer: dict[str, Any] = (await client.get(f"{self.doors['operations']}/ready")).json()
            return answer


class Processes:
    """Copies of services on one set of servers; all that were started are stopped at the end."""

    def __init__(self, folder: Path, environment: Mapping[str, str], clock: Clock) -> None:
        self.folder = folder
        self.started: list[ServiceProcess] = []
        self.environment = dict(environment)
        self._clock = clock

    async def __aenter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop(*self.started)

    async def start(
        self,
        service: str,
        environment: Mapping[str, str] | None = None,
        *,
        at: str = "",
        nth: int = 1,
        number: signal.Signals = signal.SIGKILL,
        orders: Path | None = None,
    ) -> ServiceProcess:
        """Start one more copy of a service and wait until its operations door is open.

        With `at` it sends itself `number` when it reaches that fail point for the nth time; with `orders` it is told
        so later, see `member`. Raises Unavailable, with the end of its log, when it ends before.
        """
        name = f"{service}-{len(self.started)}"
        ports = {f"EVENFLOW_HOST_{door.upper()}_PORT": "0" for door in DOORS}
        whole = {**self.environment, **ports, **(environment or {})}
        command = [sys.executable, "-m", "evenflow.cli", "run", service]
        if at:
            harm = ("--point", at, "--nth", str(nth), "--signal", number.name.removeprefix("SIG"))
            command = [sys.executable, "-m", "evenflow.testkit.processes.member", service, *harm]
        if orders is not None:
            command = [sys.executable, "-m", "evenflow.testkit.processes.member", service, "--orders", str(orders)]
        one = self.spawn(name, command, whole)
        await self._until(lambda: bool(one.said("process started")), one, BEGIN_S, "did not begin")
        first = one.said("process started")[0]
        one.doors = {name: first[name] for name in DOORS if name in first}
        return one

    def agent(self, gateway: str, token: str, document: Path, data: Path) -> ServiceProcess:
        """Start the agent of a node; it joins in the background."""
        where = ("--url", gateway, "--token", token, "--document", str(document), "--data", str(data))
        command = [sys.executable, "-m", "evenflow.cli", "agent", *where]
        return self.spawn(f"agent-{len(self.started)}", command, self.environment)

    def nodes(self, gateway: str, token: str, count: int, data: Path) -> ServiceProcess:
        """Start simulated nodes; see `nodes`."""
        where = ("--url", gateway, "--token", token, "--count", str(count), "--folder", str(data))
        command = [sys.executable, "-m", "evenflow.testkit.processes.nodes", *where]
        return self.spawn(f"nodes-{len(self.started)}", command, self.environment)

    def spawn(self, name: str, command: list[str], environment: Mapping[str, str]) -> ServiceProcess:
        """Start any process of the product; it is stopped with the others."""
        running = spawn(name, command, self.folder / f"{name}.log", tied=True, environment=environment)
        one = ServiceProcess(name, running)
        self.started.append(one)
        return one

    async def ready(self, one: ServiceProcess, *, state: str = "", within_s: float = READY_S) -> dict[str, Any]:
        """Wait until it serves, or until its service is in `state` (as leading). Raises Unavailable."""
        until_ms = self._clock.monotonic_ms() + round(within_s * 1000)
        answer: dict[str, Any] = {}
        while self._clock.monotonic_ms() < until_ms:
            try:
                answer = await one.state()
            except httpx.HTTPError:
                if not one.running.lives:
                    break
            if answer.get("ready") and (not state or state in answer["services"].values()):
                return answer
            await self._clock.sleep(LOOK_S)
        raise Unavailable(f"{one.name} is not ready after {within_s:.0f} s: {answer}; {one.running.said()}")

    async def ended(self, one: ServiceProcess, *, within_s: float = READY_S) -> int:
        """Wait until a process ends by itself; its exit code. Raises Unavailable when it lives on."""
        await self._until(lambda: not one.running.lives, None, within_s, f"{one.name} lives on")
        code = one.exit_code
        assert code is not None
        return code

    async def stands(self, one: ServiceProcess, *, within_s: float = READY_S) -> None:
        """Wait until the system says that a process is stopped. Raises Unavailable."""
        status = Path(f"/proc/{one.running.pid}/stat")

        def stands_still() -> bool:
            return status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T"

        await self._until(stands_still, one, within_s, f"{one.name} does not stand still")

    async def stop(self, *those: ServiceProcess, within_s: float = STOP_S) -> list[str]:
        """Ask processes to stop; names of those that had to be killed."""
        return await stop([one.running for one in those], self._clock, within_s=within_s)

    async def _until(self, met: Callable[[], bool], one: ServiceProcess | None, within_s: float, problem: str) -> None:
        until_ms = self._clock.monotonic_ms() + round(within_s * 1000)
        while not met():
            if one is not None and not one.running.lives:
                raise Unavailable(f"{one.name} ended with {one.exit_code}: {one.running.said()}")
            if self._clock.monotonic_ms() >= until_ms:
                raise Unavailable(f"{problem} within {within_s:.0f} s")
            await self._clock.sleep(LOOK_S)
