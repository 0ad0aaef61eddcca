"""One service in a process of its own, on connected servers: what `evenflow run` does."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evenflow.core.errors import Ended
from evenflow.hosting.composition import Composition, kind_named
from evenflow.hosting.doors import DOORS, check_door
from evenflow.hosting.http import HttpServer
from evenflow.hosting.operations.door import OperationsDoor
from evenflow.hosting.operations.lag import LagWatch
from evenflow.hosting.operations.measures import Measures
from evenflow.hosting.operations.reaching import Reaching
from evenflow.hosting.registry import ServiceKind
from evenflow.hosting.signals import until_told
from evenflow.hosting.surroundings import HostSettings, Surroundings
from evenflow.platform.collector import tune_collector
from evenflow.platform.fail_points import FailPoint, no_fail_point
from evenflow.platform.observability.libraries import hear_libraries
from evenflow.platform.settings import load_settings, shown
from evenflow.platform.versions import installed

CLOSE_LIMIT_S: Final = 5.0
#: A process that must end leaves with this plus the code its service gave: 13 fenced, 14 seat lost, 15 a round of
#: unknown fate, 16 stuck, 17 too much unwritten. The codes below are the command line's own.
ENDED_FROM: Final = 10


@dataclass(frozen=True, slots=True)
class Configured:
    """Everything that a process of one service is told, checked."""

    kind: ServiceKind
    host: HostSettings
    service: Any

    def shown(self) -> dict[str, Any]:
        """For people, secrets as stars."""
        return {"service": self.kind.name, "host": shown(self.host), self.kind.name: shown(self.service)}


def configure(name: str, file: Path | None) -> Configured:
    """Read file and environment. Raises FieldRefused for an unknown service or a wrong setting; nothing is opened."""
    kind = kind_named(name)
    host = load_settings(HostSettings, "host", file=file, environment=os.environ)
    host.access()
    if host.operations_port is None:
        host = host.with_changes(operations_port=kind.operations_port)
    service = load_settings(kind.settings, kind.name, file=file, environment=os.environ)
    check_door(kind.name, host, service)
    return Configured(kind, host, service)


def run_service(configured: Configured, point: FailPoint = no_fail_point) -> int:
    """Run until told to stop; returns the exit code. Raises Refused when it can't ever run.

    `point` is awaited at every fail point: the door of tests that end a process between two steps.
    """
    return asyncio.run(Process(configured, point).run())


class Process:
    """One service, its HTTP door if it has one, and the operations door, from the first moment to the last."""

    def __init__(self, configured: Configured, point: FailPoint) -> None:
        self._configured = configured
        kind, host = configured.kind, configured.host
        self._surroundings = Surroundings(host)
        self._surroundings.point = point
        self._log = self._surroundings.logger(kind.name)
        measures = Measures(kind.name)
        self._surroundings.metrics = measures.metrics
        self._composition = Composition(self._surroundings, ended_is_final=True)
        self._reaching = Reaching(self._surroundings.clock, self._log)
        about = {"service": kind.name, "version": installed(), "since_ms": self._surroundings.clock.now_ms()}
        door = OperationsDoor(self, measures, about)
        self._operations = HttpServer(door, name="operations", address=host.address, port=host.operations_port or 0)

    def waits_for(self) -> dict[str, str]:
        """Servers that did not answer yet."""
        return self._reaching.waits_for

    def services(self) -> dict[str, str]:
        """How the service does."""
        return self._composition.services()

    async def measure(self) -> None:
        """Ask what runs for its levels."""
        await self._composition.measure()

    async def run(self) -> int:
        """Open the doors, reach the servers, serve until told to stop."""
        told = until_told()
        kind = self._configured.kind
        if kind.name in DOORS:
            self._composition.add_doors(kind.name)
        self._composition.add_service(kind.name, self._configured.service)
        self._operations.bind()
        hear_libraries(self._log, self._surroundings.clock)
        tune_collector()
        await self._operations.start()
        doors = {"operations": self._operations, **self._composition.servers}
        urls = {name: server.url for name, server in doors.items()}
        self._log.info("process started", pid=os.getpid(), **urls)
        try:
            return await self._serve(told)
        except Ended as ended:
            self._log.error("process ended", exit_code=ENDED_FROM + ended.exit_code, reason=ended.message)
            return ENDED_FROM + ended.exit_code
        finally:
            await self._operations.stop()
            await self._close()

    async def _serve(self, told: asyncio.Event) -> int:
        reaching = asyncio.create_task(self._reaching.all(self._surroundings.servers()))
        waiting = asyncio.create_task(told.wait())
        await asyncio.wait([reaching, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not reaching.done():
            reaching.cancel()
            await asyncio.gather(reaching, return_exceptions=True)
            self._log.info("process stopped", while_waiting_for=sorted(self.waits_for()))
            return 0
        reaching.result()
        lag = asyncio.create_task(self._lag_watch().run())
        try:
            await self._composition.supervisor.run(told)
        finally:
            lag.cancel()
            await asyncio.gather(lag, return_exceptions=True)
        self._log.info("process stopped")
        return 0

    def _lag_watch(self) -> LagWatch:
        around, composition = self._surroundings, self._composition
        return LagWatch(
            around.transport(), around.clock, self._log, around.metrics("host"), lambda: sorted(composition.groups())
        )

    async def _close(self) -> None:
        """A server that is away must not keep the process from ending."""
        try:
            async with asyncio.timeout(CLOSE_LIMIT_S):
                await self._surroundings.close()
        except TimeoutError:
            self._log.warning("connections not closed in order", limit_s=CLOSE_LIMIT_S)
