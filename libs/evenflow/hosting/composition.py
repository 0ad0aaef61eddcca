"""All services of the registry in one process, under the supervisor, with the two HTTP doors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from aiokafka.errors import KafkaError

from evenflow.core.errors import EvenflowError, FieldRefused
from evenflow.hosting.archiving.copies import LogCopies
from evenflow.hosting.doors import DOORS, check_door
from evenflow.hosting.http import Current, HttpServer
from evenflow.hosting.registry import SERVICES, ServiceKind
from evenflow.hosting.requests import Requests
from evenflow.hosting.surroundings import Surroundings
from evenflow.hosting.upkeep import LogUpkeep
from evenflow.platform.service import Service
from evenflow.platform.supervisor import Patience, Supervisor

#: Beside whom the archive is written where the log expires by itself: it reads every stream.
COPIER: Final = "console"
PATIENCE: Final = Patience(stop_s=4.0)
#: Whoever collects figures waits for ten seconds at most.
MEASURE_LIMIT_S: Final = 2.0


class Composition:
    """A process: add services, then `start` and `stop`; or let its supervisor run until an event is set.

    HTTP is listed first, so that it is the last to stop: what streams are open are ended by their services.
    """

    def __init__(self, surroundings: Surroundings, *, ended_is_final: bool = False) -> None:
        self.surroundings = surroundings
        self.supervisor = Supervisor(
            surroundings.clock, surroundings.logger("host"), PATIENCE, ended_is_final=ended_is_final
        )
        self.doors = {name: Current(name) for name in DOORS}
        self.running: dict[str, Service] = {}
        self.servers: dict[str, HttpServer] = {}
        self._names: list[str] = []
        if (log := surroundings.log) is not None:
            stores, clock, logger = surroundings.stores, surroundings.clock, surroundings.logger("log-upkeep")
            self.supervisor.add("log-upkeep", lambda: LogUpkeep(log, stores.objects, clock, logger))

    def add_doors(self, *names: str) -> None:
        """Serve the applications of these services over HTTP. Raises Refused when a port is taken."""
        settings = self.surroundings.settings
        for name in names:
            around = self.surroundings
            app = Requests(
                self.doors[name],
                name,
                around.clock,
                around.logger(name),
                around.metrics(name),
                around.traces.tracing(name, "door"),
            )
            server = HttpServer(
                app,
                name=name,
                address=settings.address,
                port=getattr(settings, DOORS[name]),
                certificate=settings.tls_certificate_file,
                key=settings.tls_key_file,
            )
            server.bind()
            self.servers[name] = server
            self.supervisor.add(f"http-{name}", lambda server=server: server)  # type: ignore[misc]  # bound per turn

    def add_service(self, name: str, settings: Any = None) -> None:
        """Run a service of the registry. Raises FieldRefused for an unknown name, or a door not fit for its address."""
        kind = kind_named(name)
        chosen = settings if settings is not None else kind.settings()
        check_door(name, self.surroundings.settings, chosen)
        around = self.surroundings
        if name == COPIER and around.log is None:
            period_s, logger = around.settings.archive_period_ms / 1_000, around.logger(LogCopies.name)
            self.supervisor.add(
                LogCopies.name,
                lambda: LogCopies(around.transport(), around.stores.objects, around.clock, logger, period_s),
            )
        self._names.append(name)
        self.supervisor.add(name, lambda: self._made(kind, chosen))

    def add_services(self, settings: Mapping[str, Any], leave_out: Iterable[str] = ()) -> None:
        """Run all services of the registry."""
        left_out = tuple(leave_out)
        for name in SERVICES:
            if name not in left_out:
                self.add_service(name, settings.get(name))

    def _made(self, kind: ServiceKind, settings: Any) -> Service:
        service = kind.build(self.surroundings.runtime(kind.name), settings)
        self.running[kind.name] = service
        if kind.name in self.doors:
            self.doors[kind.name].set(service)
        return service

    async def measure(self) -> None:
        """Let every service record its levels. What one can't see now, or not in time, stays as it was."""
        log = self.surroundings.logger("host")
        for service in self.running.values():
            for measure in getattr(service, "measures", ()) if _state(service) != "starting" else ():
                try:
                    async with asyncio.timeout(MEASURE_LIMIT_S):
                        await measure()
                except (EvenflowError, KafkaError, OSError, TimeoutError) as error:
                    log.info("levels not taken", service_name=service.name, problem=f"{type(error).__name__}: {error}")

    def groups(self) -> set[str]:
        """The consumer groups of everything that runs here."""
        return {group for service in self.running.values() for group in getattr(service, "groups", ())}

    async def start(self) -> None:
        """Create the topics and start everything in order. Raises Refused when something can't ever start."""
        await self.surroundings.provision()
        await self.supervisor.start()

    async def stop(self) -> None:
        """Stop everything in reverse order, then close stores and log."""
        await self.supervisor.stop()
        await self.surroundings.close()

    def services(self) -> dict[str, str]:
        """How each service of the process does: starting, serving, standby, leading."""
        return {name: _state(self.running.get(name)) for name in self._names}


def _state(service: Any) -> str:
    if service is None or not service.ready:
        return "starting"
    alone = getattr(service, "alone", None)
    if alone is None:
        return "serving"
    return "leading" if alone else "standby"


def kind_named(name: str) -> ServiceKind:
    """A service of the registry. Raises FieldRefused."""
    if name not in SERVICES:
        raise FieldRefused("service", f"{name[:40]!a} is unknown; known are {', '.join(SERVICES)}")
    return SERVICES[name]
