"""`evenflow bench telemetry`: device samples a second and core, from records on the log into packed load frames.

Everything inventory does is in: reading, envelope, body, replay window, liveness, rows, one flush a round. The floor of
the same run parses the same bytes and writes the same rows, with no log, envelope, window or contract.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from typing import Any, Final

import numpy as np
import structlog

from evenflow.core.probing.load_frame import DEVICE_ROW
from evenflow.events import streams
from evenflow.events.contracts.agent import DeviceLoad, NodeAnnounced, NodeHeartbeat
from evenflow.events.envelope import AgentStamp
from evenflow.inventory.main import build
from evenflow.inventory.settings import InventorySettings
from evenflow.platform.broker.codec import Encoded, Fact, encode
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.storage.memory import MemoryStorage
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.clock import RandomIds, SystemClock
from evenflow.platform.collector import tune_collector
from evenflow.platform.runtime import Runtime
from evenflow.platform.stores.memory import MemoryDocuments, MemoryLiveLoad, MemoryObjects

DEVICES: Final = 8
NODES_PER_SITE: Final = 250
WAIT_MAX_MS: Final = 300_000
#: Until the new nodes are written to the document view, which happens once.
SETTLE_S: Final = 2.5


def telemetry_bench(*, nodes: int = 1_250, repetitions: int = 3, beats_per_node: int = 8) -> dict[str, Any]:
    """Run the bench; rates are per second of processor time of this one process."""
    rates = [asyncio.run(_rate(nodes, beats_per_node, seed)) for seed in range(repetitions)]
    floors = [_floor(nodes * beats_per_node, seed) for seed in range(repetitions)]
    rate, floor = sorted(rates)[len(rates) // 2], sorted(floors)[len(floors) // 2]
    return {
        "bench": "telemetry",
        "nodes": nodes,
        "devices_per_node": DEVICES,
        "samples_per_s": round(rate),
        "floor_per_s": round(floor),
        "ratio": round(rate / floor, 4),
        "spread": [round(min(rates)), round(max(rates))],
    }


def _beats(nodes: int, beats_per_node: int, seed: int) -> list[Encoded]:
    chance = random.Random(seed)  # noqa: S311  load of a bench
    out = []
    for number in range(1, beats_per_node + 1):
        for node in range(nodes):
            name = f"n{node}"
            devices = tuple(
                DeviceLoad(
                    used_milli=chance.randrange(1001),
                    memory_used_bytes=chance.randrange(80 * 2**30),
                    utilisation_milli=chance.randrange(1001),
                )
                for _ in range(DEVICES)
            )
            body = NodeHeartbeat.of(devices, node=name, session="s1", at_ms=number * 1000)
            stamp = AgentStamp(name, "s1", number, signature="00" * 16)
            fact = Fact(streams.TELEMETRY, body, id=f"{name}-{number}", stamp=stamp)
            out.append(encode(fact, source="agent", now_ms=1_767_225_600_000 + number))
    return out


async def _rate(nodes: int, beats_per_node: int, seed: int) -> float:
    tune_collector()
    clock = SystemClock()
    ids = RandomIds(clock)
    log = EmbeddedLog(clock=clock, storage=MemoryStorage())
    log.provision(streams.topics())
    live = MemoryLiveLoad()

    def runtime(name: str) -> Runtime:
        return Runtime(
            name=name,
            instance="1",
            clock=clock,
            ids=ids,
            random=random.Random(seed),  # noqa: S311  jitter of a bench
            transport=EmbeddedTransport(log, clock=clock, ids=ids),
            documents=MemoryDocuments(),
            live=live,
            objects=MemoryObjects(),
            log=structlog.get_logger(wrapper_class=structlog.make_filtering_bound_logger(40)),
        )

    outlet = Outlet(runtime("agents"))
    await outlet.start()
    announcements = [
        NodeAnnounced(
            node=f"n{node}",
            session="s1",
            agent_version="0.1",
            document={"id": f"n{node}", "site": f"s{node // NODES_PER_SITE}", "devices": {"count": DEVICES}},
        )
        for node in range(nodes)
    ]
    await outlet.publish(*(Fact(streams.TELEMETRY, body) for body in announcements))
    inventory = build(runtime("inventory"), InventorySettings(judge_period_ms=60_000))
    await inventory.start()
    await _until_read(inventory)
    await clock.sleep(SETTLE_S)
    await outlet.send(_beats(nodes, beats_per_node, seed))
    started = time.process_time()
    await _until_read(inventory)
    spent = time.process_time() - started
    await inventory.stop()
    frames = await live.frames(await live.sites())
    if len(frames) != -(-nodes // NODES_PER_SITE):
        raise RuntimeError(f"only {len(frames)} load frames were written")
    return nodes * beats_per_node * DEVICES / spent


async def _until_read(inventory: Any) -> None:
    clock = inventory.runtime.clock
    deadline_ms = clock.monotonic_ms() + WAIT_MAX_MS
    group = f"evenflow.inventory.{streams.TELEMETRY.name}"
    while sum((await inventory.runtime.transport.lag(group)).values()):
        if clock.monotonic_ms() > deadline_ms:
            raise TimeoutError("inventory did not read all telemetry")
        await clock.sleep(0.005)


def _floor(beats: int, seed: int) -> float:
    values = [record.value or b"" for record in _beats(min(beats, 2_000), 1, seed)]
    rows = np.zeros(DEVICES * len(values), DEVICE_ROW)
    memory, used, utilisation = rows["memory_used_bytes"], rows["used_milli"], rows["utilisation_milli"]
    rounds = max(1, beats // len(values))
    started = time.process_time()
    for _ in range(rounds):
        for number, value in enumerate(values):
            beat = json.loads(value)
            place = slice(number * DEVICES, (number + 1) * DEVICES)
            memory[place] = beat["device_memory_used_bytes"]
            used[place] = beat["device_used_milli"]
            utilisation[place] = beat["device_utilisation_milli"]
    return rounds * len(values) * DEVICES / (time.process_time() - started)
