"""The world that faults are tried in: servers, one copy of each service, simulated nodes, tasks in flight."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from evenflow.client.api import AsyncClient
from evenflow.client.errors import Answered, Unreachable
from evenflow.core.errors import EvenflowError, Unavailable
from evenflow.hosting.registry import SERVICES
from evenflow.platform.broker.factory import make_transport
from evenflow.platform.clock import Clock, RandomIds
from evenflow.platform.stores.factory import open_documents
from evenflow.platform.stores.views.marks import MARK_ID
from evenflow.testkit.processes.faults.keeping import Kept
from evenflow.testkit.processes.faults.ways import Ways
from evenflow.testkit.processes.fleet import Processes, ServiceProcess
from evenflow.testkit.servers.addresses import NEEDED, NEEDED_BY_THREE
from evenflow.testkit.servers.local import LocalServers
from evenflow.testkit.servers.process import Running, free_ports

TOKEN: Final = "of-this-world"  # noqa: S105  of servers that end with the run
NODES: Final = 8
#: Who says nothing is replaced after three seconds; a silent node is lost after twenty.
SETTINGS: Final = {
    "EVENFLOW_GATEWAY_TOKEN": TOKEN,
    "EVENFLOW_GATEWAY_HEARTBEAT_MS": "2000",
    "EVENFLOW_INVENTORY_HEARTBEAT_PERIOD_MS": "2000",
    "EVENFLOW_INVENTORY_SUSPECT_AFTER_MS": "10000",
    "EVENFLOW_INVENTORY_SILENCE_TOLERANCE_MS": "20000",
    "EVENFLOW_INVENTORY_HOLD_OFF_MS": "0",
    "EVENFLOW_BILLING_SESSION_TIMEOUT_MS": "3000",
    "EVENFLOW_HOST_GROUP_SESSION_MS": "3000",
    "EVENFLOW_INVENTORY_SESSION_TIMEOUT_MS": "3000",
    "EVENFLOW_LINK_PROBE_SESSION_TIMEOUT_MS": "3000",
    "EVENFLOW_PLACEMENT_SESSION_TIMEOUT_MS": "3000",
    "EVENFLOW_PLACEMENT_SNAPSHOT_PERIOD_MS": "5000",
}
SUBMITTERS: Final = 8
TRAFFIC_PAUSE_S: Final = 0.2
#: Within so long a server without a disk ends, and lost views are written again.
GONE_S: Final = 30.0
VIEWS_S: Final = 40.0
LOOK_S: Final = 0.1
ENDED: Final = ("succeeded", "failed", "rejected", "cancelled")


class World:
    """Started by `async with`; `folder` holds every log. `log` is the kind of its log: kafka or kafka-cluster."""

    #: How a service is kept running.
    keeping: type[Kept] = Kept

    def __init__(self, root: Path, folder: Path, clock: Clock, say: Callable[[str], None], log: str = "kafka") -> None:
        self.clock = clock
        self.say = say
        self.log = log
        self.servers = LocalServers(root, folder / "servers", clock, say, tied=True)
        self.ways = Ways(self.servers, log, SERVICES, clock)
        self.services: dict[str, Kept] = {}
        self.nodes: ServiceProcess | None = None
        self.processes: Processes | None = None
        self.console = self.gateway = ""
        self._folder = folder
        self._chance = random.Random(1)
        self._probes = 0
        self._trickle = 0

    async def __aenter__(self) -> Self:
        """Servers, then services together, then nodes, until all nodes take work."""
        try:
            await self._start()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def _start(self) -> None:
        addresses = await self.servers.start(NEEDED_BY_THREE if self.log == "kafka-cluster" else NEEDED)
        await self.ways.open()
        console, gateway = free_ports(2)
        self.console, self.gateway = f"http://127.0.0.1:{console}", f"http://127.0.0.1:{gateway}"
        ports = {"EVENFLOW_HOST_CONSOLE_PORT": str(console), "EVENFLOW_HOST_GATEWAY_PORT": str(gateway)}
        environment = self.told({**addresses.host_environment(), **SETTINGS})
        self.processes = Processes(self._folder / "processes", environment, self.clock)
        processes = await self.processes.__aenter__()
        self.services = {
            name: self.keeping(processes, name, {**ports, **self.ways.environment(name)}, self.clock)
            for name in SERVICES
        }
        await asyncio.gather(*(kept.start() for kept in self.services.values()))
        self.start_nodes()
        await self.until(self._nodes_work, 120, "nodes that take work")

    def told(self, environment: dict[str, str]) -> dict[str, str]:
        """What every process begins with."""
        return environment

    async def __aexit__(self, *_: object) -> None:
        """End everything."""
        for kept in self.services.values():
            await kept.let_go()
        if self.processes is not None:
            await self.processes.__aexit__()
        await self.ways.close()
        await self.servers.stop()

    def start_nodes(self) -> None:
        """Start the simulated nodes, or start them again on their disks."""
        assert self.processes is not None
        self.nodes = self.processes.nodes(self.gateway, TOKEN, NODES, self._folder / "nodes")

    @property
    def brokers(self) -> str:
        """host:port of the log, of each broker."""
        return self.servers.servers[self.log].url().removeprefix("kafka://").partition("?")[0]

    # --- load and looks -----------------------------------------------------------------------------------------------

    async def submit(self, count: int, *, shortest_s: float, longest_s: float) -> None:
        """Put `count` tasks in flight, whose work takes between those seconds."""
        numbers = iter(range(count))

        async def some() -> None:
            for number in numbers:
                work_s = round(self._chance.uniform(shortest_s, longest_s), 3)
                await self._submit({"id": f"flight-{number}", "run": {"work_s": work_s}, "resources": {"cpu": "0.2"}})

        await asyncio.gather(*(some() for _ in range(SUBMITTERS)))

    @asynccontextmanager
    async def traffic(self) -> AsyncIterator[None]:
        """A task a moment while the body runs, so that every service has something to do."""

        async def more() -> None:
            while True:
                self._trickle += 1
                await self._submit({"id": f"more-{self._trickle}", "run": {"work_s": 0.5}, "resources": {"cpu": "0.1"}})
                await self.clock.sleep(TRAFFIC_PAUSE_S)

        task = asyncio.create_task(more())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def probe(self, *, within_s: float) -> None:
        """Submit a short task, wait until it has succeeded and is charged and every service serves.

        Raises Unavailable or TimeoutError.
        """
        self._probes += 1
        name = f"probe-{self._probes}"
        async with asyncio.timeout(within_s):
            await self._submit({"id": name, "run": {"work_s": 0.2}, "resources": {"cpu": "0.1"}})
            await self.until(lambda: self._succeeded(name), within_s, f"{name} to succeed")
            await self.until(lambda: self._charged(name), within_s, f"the ledger's line of {name}")
        for kept in self.services.values():
            await kept.ready()

    async def start_another(self, service: str) -> ServiceProcess:
        """One more copy of a service, which serves when this returns and is not started again when it ends."""
        assert self.processes is not None
        one = await self.processes.start(service, self.ways.environment(service))
        await self.processes.ready(one)
        return one

    async def end(self, one: ServiceProcess, number: signal.Signals) -> None:
        """End a copy by a signal, unless it ended by itself."""
        assert self.processes is not None
        one.running.tell(number)
        await self.processes.ended(one)

    async def until_gone(self, running: Running) -> None:
        """Wait until a server ends by itself. Raises Unavailable."""

        async def gone() -> bool:
            return not running.lives

        await self.until(gone, GONE_S, f"the end of {running.name}")

    async def views_whole(self) -> None:
        """Wait until the documents hold every node and every entry of the ledger. Raises Unavailable."""
        documents = open_documents(self.servers.servers["documents"].url())

        async def whole() -> bool:
            kept = {name: {row.id async for row in documents.scan(name, limit=10_000)} for name in ("nodes", "ledger")}
            async with AsyncClient(self.console) as client:
                nodes = {node.node for node in (await client.nodes()).items}
                entries = sum(int(queue["number"]) for queue in (await client.ledger()).queues)
            return nodes <= kept["nodes"] and len(kept["ledger"] - {MARK_ID}) >= entries

        try:
            await self.until(whole, VIEWS_S, "nodes and ledger in the documents")
        finally:
            await documents.close()

    async def settled(self, *, within_s: float) -> dict[str, int]:
        """Wait until every task has ended, every record is read and every place is free; what was left otherwise."""
        left: dict[str, int] = {}

        async def nothing_left() -> bool:
            left.clear()
            left.update({"tasks": await self._tasks_left(), "lag": await self._lag(), "held": await self._held()})
            return not any(left.values())

        with suppress(Unavailable):
            await self.until(nothing_left, within_s, "an end of everything")
        return left

    async def until(self, met: Callable[[], Any], within_s: float, what: str) -> None:
        """Wait until something holds; a look that fails is another look. Raises Unavailable."""
        until_ms = self.clock.monotonic_ms() + round(within_s * 1_000)
        while True:
            with suppress(EvenflowError, KafkaError, OSError, TimeoutError):
                if await met():
                    return
            if self.clock.monotonic_ms() > until_ms:
                raise Unavailable(f"waited {within_s:.0f} s in vain for {what}")
            await self.clock.sleep(LOOK_S)

    async def _submit(self, specification: dict[str, Any]) -> None:
        """Submit until the console has it: a submission told twice is one task."""
        while True:
            try:
                async with AsyncClient(self.console) as client:
                    await client.submit(specification)
                    return
            except Unreachable:
                pass
            except Answered as error:
                if error.status < 500:
                    raise
            await self.clock.sleep(LOOK_S)

    async def _nodes_work(self) -> bool:
        async with AsyncClient(self.console) as client:
            page = await client.nodes()
            return sum(1 for node in page.items if node.takes_work) == NODES

    async def _succeeded(self, task: str) -> bool:
        async with AsyncClient(self.console) as client:
            return (await client.status(task)).state == "succeeded"

    async def _charged(self, task: str) -> bool:
        async with AsyncClient(self.console) as client:
            return any(line["kind"] == "work" for line in (await client.ledger(task=task)).items)

    async def _tasks_left(self) -> int:
        async with AsyncClient(self.console) as client:
            queues = await client.queues()
            return sum(count for queue in queues for state, count in queue.tasks.items() if state not in ENDED)

    async def _held(self) -> int:
        async with AsyncClient(self.console) as client:
            return sum(node.held.cpu_milli for node in (await client.nodes()).items)

    async def _lag(self) -> int:
        transport = make_transport(f"kafka://{self.brokers}", clock=self.clock, ids=RandomIds(self.clock))
        admin = AIOKafkaAdminClient(bootstrap_servers=self.brokers)
        await admin.start()
        try:
            groups = [group for group, _ in await admin.list_consumer_groups()]
        finally:
            await admin.close()
        # A transaction's own marker takes the last offset of its partition, so one record there is none. The archive's
        # group alone reads the ledger's stream, on which several markers follow one another at rest.
        read = [group for group in groups if not group.endswith(("leader", ".archive"))]
        lags = [lag for group in read for lag in (await transport.lag(group)).values()]
        return sum(lag for lag in lags if lag > 1)
