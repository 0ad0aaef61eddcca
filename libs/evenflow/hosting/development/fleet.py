"""Simulated nodes of this process: real agents on simulated machines, which reach the gateway as they are told to.

Machines and disks outlive their agents, so agents that are started anew find their work. With a folder they outlive the
process too (`keeping`); without one the machines are gone with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from evenflow.agent.clients.exchange import Exchange
from evenflow.agent.clients.gateway import GatewayObjects, HttpGateway
from evenflow.agent.executors.machine import PlainMachine
from evenflow.agent.executors.simulated import SimulatedExecutor
from evenflow.agent.main import build_agent
from evenflow.agent.ports import Disk, Sample, Surroundings, TransferBroken
from evenflow.agent.service import AgentService
from evenflow.agent.settings import AgentSettings
from evenflow.agent.stores import MemoryDisk, SqliteDisk
from evenflow.core.fleet.description import NodeDescription
from evenflow.core.probing.load_frame import unpack
from evenflow.events.contract import Document
from evenflow.events.documents.node import parse_node
from evenflow.hosting.development.keeping import KeptMachine, KeptSession
from evenflow.hosting.development.neighbourhood import NODES, paths
from evenflow.hosting.surroundings import Surroundings as HostSurroundings
from evenflow.platform.clock import Clock, system_random
from evenflow.platform.security.identity import load_or_make_key, new_key

SETTINGS: Final = AgentSettings()
STEPS: Final = 8
JITTER: Final = 0.05
SEEN_MS_MAX: Final = 3_000
SEEN_POLL_S: Final = 0.05


class BornMachine(PlainMachine):
    """A simulated machine whose boot is this process's."""

    def __init__(self, description: NodeDescription, clock: Clock, born: str, **more: Any) -> None:
        super().__init__(description, clock, **more)
        self._born = born

    @property
    def boot(self) -> str:
        """Changes with every process, and with every boot inside of it."""
        return f"{self._born}-{super().boot}"


class Wires:
    """The links as they are: probes see them with a little noise, transfers take the time that they take."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._paths = paths()
        self._random = system_random()

    async def probe(self, from_site: str, to_site: str, size_bytes: int) -> Sample | None:
        """What a probe finds."""
        path = self._paths.get((from_site, to_site))
        if path is None:
            return Sample(reachable=False)
        noise = 1 + self._random.uniform(-JITTER, JITTER)
        await self._clock.sleep(path.round_trip_us / 1_000_000)
        return Sample(
            reachable=True,
            round_trip_us=round(path.round_trip_us * noise),
            jitter_us=round(path.round_trip_us * JITTER / 2),
            bandwidth_bits=round(path.bandwidth_bits * (2 - noise)) if size_bytes else 0,
            sent_bytes=size_bytes,
        )

    async def carry(
        self, what: str, from_site: str, to_site: str, size_bytes: int, counted: Callable[[int], None]
    ) -> None:
        """Bring bytes over the direct link."""
        path = self._paths.get((from_site, to_site))
        if path is None and from_site != to_site:
            raise TransferBroken(f"no link leads from {from_site} to {to_site} for {what}")
        sent = 0
        for step in range(1, STEPS + 1):
            part = size_bytes * step // STEPS - sent
            if path is not None:
                await self._clock.sleep(part * 8 / path.bandwidth_bits)
            counted(part)
            sent += part


class Fleet:
    """All simulated nodes; a service of the process."""

    def __init__(
        self,
        surroundings: HostSurroundings,
        exchange: Callable[[], Exchange],
        token: str,
        folder: Path | None,
        documents: Sequence[Document] = NODES,
    ) -> None:
        self.name = "simulated-nodes"
        self._host = surroundings
        self._exchange = exchange
        self._token = token
        self._folder = folder
        self._born = surroundings.ids.new_id()
        self._wires = Wires(surroundings.clock)
        self._documents = documents
        descriptions = [parse_node(document) for document in documents]
        self._machines = {each.id: self._machine(each) for each in descriptions}
        self._disks: dict[str, Disk] = {}
        self._keys = {each.id: self._key(each.id) for each in descriptions}
        self._agents: list[AgentService] = []

    def _machine(self, node: NodeDescription) -> PlainMachine:
        clock, wires = self._host.clock, self._wires
        if self._folder is None:
            return BornMachine(node, clock, self._born, carry=wires.carry, probe=wires.probe)
        return KeptMachine(node, clock, self._folder / node.id / "machine", carry=wires.carry, probe=wires.probe)

    def _door(self, node: str) -> HttpGateway:
        exchange, key = self._exchange(), self._keys[node]
        if self._folder is None:
            return HttpGateway(exchange, node=node, key=key, token=self._token)
        path = self._folder / node / "session.json"
        return KeptSession(exchange, path, node=node, key=key, token=self._token)

    def _key(self, node: str) -> Any:
        return new_key() if self._folder is None else load_or_make_key(self._folder / node / "node.key")

    def _disk(self, node: str) -> Disk:
        if node not in self._disks:
            self._disks[node] = MemoryDisk() if self._folder is None else SqliteDisk(self._folder / node / "agent.db")
        return self._disks[node]

    def _agent(self, document: dict[str, Any]) -> AgentService:
        node, host = str(document["id"]), self._host
        gateway = self._door(node)
        machine = self._machines[node]
        instance = host.ids.new_id()
        around = Surroundings(
            node=node,
            document=document,
            instance=instance,
            clock=host.clock,
            ids=host.ids,
            random=system_random(),
            objects=GatewayObjects(gateway),
            gateway=gateway,
            disk=self._disk(node),
            machine=machine,
            key=self._keys[node],
            log=host.logger(f"agent-{node}", instance),
            simulated=SimulatedExecutor(machine),
        )
        return build_agent(around, SETTINGS)

    async def start(self) -> None:
        """Start every agent; they join as soon as the gateway answers."""
        self._agents = [self._agent(document) for document in self._documents]
        for agent in self._agents:
            await agent.start()
            agent.uplink.beat_now()

    async def until_seen(self) -> None:
        """Return when the live load shows every node, or after a bounded while."""
        clock, live = self._host.clock, self._host.stores.live
        ends_ms = clock.monotonic_ms() + SEEN_MS_MAX
        while clock.monotonic_ms() < ends_ms:
            seen = [
                name for _, _, data in (await live.frames(await live.sites())).values() for name in unpack(data).names
            ]
            if len(seen) >= len(self._machines):
                return
            await clock.sleep(SEEN_POLL_S)

    async def wait(self) -> None:
        """Raise what ended the first agent that ended; then all are started anew, and find their work."""
        waiting = [asyncio.create_task(agent.wait()) for agent in self._agents]
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def stop(self) -> None:
        """Stop all at once."""
        await asyncio.gather(*(agent.stop() for agent in self._agents), return_exceptions=True)

    def close(self) -> None:
        """Let the disks go."""
        for disk in self._disks.values():
            disk.close()
