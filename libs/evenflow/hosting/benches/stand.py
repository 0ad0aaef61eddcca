"""What benches share: a log in a fresh folder or in memory, runtimes on it, a fleet that counts as registered."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import structlog

from evenflow.core.lifecycle.node import Administration, Health, Reach
from evenflow.events import streams
from evenflow.events.contracts.inventory import DeviceStatus, NodeRegistered
from evenflow.platform.broker.codec import Fact
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.platform.broker.factory import make_log
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.clock import RandomIds, SystemClock
from evenflow.platform.runtime import Runtime
from evenflow.platform.stores.memory import MemoryDocuments, MemoryLiveLoad, MemoryObjects

WARNING: Final = 30
NODES_PER_SITE: Final = 250


class Stand:
    """One log and stores in memory."""

    def __init__(self, log: EmbeddedLog, clock: SystemClock, seed: int) -> None:
        self.log = log
        self.clock = clock
        self.ids = RandomIds(clock)
        self.live = MemoryLiveLoad()
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
            transport=EmbeddedTransport(self.log, clock=self.clock, ids=self.ids),
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


@contextmanager
def stand(*, durable: bool, seed: int = 0) -> Iterator[Stand]:
    """A stand with its topics; a durable one has the file log in a folder that is gone afterwards."""
    clock = SystemClock()
    folder = Path(tempfile.mkdtemp(prefix="evenflow-bench-")) if durable else None
    log = make_log(f"embedded:{folder}" if folder else "embedded:", clock=clock)
    try:
        log.provision(streams.topics())
        yield Stand(log, clock, seed)
    finally:
        log.close()
        if folder is not None:
            shutil.rmtree(folder)
