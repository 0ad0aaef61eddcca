"""The nodes: machines that outlive their agents, and the agent process on each."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evenflow.agent.clients.gateway import HttpGateway
from evenflow.agent.executors.machine import PlainMachine
from evenflow.agent.executors.simulated import SimulatedExecutor
from evenflow.agent.ports import Sample, Surroundings, TransferBroken
from evenflow.agent.service import AgentService
from evenflow.agent.settings import AgentSettings
from evenflow.agent.stores import MemoryDisk
from evenflow.core.errors import FieldRefused
from evenflow.core.fleet.description import NodeDescription
from evenflow.core.lifecycle.event_types import EventType
from evenflow.events.documents.node import parse_node
from evenflow.platform.security.identity import key_from_seed
from evenflow.sim.clock import SimulatedIds
from evenflow.sim.world.hosting import Hosted, Runs
from evenflow.sim.world.paths.bridge import Bridge
from evenflow.sim.world.paths.links import Broken
from evenflow.sim.world.paths.sitestore import SiteObjects

if TYPE_CHECKING:
    from evenflow.sim.world.world import World

#: Steps in which a transfer counts its bytes.
TRANSFER_STEPS: Final = 4


@dataclass(slots=True)
class Node:
    """One machine: what is on its disk and what runs on it stays when its agent goes."""

    id: str
    document: Any
    description: NodeDescription
    machine: PlainMachine
    disk: MemoryDisk
    key: Ed25519PrivateKey
    hosted: Hosted
    bridge: Bridge
    client: HttpGateway | None = None
    down: bool = False


class Fleet:
    """All nodes of the world, by id."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._settings: AgentSettings = world.composition.settings_for(AgentSettings)
        self._nodes: dict[str, Node] = {}
        self._rules: list[Callable[[PlainMachine], None]] = []

    # -- looking up ---------------------------------------------------------------------------------------------------
    def node(self, name: str) -> Node:
        """A node. Raises FieldRefused when there is none."""
        found = self._nodes.get(name)
        if found is None:
            raise FieldRefused("node", f"there is no node {name} in the scenario")
        return found

    def machine(self, name: str) -> PlainMachine:
        """A node's machine."""
        return self.node(name).machine

    def machines(self) -> list[PlainMachine]:
        """Every machine, in order of appearance."""
        return [node.machine for node in self._nodes.values()]

    def site_of(self, name: str) -> str | None:
        """Where a node stands."""
        found = self._nodes.get(name)
        return None if found is None else found.description.site

    def on_every_machine(self, rule: Callable[[PlainMachine], None]) -> None:
        """Do something to every machine, and to those that come."""
        self._rules.append(rule)
        for machine in self.machines():
            rule(machine)

    def forget_rules(self) -> None:
        """Machines that come are ordinary again."""
        self._rules.clear()

    # -- coming and going ---------------------------------------------------------------------------------------------
    def begin(self, document: Any) -> None:
        """A machine appears with its agent; the document goes to the door as written."""
        description = _description(document, f"node-{len(self._nodes) + 1}")
        name = description.id
        before = self._nodes.get(name)
        if before is not None:
            before.document, before.description = document, description
            self._world.hosting.restart(before.hosted)
            return
        world = self._world
        seed = world.scenario.seed
        chance = random.Random(f"{seed}/network/{name}")
        machine = PlainMachine(
            description, world.clock, carry=self._carry, probe=self._probe, has_copy=world.data.is_there
        )
        for rule in self._rules:
            rule(machine)
        hosted = world.hosting.place(f"agent.{name}", "agent", self._agent)
        bridge = Bridge(
            world.loop,
            world.hosting,
            chance=chance,
            reachable=lambda: world.network.reaches(name),
            world=world.context,
            node=name,
            downlink=world.downlink,
        )
        key = key_from_seed(f"{seed}/{name}")
        self._nodes[name] = Node(name, document, description, machine, MemoryDisk(), key, hosted, bridge)
        world.hosting.start(hosted)

    def _agent(self, hosted: Hosted) -> Runs:
        node = next(entry for entry in self._nodes.values() if entry.hosted is hosted)
        process = hosted.process
        if process is None:
            raise RuntimeError("an agent belongs to a process")
        return AgentService(self.surroundings(node), self._settings)

    def surroundings(self, node: Node) -> Surroundings:
        """What the agent of a node is given."""
        world, hosted = self._world, node.hosted
        process = hosted.process
        if process is None:
            raise RuntimeError("an agent belongs to a process")
        ids = SimulatedIds(process)
        log = world.log_of(hosted)
        node.client = HttpGateway(node.bridge, node=node.id, key=node.key, token=world.token)
        return Surroundings(
            node=node.id,
            document=node.document,
            instance=process.instance,
            clock=world.clock_of(hosted),
            ids=ids,
            random=process.random,
            objects=SiteObjects(world.objects, lambda: world.network.store_reached(node.id)),
            gateway=node.client,
            disk=node.disk,
            machine=node.machine,
            key=node.key,
            log=log,
            simulated=SimulatedExecutor(node.machine),
            point=world.point_of(hosted),
        )

    async def add(self, written: object) -> None:
        """A node of the scenario's appears."""
        self.begin(written)

    async def kill(self, node: str) -> None:
        """The machine and all its processes are gone."""
        entry = self.node(node)
        entry.down = True
        self._world.hosting.kill(entry.hosted)
        entry.machine.boot_anew()
        entry.disk = MemoryDisk()

    async def restart(self, node: str, at_point: str | None = None, after_step_count: int | None = None) -> None:
        """The agent process alone; after a kill the machine comes up, empty."""
        entry, hosting = self.node(node), self._world.hosting
        if at_point is not None:
            self._world.services.ambush(entry.hosted, at_point)
            return
        if after_step_count is not None and entry.hosted.process is not None:
            entry.hosted.process.doom_after(after_step_count, lambda: hosting.restart(entry.hosted))
            return
        if entry.down:
            entry.down = False
            entry.machine.boot_anew()
        self._world.hosting.restart(entry.hosted)

    async def pause(self, node: str) -> None:
        """The agent process stands still."""
        self._world.hosting.pause(self.node(node).hosted)

    async def resume(self, node: str) -> None:
        """It goes on."""
        self._world.hosting.resume(self.node(node).hosted)

    async def remove(self, node: str) -> None:
        """It leaves for good."""
        await self.kill(node)
        await self._world.door.request(EventType.NODE_REVOKE_REQUESTED, node, {})

    async def skew(self, node: str, clock_ms: int) -> None:
        """Its wall clock is off."""
        process = self.node(node).hosted.process
        if process is not None:
            process.skew_ms = clock_ms

    def end_all(self) -> None:
        """Agents that stand still go on, clocks are right; machines that are down stay so."""
        for node in self._nodes.values():
            if node.hosted.process is not None:
                node.hosted.process.skew_ms = 0
                node.hosted.process.doom = None
            self._world.hosting.resume(node.hosted)

    # -- the machine's ways --------------------------------------------------------------------------------------------
    async def _carry(
        self, what: str, from_site: str, to_site: str, size_bytes: int, counted: Callable[[int], None]
    ) -> None:
        """Bring bytes over the real links, counted in steps."""
        data = self._world.data
        if not data.is_there(what, from_site):
            raise TransferBroken(f"{what} is not at {from_site}", missing=True)
        sent = 0
        for step in range(1, TRANSFER_STEPS + 1):
            part = size_bytes * step // TRANSFER_STEPS - sent
            try:
                await self._world.links.carry(from_site, to_site, part)
            except Broken as error:
                raise TransferBroken(str(error)) from None
            counted(part)
            sent += part
        data.arrived(what, to_site)

    async def _probe(self, from_site: str, to_site: str, size_bytes: int) -> Sample | None:
        """Measure the real path."""
        path = self._world.links.path(from_site, to_site)
        if path is None:
            return Sample(reachable=False)
        round_trip_us = sum(link.round_trip_us for link in path)
        await self._world.clock.sleep(round_trip_us / 1_000_000)
        loss_ppm = min(1_000_000, sum(link.loss_ppm for link in path))
        if not size_bytes:
            return Sample(reachable=True, round_trip_us=round_trip_us, loss_ppm=loss_ppm)
        began = self._world.loop.time()
        try:
            await self._world.links.carry(from_site, to_site, size_bytes)
        except Broken:
            return Sample(reachable=False)
        took = self._world.loop.time() - began
        return Sample(
            reachable=True,
            round_trip_us=round_trip_us,
            loss_ppm=loss_ppm,
            bandwidth_bits=round(size_bytes * 8 / took) if took else 0,
            sent_bytes=size_bytes,
        )


def _description(document: Any, unnamed: str) -> NodeDescription:
    """What the machine is: what its document says, as far as it says it; the door may refuse the document."""
    try:
        return parse_node(document)
    except FieldRefused:
        name = document.get("id") if isinstance(document, Mapping) else None
        site = document.get("site") if isinstance(document, Mapping) else None
        return NodeDescription(id=str(name or unnamed), site=str(site or "nowhere"))
