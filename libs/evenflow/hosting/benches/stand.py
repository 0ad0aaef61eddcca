"""What benches share: a log in a fresh folder or in memory, runtimes on it, a fleet that counts as registered."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

import structlog

from evenflow.core.lifecycle.node import Administration, Health, Reach
from evenflow.events import streams
from evenflow.events.contracts.inventory import DeviceStatus, NodeRegistered
from evenflow.platform.broker.codec import Fact
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.platform.broker.factory import make_log
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.broker.ports import Transport
from evenflow.platform.clock import Ids, RandomIds, SystemClock
from evenflow.platform.runtime import Runtime
from evenflow.platform.stores.memory import MemoryDocuments, MemoryLiveLoad, MemoryObjects
from evenflow.platform.stores.ports import LiveLoad

WARNING: Final = 30
NODES_PER_SITE: Final = 250


class Stand:
    """One log, whose clients `transport` makes, and stores in memory."""

    def __init__(self, transport: Callable[[], Transport], clock: SystemClock, ids: Ids, seed: int) -> None:
        self.transport = transport
        self.clock = clock
        self.ids = ids
        self.live: LiveLoad = MemoryLiveLoad()
        self.documents = MemoryDocuments()
        self.objects = MemoryObjects()
        self._seed = seed

    def runtime(self, name: str) -> Runtime:
        """The surroundings of one service."""
        return Runtime(
            name=name,
            instance="1",
            clock=self.clock,
            ids=self.ids,
            random=random.Random(self._seed),  # noqa: S311  jitter of a bench
            transport=self.transport(),
            documents=self.documents,
            live=self.live,
            objects=self.objects,
            log=structlog.get_logger(wrapper_class=structlog.make_filtering_bound_logger(WARNING)),
        )

    async def outlet(self, name: str) -> Outlet:
        """A started writer."""
        outlet = Outlet(self.runtime(name))
        await outlet.start()
        return outlet

    async def register(self, outlet: Outlet, nodes: int, devices: int) -> None:
        """State `nodes` nodes of `devices` devices each, as inventory would."""
        await outlet.publish(*registrations(nodes, devices))


def registrations(nodes: int, devices: int) -> list[Fact]:
    """`nodes` nodes of `devices` devices each, as inventory would state them."""
    statuses = tuple(DeviceStatus(index=index) for index in range(devices))
    return [
        Fact(
            streams.NODES,
            NodeRegistered(
                node=f"n{number}",
                revision=1,
                document={
                    "id": f"n{number}",
                    "site": f"s{number // NODES_PER_SITE}",
                    "cpu": 96,
                    "devices": {"model": "bench-card", "count": devices, "memory": "80GiB"},
                },
                session="s",
                reach=Reach.OK,
                administration=Administration.OPEN,
                health=Health.OK,
                devices=statuses,
            ),
            id=f"node-{number}",
        )
        for number in range(nodes)
    ]


#: Opens a stand for the run of a seed, its topics empty.
Opening = Callable[[int], AbstractAsyncContextManager[Stand]]


@asynccontextmanager
async def file_stand(seed: int) -> AsyncIterator[Stand]:
    """A stand on a file log in a folder that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="evenflow-bench-"))
    try:
        async with _embedded(f"embedded:{folder}", seed) as stand:
            yield stand
    finally:
        shutil.rmtree(folder)


def memory_stand(seed: int) -> AbstractAsyncContextManager[Stand]:
    """A stand on a log in memory."""
    return _embedded("embedded:", seed)


@asynccontextmanager
async def _embedded(url: str, seed: int) -> AsyncIterator[Stand]:
    clock = SystemClock()
    ids = RandomIds(clock)
    log = make_log(url, clock=clock)
    try:
        log.provision(streams.topics())
        yield Stand(lambda: EmbeddedTransport(log, clock=clock, ids=ids), clock, ids, seed)
    finally:
        log.close()
