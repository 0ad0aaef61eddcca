"""`evenflow bench status`: how long list and status calls take while thousands of tasks wait and placement is busy.

Placement, the console and an HTTP server share this one process with the caller, as in the embedded profile. The nodes
are full and no agent runs, so everything submitted waits; submissions and cancellations keep placement's rounds going.
The floor of the same run is the server's own answer to a call that does nothing.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, Final

from evenflow.client.api import AsyncClient
from evenflow.client.calls import Call, as_it_is, condition, of_task, status, tasks, untyped
from evenflow.core.lifecycle.node import Administration, Health, Reach
from evenflow.events import streams
from evenflow.events.contracts.inventory import NodeRegistered
from evenflow.events.contracts.tasks import TaskCancelRequested, TaskSubmitted
from evenflow.hosting.composition import Composition
from evenflow.hosting.surroundings import HostSettings, Surroundings
from evenflow.platform.broker.codec import Fact
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.collector import tune_collector

DEVICES: Final = 8
CALLS: Final = 400
PACE_S: Final = 0.01
CHURN_PER_S: Final = 50
SETTLE_S_MAX: Final = 240.0
CHUNK: Final = 500
SERVICES: Final = ("placement", "console")


def status_bench(*, waiting: int = 10_000, nodes: int = 125, repetitions: int = 3) -> dict[str, Any]:
    """Run the bench; milliseconds as the caller sees them, median and 99th percentile."""
    return asyncio.run(_measure(waiting, nodes, repetitions))


async def _measure(waiting: int, nodes: int, repetitions: int) -> dict[str, Any]:
    surroundings = Surroundings(HostSettings(console_port=0, live="memory:", level="error"))
    composition = Composition(surroundings)
    composition.add_doors("console")
    for name in SERVICES:
        composition.add_service(name)
    await composition.start()
    tune_collector()
    outlet = Outlet(surroundings.runtime("bench"))
    await outlet.start()
    url = f"http://127.0.0.1:{composition.servers['console'].port}"
    try:
        async with AsyncClient(url, timeout_s=60) as client:
            await _fill(outlet, client, nodes, waiting)
            churn = asyncio.create_task(_churn(outlet, waiting))
            rounds = await _rounds(client)
            begun = time.monotonic()
            runs = [await _run(client, waiting) for _ in range(repetitions)]
            busy = (await _rounds(client) - rounds) / (time.monotonic() - begun)
            churn.cancel()
            await asyncio.gather(churn, return_exceptions=True)
    finally:
        await outlet.stop()
        await composition.stop()
    return _summed(runs, waiting=waiting, nodes=nodes, rounds_per_s=round(busy, 1))


async def _fill(outlet: Outlet, client: AsyncClient, nodes: int, waiting: int) -> None:
    """Nodes, a task for every device, and the tasks that wait; returns when all are on the list."""
    for first in range(0, nodes, CHUNK):
        await outlet.publish(*(_node(number) for number in range(first, min(nodes, first + CHUNK))))
    total = nodes * DEVICES + waiting
    for first in range(0, total, CHUNK):
        await outlet.publish(*(_task(f"t{number}") for number in range(first, min(total, first + CHUNK))))
        await asyncio.sleep(0)
    ends = time.monotonic() + SETTLE_S_MAX
    while time.monotonic() < ends:
        held = {row.queue: row.tasks for row in await client.queues()}.get("default", {})
        if held.get("queued", 0) >= waiting and sum(held.values()) >= total:
            return
        await asyncio.sleep(0.25)
    raise TimeoutError(f"placement did not list {waiting} waiting tasks within {SETTLE_S_MAX} s")


def _node(number: int) -> Fact:
    name = f"n{number}"
    document = {"id": name, "site": f"s{number % 4}", "devices": {"model": "a100-80g", "count": DEVICES}}
    body = NodeRegistered(
        node=name,
        revision=1,
        document=document,
        session="bench",
        reach=Reach.OK,
        administration=Administration.OPEN,
        health=Health.OK,
    )
    return Fact(streams.NODES, body)


def _task(name: str) -> Fact:
    raw = json.dumps({"id": name, "resources": {"cpu": 1, "devices": {"count": 1}}, "run": {"work_s": 600}}).encode()
    return Fact(streams.TASKS, TaskSubmitted(raw=raw), key=f"default/{name}")


async def _churn(outlet: Outlet, waiting: int) -> None:
    """New tasks come and old ones are cancelled, so that there is something to decide all the time."""
    number = 0
    while True:
        cancel = TaskCancelRequested(task=f"c{number - waiting // 10}")
        facts = [_task(f"c{number}")] + ([Fact(streams.TASKS, cancel)] if number >= waiting // 10 else [])
        await outlet.publish(*facts)
        number += 1
        await asyncio.sleep(1 / CHURN_PER_S)


async def _rounds(client: AsyncClient) -> int:
    found = await client.send(Call("GET", "/api/v1/rounds", as_it_is, params={"limit": 1}))
    return int(found["count"])


async def _run(client: AsyncClient, waiting: int) -> dict[str, list[float]]:
    """Paced calls of each kind, one after the other; answers are taken as JSON, as a shell script would."""
    taken: dict[str, list[float]] = {"floor": [], "list": [], "status": [], "why": []}
    page = ""
    for number in range(CALLS):
        listing = untyped(tasks(state="queued", limit=100, after=page))
        page = (await _timed(client, listing, taken["list"]))["next"]
        task = f"t{(number * 7919) % waiting}"
        await _timed(client, untyped(status(task, "default")), taken["status"])
        await _timed(client, of_task(task, "why", "default"), taken["why"])
        await _timed(client, condition("health"), taken["floor"])
    return taken


async def _timed(client: AsyncClient, call: Call[Any], into: list[float]) -> Any:
    await asyncio.sleep(PACE_S)
    begun = time.perf_counter()
    found = await client.send(call)
    into.append((time.perf_counter() - begun) * 1000)
    return found


def _summed(runs: list[dict[str, list[float]]], **more: Any) -> dict[str, Any]:
    asked = [[*run["list"], *run["status"]] for run in runs]
    every = [value for run in asked for value in run]
    tails = [_percentile(run, 99) for run in asked]
    shown: dict[str, Any] = {
        "bench": "status",
        **more,
        "p50_ms": _percentile(every, 50),
        "p99_ms": _percentile(every, 99),
        "spread": [min(tails), max(tails)],
    }
    for name in ("list", "status", "why", "floor"):
        of_kind = [value for run in runs for value in run[name]]
        shown[f"{name}_p50_ms"], shown[f"{name}_p99_ms"] = _percentile(of_kind, 50), _percentile(of_kind, 99)
    return shown


def _percentile(values: list[float], percent: int) -> float:
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, len(ordered) * percent // 100)], 2)
