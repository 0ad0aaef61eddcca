"""`evenflow bench path`: from submission to assignment through the log, as one `read_committed` subscriber sees it.

Placement alone runs on the log: agents, console and billing are off. Three records leave per assignment (assignment,
desired state, state row), in one transaction a round. At saturation all tasks are written as fast as the log takes them
and the rate counts from the first submission to the last assignment seen; at a pace the delay of each task counts. The
floor of the same run is, on the file log, the same path with an empty decision: each task gets the next node in turn,
unseen. On Apache Kafka (`--profile server`) it is a plain client's loop that writes the same records (`on_kafka`).
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, TypeVar

from aiokafka import TopicPartition

from evenflow.core.placement.engine import round as engine_round
from evenflow.core.placement.plan import Demand, Place, Placement, Plan
from evenflow.events import streams
from evenflow.events.contracts.tasks import TaskSubmitted
from evenflow.hosting.benches.on_kafka import PlainLoop, Sample, samples, stands_of
from evenflow.hosting.benches.stand import Opening, Stand
from evenflow.placement.main import build
from evenflow.placement.settings import PlacementSettings
from evenflow.platform.broker.codec import Encoded, Fact, encode
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.collector import look_at_all, tune_collector

DEVICES: Final = 8
SHARES: Final = ("0.1", "0.2", "0.25", "0.3", "0.5")
CORES: Final = (0.5, 1, 2, 3)
TICK_S: Final = 0.002
WAIT_MAX_S: Final = 300.0
SETTLE_S: Final = 1.0
CHUNK: Final = 500

Engine = Callable[..., Plan]
Figures = TypeVar("Figures")


def path_bench(
    *, nodes: int = 1_250, rate: int = 500, profile: str = "embedded", repetitions: int = 3, tasks: int = 20_000
) -> dict[str, Any]:
    """Run the bench: `tasks` at saturation, then ten seconds at `rate` a second, each on a log of its own.

    Raises Refused for a profile that this process can't make.
    """
    opening, servers = stands_of(profile)
    tune_collector()
    seeds = range(repetitions)
    if servers:
        written = dict[str, Sample]()

        async def look() -> None:
            written.update(await samples(servers))

        saturated = [_measured(_saturated(opening, nodes, tasks, seed, engine_round, look)) for seed in seeds]
        floors = [_measured(_plain(opening, PlainLoop(servers, written), tasks, seed)) for seed in seeds]
    else:
        saturated = [_measured(_saturated(opening, nodes, tasks, seed, engine_round)) for seed in seeds]
        floors = [_measured(_saturated(opening, nodes, tasks, seed, _TurnByTurn(nodes))) for seed in seeds]
    paced = _measured(_paced(opening, nodes, rate, seed=repetitions))
    chosen, floor = statistics.median(saturated), statistics.median(floors)
    return {
        "bench": "path",
        "nodes": nodes,
        "profile": profile,
        "assignments_per_s": round(chosen),
        "floor_per_s": round(floor),
        "ratio": round(chosen / floor, 4),
        "spread": [round(min(saturated)), round(max(saturated))],
        "rate": rate,
        "p50_ms": round(paced[len(paced) // 2], 3),
        "p99_ms": round(paced[len(paced) * 99 // 100], 3),
    }


def _measured(one: Coroutine[Any, Any, Figures]) -> Figures:
    """What `one` measures in a process without the remains of the measurement before it."""
    look_at_all()
    return asyncio.run(one)


class _TurnByTurn:
    """The empty decision: node after node, whatever they hold."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._next = 0

    def __call__(self, _snapshot: Any, _queues: Any, demands: Iterable[Demand], _policy: Any, _now_ms: int) -> Plan:
        return Plan(tuple(self._placed(demand) for demand in demands))

    def _placed(self, demand: Demand) -> Placement:
        self._next = (self._next + 1) % (self._nodes * DEVICES)
        node, device = divmod(self._next, DEVICES)
        asked = demand.task.resources
        place = Place(
            member=0,
            node=f"n{node}",
            site="s0",
            devices=((device, asked.devices.share_milli),),
            cpu_milli=0,
            memory_bytes=0,
            disk_bytes=0,
        )
        return Placement(demand, (place,))


def _submissions(count: int, seed: int) -> list[Encoded]:
    chance = random.Random(seed)  # noqa: S311  load of a bench
    out = []
    for number in range(count):
        document = {
            "id": f"t{number}",
            "run": {"work_s": 600},
            "resources": {
                "cpu": chance.choice(CORES),
                "memory": f"{chance.choice((1, 2, 4))}GiB",
                "devices": {"share": chance.choice(SHARES)},
            },
        }
        body = TaskSubmitted(raw=json.dumps(document).encode())
        fact = Fact(streams.TASKS, body, key=f"default/t{number}", id=f"submit-{number}")
        out.append(encode(fact, source="bench", now_ms=1_767_225_600_000))
    return out


class Subscriber:
    """Notes when it sees each task assigned."""

    def __init__(self, bench: Stand) -> None:
        self._consumer = bench.runtime("subscriber").transport.consumer(client_id="subscriber")
        self._loop = asyncio.get_running_loop()
        self.seen: dict[bytes, float] = {}

    async def start_at_the_end(self) -> None:
        """Pass over what is there already; then `run`."""
        await self._begin()
        await self._consumer.seek_to_end()
        for partition in self._consumer.assignment():
            await self._consumer.position(partition)

    async def run(self, until: int) -> None:
        """Read until `until` tasks are assigned."""
        if not self._consumer.assignment():
            await self._begin()
        while len(self.seen) < until:
            for records in (await self._consumer.getmany(timeout_ms=1_000, max_records=2_000)).values():
                now = self._loop.time()
                for record in records:
                    if record.key and dict(record.headers)["ce_type"] == b"task.assigned":
                        self.seen.setdefault(record.key, now)
        await self._consumer.stop()

    async def _begin(self) -> None:
        await self._consumer.start()
        topic = streams.ASSIGNMENTS
        self._consumer.assign([TopicPartition(topic.name, index) for index in range(topic.partitions)])


async def _begun(bench: Stand, nodes: int, engine: Engine) -> tuple[Any, Outlet]:
    outlet = await bench.outlet("bench")
    await bench.register(outlet, nodes, DEVICES)
    service = build(bench.runtime("placement"), PlacementSettings(), engine)
    await service.start()
    while not service.leading:
        await bench.clock.sleep(0.01)
    await bench.clock.sleep(SETTLE_S)
    return service, outlet


async def _saturated(
    opening: Opening,
    nodes: int,
    tasks: int,
    seed: int,
    engine: Engine,
    look: Callable[[], Awaitable[None]] | None = None,
) -> float:
    """Assignments a second; `look` is awaited before the stand is closed."""
    async with opening(seed) as bench:
        service, outlet = await _begun(bench, nodes, engine)
        rate = await _rate(bench, outlet, _submissions(tasks, seed))
        await service.stop()
        await outlet.stop()
        if look is not None:
            await look()
        return rate


async def _plain(opening: Opening, loop: PlainLoop, tasks: int, seed: int) -> float:
    """The same of the plain client's loop."""
    async with opening(seed) as bench:
        outlet = await bench.outlet("bench")
        await loop.start()
        await bench.clock.sleep(SETTLE_S)
        rate = await _rate(bench, outlet, _submissions(tasks, seed))
        await loop.stop()
        await outlet.stop()
        return rate


async def _rate(bench: Stand, outlet: Outlet, submissions: list[Encoded]) -> float:
    subscriber = Subscriber(bench)
    loop = asyncio.get_running_loop()
    began = loop.time()
    reading = loop.create_task(subscriber.run(len(submissions)))
    for start in range(0, len(submissions), CHUNK):
        await outlet.send(submissions[start : start + CHUNK])
    await asyncio.wait_for(reading, WAIT_MAX_S)
    return len(submissions) / (max(subscriber.seen.values()) - began)


async def _paced(opening: Opening, nodes: int, rate: int, *, seed: int, seconds: int = 10) -> list[float]:
    """Delays in milliseconds, ascending; the first second warms up and does not count."""
    async with opening(seed) as bench:
        warm, count = rate, rate * seconds
        submissions = _submissions(warm + count, seed)
        service, outlet = await _begun(bench, nodes, engine_round)
        subscriber = Subscriber(bench)
        loop = asyncio.get_running_loop()
        reading = loop.create_task(subscriber.run(warm + count))
        sent: dict[bytes, float] = {}
        began, done = loop.time(), 0
        while done < len(submissions):
            due = min(len(submissions), int((loop.time() - began) * rate) + 1)
            batch: Sequence[Encoded] = submissions[done:due]
            now = loop.time()
            sent |= dict.fromkeys((record.key for record in batch), now)
            if batch:
                await outlet.send(batch)
            done = due
            await bench.clock.sleep(TICK_S)
        await asyncio.wait_for(reading, WAIT_MAX_S)
        await service.stop()
        await outlet.stop()
        counted = [record.key for record in submissions[warm:]]
        return sorted((subscriber.seen[key] - sent[key]) * 1000 for key in counted)
