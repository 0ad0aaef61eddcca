"""Power over the product's own processes, also at named fail points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from aiokafka import TopicPartition

from evenflow.events import streams
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.sim.loop import VirtualLoop
from evenflow.sim.process import PROCESS
from evenflow.sim.stage import Which
from evenflow.sim.world.composition import Recipe
from evenflow.sim.world.hosting import Hosted, Hosting, Make

ALL: Final = "all"
_SEAT: Final = TopicPartition(streams.PLACEMENT_LEADER.name, 0)


@dataclass(slots=True)
class _Planned:
    """Something that happens at the next visit of a fail point, to whom `which` means or to one place alone."""

    point: str
    action: str
    which: Which | None = None
    only: Hosted | None = None


class ServicePowers:
    """Kills, pauses, restarts, standbys, skew and rewinds of services."""

    def __init__(self, loop: VirtualLoop, hosting: Hosting, log: EmbeddedLog, recipes: dict[str, Recipe]) -> None:
        self._loop = loop
        self._hosting = hosting
        self._log = log
        self._recipes = recipes
        self._planned: list[_Planned] = []
        #: Visits of each fail point.
        self.reached: dict[str, int] = {}
        self.make: Make | None = None

    # -- choosing -----------------------------------------------------------------------------------------------------
    def places(self, which: Which) -> list[Hosted]:
        """The places that are meant."""
        names = list(self._recipes) if which.service == ALL else [which.service]
        found = [hosted for name in names for hosted in self._hosting.of_service(name)]
        if which.role is None:
            return found
        leader = self.leader()
        if which.role == "leader":
            return [hosted for hosted in found if hosted is leader]
        return [hosted for hosted in found if hosted is not leader and hosted.alive]

    def leader(self) -> Hosted | None:
        """The placement that has the seat: the member of the leader's group that holds its single partition."""
        for hosted in self._hosting.of_service("placement"):
            name = next((group for group in self._groups() if self._holds(group, hosted)), None)
            if name is not None:
                return hosted
        return None

    def _groups(self) -> list[str]:
        return [name for name in self._log.groups.names() if self._log.groups.group(name) is not None]

    def _holds(self, name: str, hosted: Hosted) -> bool:
        group = self._log.groups.group(name)
        if group is None or hosted.process is None:
            return False
        return any(
            _SEAT in held and group.members[member].context.get(PROCESS) is hosted.process
            for member, held in group.held.items()
            if member in group.members
        )

    # -- verbs --------------------------------------------------------------------------------------------------------
    async def kill(self, which: Which) -> None:
        """Gone until restart."""
        if which.at_point is not None:
            self._planned.append(_Planned(which.at_point, "kill", which))
            return
        for hosted in self.places(which):
            if which.after_step_count is None:
                self._hosting.kill(hosted)
            elif hosted.process is not None:
                hosted.process.doom_after(which.after_step_count, partial(self._hosting.kill, hosted))

    async def pause(self, which: Which) -> None:
        """Stands still."""
        if which.at_point is not None:
            self._planned.append(_Planned(which.at_point, "pause", which))
            return
        for hosted in self.places(which):
            self._hosting.pause(hosted)

    def ambush(self, hosted: Hosted, point: str) -> None:
        """Let one place's process end at its next visit of a fail point, and start again."""
        self._planned.append(_Planned(point, "restart", only=hosted))

    async def resume(self, which: Which) -> None:
        """Goes on."""
        for hosted in self.places(which):
            self._hosting.resume(hosted)

    async def restart(self, which: Which) -> None:
        """Starts again."""
        for hosted in self.places(which):
            self._hosting.restart(hosted)

    async def add(self, service: str) -> None:
        """One more process of a service."""
        if self.make is None:
            return
        number = len(self._hosting.of_service(service)) + 1
        name = service if number == 1 else f"{service}-{number}"
        self._hosting.start(self._hosting.place(name, service, self.make))

    async def skew(self, which: Which, clock_ms: int) -> None:
        """Its wall clock is off from now on, over restarts."""
        for hosted in self.places(which):
            if hosted.process is not None:
                hosted.process.skew_ms = clock_ms

    async def rewind(self, which: Which, offset_count: int) -> None:
        """Its groups read the last records again."""
        names = list(self._recipes) if which.service == ALL else [which.service]
        for group in self._groups():
            if any(group.startswith((f"evenflow.{name}.", f"evenflow-{name}")) for name in names):
                rewound = [
                    (group, key.topic, key.partition, max(0, (self._log.committed(group, key) or 0) - offset_count), "")
                    for key in self._log.lag(group)
                ]
                self._log.offsets_written(rewound)
                self._log.groups.rebalance(group)

    def end_all(self) -> None:
        """Faults end: the paused go on, the killed start again, nothing is planned any more."""
        self._planned.clear()
        for name in self._recipes:
            for hosted in self._hosting.of_service(name):
                if hosted.process is not None:
                    hosted.process.skew_ms = 0
                    hosted.process.doom = None
                self._hosting.resume(hosted)
                if not hosted.wanted:
                    self._hosting.start(hosted)

    async def visit(self, hosted: Hosted, point: str) -> None:
        """A process came by a named fail point; what is planned there happens now."""
        self.reached[point] = self.reached.get(point, 0) + 1
        for planned in self._planned:
            if planned.point == point and self._meant(planned, hosted):
                self._planned.remove(planned)
                if planned.action == "pause":
                    self._hosting.pause(hosted)
                    return
                end = self._hosting.kill if planned.action == "kill" else self._hosting.restart
                end(hosted)
                await self._loop.create_future()

    def _meant(self, planned: _Planned, hosted: Hosted) -> bool:
        if planned.which is None:
            return planned.only is hosted
        return hosted in self.places(planned.which)
