"""Processes of the world: started in their own context, killed, paused, resumed, and supervised.

A process that ends untold is started again after a pause, as the product's supervisor does; one that a step killed
stays dead until it is restarted.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from evenflow.core.errors import Ended, EvenflowError
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.sim.loop import VirtualLoop
from evenflow.sim.process import PROCESS, Process, process_of

RESTART_MIN_S: Final = 0.5
RESTART_MAX_S: Final = 5.0


class Runs(Protocol):
    """What a host needs of a service or an agent."""

    async def start(self) -> None: ...
    async def wait(self) -> None: ...
    async def stop(self) -> None: ...


#: Makes the service of one incarnation, given its process; its transport, if it has one, is noted for the log's groups.
Make = Callable[["Hosted"], Runs]


@dataclass(eq=False, slots=True)
class Hosted:
    """One place for a process: what runs there now, and whether it should.

    `name` is unique in the world (`placement`, `placement-2`, `agent.n1`), `service` what it is a copy of.
    """

    name: str
    service: str
    make: Make
    process: Process | None = None
    context: contextvars.Context | None = None
    transport: EmbeddedTransport | None = None
    runs: Runs | None = None
    wanted: bool = True
    serving: bool = False
    pause_s: float = RESTART_MIN_S
    exits: list[str] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        """Whether there is a process, running or paused."""
        return self.process is not None and not self.process.dead


Report = Callable[[Hosted, BaseException | None], None]


class Hosting:
    """Starts and ends the world's processes. `report` hears of those that ended untold."""

    def __init__(self, loop: VirtualLoop, seed: int, world: contextvars.Context, report: Report) -> None:
        self._loop = loop
        self._seed = seed
        self._world = world
        self._report = report
        self._incarnations = 0
        self.places: dict[str, Hosted] = {}
        #: Told of every process that dies.
        self.deaths: list[Callable[[Process], None]] = []

    def place(self, name: str, service: str, make: Make) -> Hosted:
        """A new place for a process; nothing runs there yet."""
        hosted = Hosted(name, service, make)
        self.places[name] = hosted
        return hosted

    def of_service(self, service: str) -> list[Hosted]:
        """The places of a service, in order of making."""
        return [hosted for hosted in self.places.values() if hosted.service == service]

    def start(self, hosted: Hosted) -> None:
        """Begin a new incarnation."""
        self._incarnations += 1
        process = process_of(self._seed, hosted.name, self._incarnations)
        if hosted.process is not None:
            process.skew_ms = hosted.process.skew_ms
        context = self._world.copy()
        context.run(PROCESS.set, process)
        hosted.process, hosted.context, hosted.transport = process, context, None
        hosted.wanted, hosted.serving = True, False
        main = self._loop.create_task(self._main(hosted), context=context, name=process.instance)
        main.add_done_callback(lambda task: self._ended(hosted, process, task), context=self._world)

    async def _main(self, hosted: Hosted) -> None:
        hosted.runs = hosted.make(hosted)
        await hosted.runs.start()
        hosted.serving = True
        hosted.pause_s = RESTART_MIN_S
        await hosted.runs.wait()

    def kill(self, hosted: Hosted) -> None:
        """End a process at once; it stays ended until it is started again."""
        hosted.wanted = False
        self._bury(hosted)

    def _bury(self, hosted: Hosted) -> None:
        hosted.serving = False
        if hosted.process is not None and not hosted.process.dead:
            self._loop.kill(hosted.process)
            for tell in self.deaths:
                tell(hosted.process)
            if hosted.transport is not None:
                hosted.transport.lost_contact()

    def restart(self, hosted: Hosted) -> None:
        """Kill what runs and begin again."""
        self._bury(hosted)
        self.start(hosted)

    def pause(self, hosted: Hosted) -> None:
        """Let a process stand still."""
        if hosted.alive and hosted.process is not None and not hosted.process.paused:
            self._loop.pause(hosted.process)
            if hosted.transport is not None:
                hosted.transport.lost_contact()

    def resume(self, hosted: Hosted) -> None:
        """Let it go on."""
        if hosted.alive and hosted.process is not None and hosted.process.paused:
            self._loop.resume(hosted.process)
            if hosted.transport is not None:
                hosted.transport.regained()

    def spawn(self, hosted: Hosted, coroutine: Any) -> asyncio.Task[Any] | None:
        """Run a coroutine inside a process; None (and the coroutine closed) when it is dead."""
        if not hosted.alive or hosted.context is None:
            coroutine.close()
            return None
        return self._loop.create_task(coroutine, context=hosted.context.copy())

    def _ended(self, hosted: Hosted, process: Process, task: asyncio.Task[None]) -> None:
        if process.dead or process is not hosted.process:
            return
        error = None if task.cancelled() else task.exception()
        hosted.exits.append("" if error is None else f"{type(error).__name__}: {error}")
        self._bury(hosted)
        self._report(hosted, error)
        if hosted.wanted:
            pause_s, hosted.pause_s = hosted.pause_s, min(RESTART_MAX_S, hosted.pause_s * 2)
            self._loop.call_later(pause_s, self._again, hosted, process, context=self._world)

    def _again(self, hosted: Hosted, process: Process) -> None:
        if hosted.wanted and hosted.process is process:
            self.start(hosted)

    def kill_all(self) -> None:
        """The end of the world."""
        for hosted in self.places.values():
            self.kill(hosted)


def is_fault(error: BaseException | None) -> bool:
    """Whether an end is the product's fault: not one that the product chose, nor a server that was away."""
    if error is None or isinstance(error, Ended):
        return False
    return not (isinstance(error, EvenflowError) and error.retriable)
