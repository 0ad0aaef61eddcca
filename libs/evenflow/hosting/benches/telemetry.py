"""`evenflow bench telemetry`: device samples a second and core, from records on the log into packed load frames.

Everything inventory does is in: reading, envelope, body, replay window, liveness, rows, one flush a round. The floor of
the same run parses the same bytes and writes the same rows, with no log, envelope, window or contract.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import numpy as np

from evenflow.core.errors import Refused
from evenflow.core.probing.load_frame import DEVICE_ROW
from evenflow.events import streams
from evenflow.events.contracts.agent import DeviceLoad, NodeAnnounced, NodeHeartbeat
from evenflow.events.envelope import AgentStamp
from evenflow.hosting.benches.on_kafka import stands_of
from evenflow.hosting.benches.stand import Opening, Stand, memory_stand
from evenflow.inventory.main import build
from evenflow.inventory.settings import InventorySettings
from evenflow.platform.broker.codec import Encoded, Fact, encode
from evenflow.platform.collector import tune_collector
from evenflow.platform.stores.factory import open_live

DEVICES: Final = 8
NODES_PER_SITE: Final = 250
WAIT_MAX_MS: Final = 300_000
#: Until the new nodes are written to the document view, which happens once.
SETTLE_S: Final = 2.5


def telemetry_bench(
    *, nodes: int = 1_250, repetitions: int = 3, beats_per_node: int = 8, profile: str = "embedded"
) -> dict[str, Any]:
    """Run the bench; rates are per second of processor time of this one process.

    With the profile `server` the log is Apache Kafka and the frames go to the Redis of EVENFLOW_HOST_LIVE, emptied
    first and last. Raises Refused without them.
    """
    opening: Opening = memory_stand
    if profile != "embedded":
        opening, _ = stands_of(profile)
        opening = _with_redis(opening, os.environ.get("EVENFLOW_HOST_LIVE", ""))
    rates = [asyncio.run(_rate(opening, nodes, beats_per_node, seed)) for seed in range(repetitions)]
    floors = [_floor(nodes * beats_per_node, seed) for seed in range(repetitions)]
    rate, floor = sorted(rates)[len(rates) // 2], sorted(floors)[len(floors) // 2]
    return {
        "bench": "telemetry",
        "profile": profile,
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


async def _rate(opening: Opening, nodes: int, beats_per_node: int, seed: int) -> float:
    tune_collector()
    async with opening(seed) as bench:
        outlet = await bench.outlet("agents")
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
        inventory = build(bench.runtime("inventory"), InventorySettings(judge_period_ms=60_000))
        await inventory.start()
        await _until_read(inventory)
        await bench.clock.sleep(SETTLE_S)
        await outlet.send(_beats(nodes, beats_per_node, seed))
        started = time.process_time()
        await _until_read(inventory)
        spent = time.process_time() - started
        await inventory.stop()
        await outlet.stop()
        frames = await bench.live.frames(await bench.live.sites())
        if len(frames) != -(-nodes // NODES_PER_SITE):
            raise RuntimeError(f"only {len(frames)} load frames were written")
        return nodes * beats_per_node * DEVICES / spent


def _with_redis(opening: Opening, url: str) -> Opening:
    if not url.startswith("redis"):
        raise Refused("--profile server needs a Redis in EVENFLOW_HOST_LIVE: make up PROFILE=local FRESH=1")

    @asynccontextmanager
    async def opened(seed: int) -> AsyncIterator[Stand]:
        async with opening(seed) as bench:
            bench.live = open_live(url)
            if await bench.live.sites():
                raise Refused(f"the Redis at {url} holds load frames, which the bench would overwrite")
            try:
                yield bench
            finally:
                await bench.live.clear()
                await bench.live.close()

    return opened


async def _until_read(inventory: Any) -> None:
    clock = inventory.runtime.clock
    deadline_ms = clock.monotonic_ms() + WAIT_MAX_MS
    group = f"evenflow.inventory.{streams.TELEMETRY.name}"
    while not (lags := await inventory.runtime.transport.lag(group)) or sum(lags.values()):
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
