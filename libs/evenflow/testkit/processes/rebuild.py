"""`make rebuild-archive`: what expired from a real Kafka comes back from the archive, after every view was lost.

Tasks run and are charged; then every stream that expires keeps its records for 60 s only, until all of the ledger's are
gone from the log. All services are killed, the documents wiped, the services started again. Ledger, nodes, links and
datasets must be what they were but for ages, every chain whole from its first line, and the documents written anew.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from evenflow.core.errors import EvenflowError, Unavailable
from evenflow.events.streams import BILLING, BY_NAME
from evenflow.platform.clock import Clock
from evenflow.platform.stores.factory import open_documents
from evenflow.testkit.processes.faults.harm.servers import VIEWS as COLLECTIONS
from evenflow.testkit.processes.faults.world import World

RETENTION_MS: Final = 60_000
EXPIRE_S: Final = 240.0
SETTLE_S: Final = 120.0
RECOVER_S: Final = 90.0
WORK_S: Final = (0.5, 5.0)
#: What `ledger` and the topology answer; a listing by its pages.
VIEWS: Final = ("ledger", "nodes", "sites", "links", "datasets")
#: Ages, moments of reading, and the live load, which Redis holds for seconds.
PASSING: Final = ("as_of_ms", "load", "reported_ms")
Say = Callable[[str], None]


@dataclass
class Rebuilt:
    """What was there before and after. `differences` by view."""

    expired: int = 0
    lines: int = 0
    back_ms: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def complaints(self) -> list[str]:
        """What must not be."""
        found = [*self.differences, *self.broken]
        return found if self.lines and self.expired else [*found, "nothing expired: nothing was shown"]

    def table(self) -> list[str]:
        """For people."""
        return [
            f"{self.expired} records of {BILLING.name} expired; {self.lines} lines of the ledger before and after",
            *(f"{name:<10} {count:>6} rows" for name, count in self.rows.items()),
            f"all as before {self.back_ms} ms after the kill, {len(self.differences)} differences",
        ]


class Archived(World):
    """A world that copies what expires every second and measures no link anew meanwhile."""

    def told(self, environment: dict[str, str]) -> dict[str, str]:
        """The world's settings and those."""
        return {**environment, "EVENFLOW_HOST_ARCHIVE_PERIOD_MS": "1000"}

    async def views(self) -> dict[str, list[Any]]:
        """Rows without ages, by view. Raises Unavailable."""
        try:
            return await self._views()
        except httpx.HTTPError as error:
            raise Unavailable(f"the console gives no views: {error}") from error

    async def _views(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        async with httpx.AsyncClient(base_url=f"{self.console}/api/v1", timeout=30) as client:
            for name in VIEWS:
                found[name] = []
                after = ""
                while True:
                    answer = await client.get(name, params={"limit": 500, **({"after": after} if after else {})})
                    page = answer.raise_for_status().json()
                    found[name] += [lasting(row) for row in page["items"]]
                    if not (after := page.get("next", "")):
                        break
                if name == "ledger":
                    found["books"] = [lasting(book) for book in page["queues"]]
        return found

    async def keep(self, retention_ms: int | None) -> None:
        """Let streams that expire keep records for so long; None = as the registry says."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self.brokers)
        await admin.start()
        try:
            rows = []
            for stream in (one for one in BY_NAME.values() if not one.compacted):
                configs = dict(stream.configs)
                if retention_ms is not None:
                    configs["retention.ms"] = str(retention_ms)
                rows.append(ConfigResource(ConfigResourceType.TOPIC, stream.name, configs))
            await admin.alter_configs(rows)
        finally:
            await admin.close()

    async def offsets(self) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Begins and ends of the ledger's stream."""
        reader = AIOKafkaConsumer(bootstrap_servers=self.brokers, isolation_level="read_committed")
        await reader.start()
        try:
            places = [TopicPartition(BILLING.name, index) for index in range(BILLING.partitions)]
            return await reader.beginning_offsets(places), await reader.end_offsets(places)
        finally:
            await reader.stop()

    async def lose_everything(self) -> None:
        """Kill all services, wipe the documents, start all services."""
        for kept in self.services.values():
            await kept.ready()
            await kept.let_go()
            kept.tell(signal.SIGKILL)
        assert self.processes is not None
        for kept in self.services.values():
            assert kept.now is not None
            await self.processes.ended(kept.now)
        documents = open_documents(self.servers.servers["documents"].url())
        for collection in COLLECTIONS:
            await documents.drop(collection)
        await documents.close()
        await asyncio.gather(*(kept.start() for kept in self.services.values()))


def lasting(value: Any) -> Any:
    """The same JSON without what passes."""
    if isinstance(value, dict):
        return {
            name: lasting(each)
            for name, each in value.items()
            if name not in PASSING and not name.endswith(("age_ms", "_ago_ms", "for_ms"))
        }
    return [lasting(each) for each in value] if isinstance(value, list) else value


async def rebuild(tasks: int, root: Path, folder: Path, clock: Clock, say: Say) -> Rebuilt:
    """Do all of it. Raises Unavailable when the world does not start, nothing expires, or nothing comes back."""
    found = Rebuilt()
    async with Archived(root, folder, clock, say) as world:
        await world.submit(tasks, shortest_s=WORK_S[0], longest_s=WORK_S[1])

        async def charged() -> bool:
            return sum(1 for line in (await world.views())["ledger"] if line["kind"] == "work") >= tasks

        await world.until(charged, SETTLE_S, "the charge for every task")
        if any((left := await world.settled(within_s=SETTLE_S)).values()):
            raise Unavailable(f"the world did not come to rest: {left}")
        before = await world.views()
        _, written = await world.offsets()
        say(f"{len(before['ledger'])} lines of the ledger; {sum(written.values())} records of {BILLING.name}")
        await world.keep(RETENTION_MS)

        async def gone() -> bool:
            begins, _ = await world.offsets()
            return all(begins[place] >= end for place, end in written.items())

        await world.until(gone, EXPIRE_S, f"the end of everything on {BILLING.name}")
        found.expired = sum(written.values())
        await world.keep(None)
        say("all of it expired; every service is killed and the documents are wiped")
        began_ms = clock.monotonic_ms()
        await world.lose_everything()
        after: dict[str, list[Any]] = {}

        async def back() -> bool:
            nonlocal after
            after = await world.views()
            return after == before

        try:
            await world.until(back, RECOVER_S, "the views as they were")
            await world.views_whole()
        except EvenflowError as error:
            found.broken.append(str(error))
        found.back_ms = clock.monotonic_ms() - began_ms
        await world.probe(within_s=RECOVER_S)
    found.rows = {name: len(rows) for name, rows in after.items()}
    found.lines = len(before["ledger"])
    found.differences = [f"{name}: {text}" for name in before for text in differences(before[name], after.get(name))]
    found.broken += [
        f"the chain of {book['queue']} is shown from line {book['verified_from']}, whole: {book['verified']}"
        for book in after.get("books", ())
        if not book["verified"] or book["verified_from"] != 1
    ]
    return found


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Where two JSON values differ, by path; the first few."""
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = [(f"{path}.{name}", one.get(name), other.get(name)) for name in sorted({**one, **other})]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(f"{path}[{index}]", a, b) for index, (a, b) in enumerate(zip(one, other, strict=True))]
    else:
        return [] if one == other else [f"{path}: {str(one)[:200]} became {str(other)[:200]}"]
    return [text for where, a, b in pairs for text in differences(a, b, where)][:20]
