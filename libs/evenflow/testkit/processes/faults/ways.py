"""The ways between services and servers: each service reaches each store over a relay of its own.

To the log only one service goes over a relay: a broker sends its clients on to one address, and there is one more.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import Final

from evenflow.platform.clock import Clock
from evenflow.testkit.processes.relay import Relay
from evenflow.testkit.servers.addresses import HOST_VARIABLES
from evenflow.testkit.servers.kinds.kafka import Kafka
from evenflow.testkit.servers.local import LocalServers
from evenflow.testkit.servers.process import free_ports

STORES: Final = ("redis", "documents", "objects")
RELAYED: Final = "placement"


class Ways:
    """Opened by `open`, closed by `close`; by service and kind of server."""

    def __init__(self, servers: LocalServers, log: str, services: Iterable[str], clock: Clock) -> None:
        self._servers = servers
        self._log = log
        self._services = list(services)
        self._clock = clock
        self._stack = AsyncExitStack()
        self._relays: dict[tuple[str, str], list[Relay]] = {}
        self._environment: dict[str, dict[str, str]] = {service: {} for service in self._services}

    async def open(self) -> None:
        """Begin to hand on; the servers have their ports."""
        await self._open_log()
        pairs = [(service, store) for service in self._services for store in STORES]
        for (service, store), port in zip(pairs, free_ports(len(pairs)), strict=True):
            server = self._servers.servers[store]
            await self._begin(service, store, port, server.port)
            url = server.url().replace(f":{server.port}", f":{port}")
            self._environment[service][HOST_VARIABLES[store]] = url

    async def _open_log(self) -> None:
        broker = self._servers.servers[self._log]
        assert isinstance(broker, Kafka)
        url = broker.url()
        for node, client_port in enumerate(broker.client_ports):
            port, behind = broker.relay(node)
            await self._begin(RELAYED, "log", port, behind)
            url = url.replace(f":{client_port}", f":{port}")
        self._environment[RELAYED][HOST_VARIABLES["kafka"]] = url

    async def close(self) -> None:
        """End them all."""
        await self._stack.aclose()

    def environment(self, service: str) -> dict[str, str]:
        """The addresses by which a service reaches its servers."""
        return self._environment[service]

    def cut(self, service: str, kind: str) -> None:
        """Hand on nothing between them; `kind` is a store's or "log"."""
        for relay in self._relays[service, kind]:
            relay.cut()

    def heal(self, service: str, kind: str) -> None:
        """Hand on everything at once again."""
        for relay in self._relays[service, kind]:
            relay.heal()

    def slow(self, service: str, kind: str, delay_ms: int) -> None:
        """Hand on each piece so much later."""
        for relay in self._relays[service, kind]:
            relay.slow(delay_ms)

    async def _begin(self, service: str, kind: str, port: int, behind: int) -> None:
        relay = await self._stack.enter_async_context(Relay(port, behind, self._clock))
        self._relays.setdefault((service, kind), []).append(relay)
