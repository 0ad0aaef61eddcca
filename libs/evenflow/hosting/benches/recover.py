"""`evenflow bench recover`: from the start of a placement process to its first assignment, with many tasks alive.

A pool is filled through placement itself, an image of its state is written, and the process is let go. The next one
fences, restores image and tail, and assigns a task that waits on the log. The floor of the same run is a plain client
that reads the state's topic from its first record to its last and parses each row.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from aiokafka import TopicPartition

from evenflow.core.placement.engine import round as engine_round
from evenflow.events import streams
from evenflow.events.contracts.tasks import TaskSubmitted
from evenflow.hosting.benches.on_kafka import stands_of
from evenflow.hosting.benches.path import CHUNK, DEVICES, Subscriber
from evenflow.hosting.benches.stand import Stand
from evenflow.placement.main import build
from evenflow.placement.settings import PlacementSettings
from evenflow.platform.broker.codec import Encoded, Fact, encode
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.collector import tune_collector

#: A tenth of a device: so many tasks fill a node.
TASKS_PER_NODE: Final = 10 * DEVICES
FILL_MAX_S: Final = 900.0
IMAGE_MAX_S: Final = 120.0
IMAGE_PERIOD_MS: Final = 10_000
STATE: Final = TopicPartition(streams.PLACEMENT_STATE.name, 0)


def recover_bench(*, tasks: int = 100_000, nodes: int = 0, profile: str = "embedded") -> dict[str, Any]:
    """Run the bench once; without `nodes` as many as the tasks fill, and one more. Raises Refused as `path_bench`."""
    opening, _ = stands_of(profile)
    tune_collector()

    async def measured() -> dict[str, Any]:
        async with opening(0) as bench:
            return await _recovered(bench, tasks, max(nodes, -(-tasks // TASKS_PER_NODE) + 1))

    return {"bench": "recover", "profile": profile, "tasks": tasks, **asyncio.run(measured())}


def _submission(number: int) -> Encoded:
    document = {"id": f"t{number}", "run": {"work_s": 86_400}, "resources": {"cpu": "0.5", "devices": {"share": "0.1"}}}
    body = TaskSubmitted(raw=json.dumps(document).encode())
    fact = Fact(streams.TASKS, body, key=f"default/t{number}", id=f"submit-{number}")
    return encode(fact, source="bench", now_ms=1_767_225_600_000)


async def _recovered(bench: Stand, tasks: int, nodes: int) -> dict[str, Any]:
    outlet = await bench.outlet("bench")
    await bench.register(outlet, nodes, DEVICES)
    settings = PlacementSettings(snapshot_period_ms=IMAGE_PERIOD_MS, round_period_ms=IMAGE_PERIOD_MS)
    service = build(bench.runtime("placement"), settings, engine_round)
    await service.start()
    await _fill(bench, outlet, tasks)
    await _image_of_all(bench)
    await service.stop()
    floor_s = await _read_plainly(bench)
    await outlet.send([_submission(tasks)])
    subscriber = Subscriber(bench)
    await subscriber.start_at_the_end()
    loop = asyncio.get_running_loop()
    began = loop.time()
    service = build(bench.runtime("placement"), settings, engine_round)
    reading = loop.create_task(subscriber.run(1))
    await service.start()
    while not service.leading:
        await bench.clock.sleep(0.01)
    led_s = loop.time() - began
    await asyncio.wait_for(reading, FILL_MAX_S)
    recover_s = subscriber.seen[f"default/t{tasks}".encode()] - began
    await service.stop()
    await outlet.stop()
    return {
        "nodes": nodes,
        "recover_s": round(recover_s, 3),
        "led_s": round(led_s, 3),
        "floor_s": round(floor_s, 3),
        "ratio": round(recover_s / floor_s, 4),
    }


async def _fill(bench: Stand, outlet: Outlet, tasks: int) -> None:
    subscriber = Subscriber(bench)
    reading = asyncio.get_running_loop().create_task(subscriber.run(tasks))
    for start in range(0, tasks, CHUNK):
        await outlet.send([_submission(number) for number in range(start, min(tasks, start + CHUNK))])
    await asyncio.wait_for(reading, FILL_MAX_S)


async def _image_of_all(bench: Stand) -> None:
    """Wait until no newer image comes: the state rests, so the last one holds it all."""
    async with asyncio.timeout(IMAGE_MAX_S):
        newest: list[str] = []
        while not (found := await _images(bench)) or found[-1:] != newest:
            newest = found[-1:]
            await bench.clock.sleep(1.5 * IMAGE_PERIOD_MS / 1_000)


async def _images(bench: Stand) -> list[str]:
    return [path for path in await bench.objects.paths("placement/default/") if path.endswith("manifest.json")]


async def _read_plainly(bench: Stand) -> float:
    consumer = bench.runtime("floor").transport.consumer(client_id="floor")
    await consumer.start()
    loop = asyncio.get_running_loop()
    try:
        consumer.assign([STATE])
        end = (await consumer.end_offsets([STATE]))[STATE]
        began = loop.time()
        await consumer.seek_to_beginning(STATE)
        while await consumer.position(STATE) < end:
            for records in (await consumer.getmany(STATE, timeout_ms=50, max_records=2_000)).values():
                for record in records:
                    json.loads(record.value or b"null")
        return loop.time() - began
    finally:
        await consumer.stop()
