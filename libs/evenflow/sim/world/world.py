"""The world: production services over the embedded log on virtual time, with the powers that verbs have over it.

Time starts before t = 0: in the prelude documents are published, services start, nodes register and a placement leads.
What happens in it is shown at t = 0.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from typing import Any, Final

from aiokafka import TopicPartition

from evenflow.events.streams import topics
from evenflow.hosting.upkeep import LogUpkeep
from evenflow.platform.broker.embedded.hooks import Hooks
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.records import LogRecord
from evenflow.platform.runtime import Runtime
from evenflow.platform.stores.faults import no_gap
from evenflow.platform.stores.memory import MemoryDocuments, MemoryLiveLoad
from evenflow.sim import draws
from evenflow.sim.clock import SimulatedClock, SimulatedIds
from evenflow.sim.invariants.intake import OTHER_GROUPS, reader_of
from evenflow.sim.loop import VirtualLoop
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen
from evenflow.sim.process import process_of
from evenflow.sim.scenario.file import Scenario
from evenflow.sim.seam import forget_calls
from evenflow.sim.world.composition import Composition
from evenflow.sim.world.door import LogDoor
from evenflow.sim.world.hosting import Hosted, Hosting, Report, Runs
from evenflow.sim.world.paths.downlink import Downlink
from evenflow.sim.world.paths.frontdoor import FrontDoor
from evenflow.sim.world.paths.links import Links
from evenflow.sim.world.powers.data import DataPowers
from evenflow.sim.world.powers.delivery import DeliveryPowers
from evenflow.sim.world.powers.fleet import Fleet
from evenflow.sim.world.powers.machines import MachinePowers
from evenflow.sim.world.powers.network import NetworkPowers
from evenflow.sim.world.powers.receipts import ReceiptPowers
from evenflow.sim.world.powers.services import ServicePowers
from evenflow.sim.world.powers.stores import StorePowers
from evenflow.sim.world.records.delivery import SeededDelivery
from evenflow.sim.world.records.expiry import Expiry, shortened
from evenflow.sim.world.records.interception import Interception
from evenflow.sim.world.records.objects import WatchedObjects
from evenflow.sim.world.records.storage import FaultyStorage, LogAway
from evenflow.sim.world.records.watching import Watcher
from evenflow.sim.world.surroundings import Gaps, Lines, QuietLog, SimTransport

#: Invariants about stored objects, and about records that left the log.
WHOLE: Final = "INV14"
KEPT: Final = "INV15"
#: Virtual time before t = 0, in which everything registers once.
PRELUDE_MS: Final = 30_000
#: How soon a record on its way is tried again while the log is away.
LOG_RETRY_MS: Final = 500


def secret_of(seed: int) -> str:
    """What the gateway derives session keys from, hexadecimal."""
    return "".join(f"{draws.bits(seed, f'secret/{part}'):016x}" for part in range(4))


def token_of(seed: int) -> str:
    """What new nodes show at the gateway."""
    return f"{draws.bits(seed, 'token'):016x}"


@dataclass(frozen=True, slots=True)
class Pace:
    """How finely the surroundings are simulated. Faults want the default; long loads without faults do with less.

    `lean`: handlers get their records without FastStream's stack. `delays`: every record reaches every reader after a
    delay of its own, and every store call gives way before and after its effect. `upkeep_ms`: how often the log is
    archived, expired and compacted beside the services; 0 means never.
    """

    lean: bool = False
    delays: bool = True
    upkeep_ms: int = 0


FINE: Final = Pace()


class World:
    """One run of one scenario. Build it inside the guard; it owns its loop.

    `see` gets every record in order, `report` every process that ended untold.
    """

    def __init__(
        self,
        scenario: Scenario,
        composition: Composition,
        see: Callable[[Seen], None],
        report: Report,
        pace: Pace = FINE,
    ) -> None:
        self._pace = pace
        self.scenario = scenario
        chance = random.Random(f"{scenario.seed}/interleaving")
        self.loop = VirtualLoop(chance if pace.delays else None)
        self.context = contextvars.copy_context()
        self.model = Observation()
        self.clock = SimulatedClock(self.loop, scenario.start_ms - PRELUDE_MS)
        self.lines = Lines(self.now_ms)
        self.composition = composition
        self._see = see
        self._expiry: Expiry | None = None
        self._ids = SimulatedIds(process_of(scenario.seed, "world", 0))
        self._session_timeout_ms: int | None = scenario.settings.get("session_timeout_s")
        gaps = Gaps(scenario.seed) if pace.delays else no_gap
        self.documents, self.live = MemoryDocuments(gaps), MemoryLiveLoad(gaps)
        slow_ms = scenario.settings.get("object_store_s")
        far = gaps if slow_ms is None or not pace.delays else Gaps(scenario.seed, slow_ms)
        self.objects = WatchedObjects(far, lambda text: self.model.impossible(WHOLE, text))
        self._storage = FaultyStorage()
        self.interception = Interception(self.now_ms, self.later, self._append)
        self.log = EmbeddedLog(clock=self.clock, storage=self._storage, hooks=self._hooks())
        self.hosting = Hosting(self.loop, scenario.seed, self.context, report)
        self._links = self._real_links()
        front = FrontDoor(self.loop, self.hosting) if scenario.settings.get("through_console") else None
        self.door = LogDoor(self._transport(self.clock, self._ids), self.clock, self._ids, front)
        self.services = ServicePowers(self.loop, self.hosting, self.log, composition.recipes)
        self.services.make = self.make_service
        self.downlink = Downlink(self.now_ms, self.later)
        self.nodes = Fleet(self)
        self.network = NetworkPowers(self._links, self.nodes.site_of)
        self.machines = MachinePowers(self.nodes)
        self.stores = StorePowers(self.documents, self.live, self.objects, self._storage)
        self.delivery = DeliveryPowers(self.interception, self.downlink)
        self.receipts = ReceiptPowers(self)
        self.data = DataPowers(self)
        self.settled_ms: int | None = None
        self.token = token_of(scenario.seed)

    # -- time ---------------------------------------------------------------------------------------------------------
    def now_ms(self) -> int:
        """Milliseconds since t = 0; the prelude counts as 0."""
        return max(0, self.loop.time_ms() - PRELUDE_MS)

    def later(self, after_ms: int, act: Callable[[], Any]) -> None:
        """Run something of the world's own after a time."""
        self.loop.call_later(max(0, after_ms) / 1000, self._act, act, context=self.context)

    def at(self, t_ms: int, act: Callable[[], Any]) -> None:
        """Run something of the world's own at a moment of the run."""
        self.loop.call_at((PRELUDE_MS + t_ms) / 1000, self._act, act, context=self.context)

    def _act(self, act: Callable[[], Any]) -> None:
        made = act()
        if isawaitable(made):
            self.loop.create_task(_awaited(made), context=self.context)

    async def until(self, t_ms: int) -> None:
        """Return when the run has come to a moment."""
        await asyncio.sleep(max(0.0, (PRELUDE_MS + t_ms) / 1000 - self.loop.time()))

    # -- parts --------------------------------------------------------------------------------------------------------
    def _hooks(self) -> Hooks:
        paced = self._pace.delays
        delivery = SeededDelivery(self.loop, self.scenario.seed, self.context) if paced else None
        return Hooks(delivery=delivery, interceptor=self.interception, patient_polls=True)

    def _append(self, record: LogRecord) -> None:
        """A record that was kept back or repeated goes on its way; while the log is away, a little later."""
        try:
            self.log.append([record])
        except LogAway:
            self.later(LOG_RETRY_MS, lambda: self._append(record))

    def _transport(self, clock: SimulatedClock, ids: SimulatedIds) -> SimTransport:
        return SimTransport(self.log, clock=clock, ids=ids, session_timeout_ms=self._session_timeout_ms)

    def _real_links(self) -> Links:
        links = Links(self.loop, self.context)
        for entry in self.scenario.links:
            for source, target in ((entry["from"], entry["to"]), (entry["to"], entry["from"]))[
                : 1 + entry["both_ways"]
            ]:
                links.add(
                    source,
                    target,
                    bandwidth_bits=entry["bandwidth"],
                    round_trip_us=round(entry["round_trip_ms"] * 1000),
                    loss_ppm=round(entry["loss"] * 1_000_000),
                )
        return links

    @property
    def links(self) -> Links:
        """The real links between sites."""
        return self._links

    def clock_of(self, hosted: Hosted) -> SimulatedClock:
        """The clock of a process."""
        return SimulatedClock(self.loop, self.scenario.start_ms - PRELUDE_MS, hosted.process)

    def log_of(self, hosted: Hosted) -> QuietLog:
        """The logger of a process."""
        return QuietLog(self.lines, hosted.name if hosted.process is None else hosted.process.instance)

    def point_of(self, hosted: Hosted) -> Callable[[str], Awaitable[None]]:
        """The fail points of a process."""
        return partial(self.services.visit, hosted)

    def runtime(self, hosted: Hosted) -> Runtime:
        """Everything a service's incarnation is given."""
        process = hosted.process
        if process is None:
            raise RuntimeError("a runtime belongs to a process")
        clock, ids = self.clock_of(hosted), SimulatedIds(process)
        hosted.transport = self._transport(clock, ids)
        return Runtime(
            name=hosted.service,
            instance=str(process.incarnation),
            clock=clock,
            ids=ids,
            random=process.random,
            transport=hosted.transport,
            documents=self.documents,
            live=self.live,
            objects=self.objects,
            log=self.log_of(hosted),
            point=self.point_of(hosted),
            lean=self._pace.lean,
        )

    def make_service(self, hosted: Hosted) -> Runs:
        """Build the service of a new incarnation."""
        recipe = self.composition.recipes[hosted.service]
        return recipe.build(self.runtime(hosted), recipe.settings)

    # -- the course of the run -----------------------------------------------------------------------------------------
    async def open(self) -> None:
        """The prelude: topics, documents, services, nodes, until t = 0."""
        await self._provision()
        Watcher(self.log, self.now_ms, self._see)
        if self._pace.upkeep_ms:
            quiet = QuietLog(self.lines, LogUpkeep.name)
            await LogUpkeep(self.log, self.objects, self.clock, quiet, self._pace.upkeep_ms / 1000).start()
        await self.door.start()
        await self._publish_documents()
        for name in self.composition.recipes:
            self.hosting.start(self.hosting.place(name, name, self.make_service))
        await asyncio.sleep(1)
        for document in self.scenario.documents.datasets:
            await self.door.add_dataset(document)
        for document in self.scenario.documents.nodes:
            self.nodes.begin(document)
        await self.until(0)

    async def _provision(self) -> None:
        retention_ms = self.scenario.settings.get("retention_s")
        self.log.provision(topics() if retention_ms is None else shortened(topics(), retention_ms))
        if retention_ms is not None:
            self._expiry = Expiry(self.log, self.objects, self.clock, QuietLog(self.lines, "log"))
            await self._expiry.start()

    async def _publish_documents(self) -> None:
        documents = self.scenario.documents
        await self.door.document("policy", "default", documents.policy)
        for site in documents.sites:
            await self.door.document("site", site["id"], site)
        for link in documents.links:
            await self.door.document("link", f"{link['from']}..{link['to']}", link)
        for queue in documents.queues:
            await self.door.document("queue", queue["id"], queue)

    async def settle(self) -> None:
        """Every fault that is still on ends; killed services restart, killed and removed nodes stay so."""
        self.settled_ms = self.now_ms()
        self.stores.end_all()
        self.network.end_all()
        self.delivery.end_all()
        self.services.end_all()
        self.nodes.end_all()

    def see(self, record: Seen) -> None:
        """Note a record for the checks at the end."""
        if self._expiry is not None:
            self._expiry.see(record)

    def check_kept(self) -> None:
        """Remark what left the log and is not in the archive."""
        for text in () if self._expiry is None else self._expiry.lost():
            self.model.impossible(KEPT, text)

    def committed(self, topic: str, partition: int) -> list[tuple[str, int]]:
        """The services that read a partition in a group, each with its first offset that is not committed."""
        groups = dict.fromkeys([*self.log.groups.names(), *OTHER_GROUPS])
        found = [(*reader_of(group), group) for group in groups]
        key = TopicPartition(topic, partition)
        return [(name, self.log.committed(group, key) or 0) for name, read, group in found if topic in read]

    def close(self) -> None:
        """The end: everything is killed and buried, nothing stays in memory."""
        self.hosting.kill_all()
        self.loop.bury()
        self.loop.close()
        forget_calls()


async def _awaited(made: Awaitable[Any]) -> None:
    await made
