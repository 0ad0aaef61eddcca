"""The demo as a scenario document: the joined pool, or the same with every task pinned to its home.

What is recorded and what is made up: nodes, tasks, durations, links, link prices and the prices of T4 and V100 are
recorded; homes are drawn by a seeded hash; dataset sizes, the other device prices and the checkpoint interval are
synthetic, by one fixed rule each. The trace does not say how fast a device is for a task, so all devices count as
equally fast: their models carry the trace's own names, which the catalogue does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from evenflow.core.units import MILLI, milli_text, money_text
from evenflow.sim.demo import sample
from evenflow.sim.demo.fleet import SiteFleet
from evenflow.sim.demo.sample import SampleLink, SampleNode, SampleTask, draw

#: USD per device and hour. T4 and V100 are list-price medians; the others are synthetic.
PRICES: Final = {
    "t4": "0.82",
    "v100m16": "1.00",
    "v100m32": "1.00",
    "p100": "0.60",
    "a10": "1.20",
    "g2": "1.60",
    "g3": "2.40",
}
#: Synthetic: every site holds one dataset of each size; a task reads one of its home's, drawn by its name.
DATASET_GB: Final = (5, 10, 20, 40, 80, 160)
CHECKPOINT_EVERY_S: Final = 1_800
#: A promise of run time is the duration rounded up to whole ten minutes.
DECLARED_STEP_S: Final = 600
#: Life signs and idle periods as slow as six hours of load allow; the defaults suit seconds.
SETTINGS: Final = {
    "receipt_gather_s": 0.6,
    "heartbeat_s": 450,
    "suspect_after_s": 500,
    "silence_tolerance_s": 1_000,
    "judge_period_s": 30,
    "flush_period_s": 60,
    "prune_period_s": 600,
    "archive_period_s": 60,
    "poll_wait_s": 600,
    "declare_period_s": 60,
    "probe_period_s": 1_800,
    "round_period_s": 600,
    "gather_s": 0.5,
    "snapshot_period_s": 3_600,
}
SETTLES_BEFORE_S: Final = 600
LOSS_LASTS_S: Final = 1_800
#: Everything that arrived has ended this long after the last arrival, or the run does not hold.
ENDS_AFTER_S: Final = 5 * 3_600
REGIONS: Final = {"frankfurt": "europe", "dublin": "europe", "ohio": "america", "las-vegas": "america"}
CITIES: Final = {"frankfurt": "Frankfurt", "dublin": "Dublin", "ohio": "Columbus", "las-vegas": "Las Vegas"}


def scene(
    tasks: Sequence[SampleTask], fleets: Sequence[SiteFleet], links: Sequence[SampleLink], *, joined: bool, seed: int
) -> dict[str, Any]:
    """The scenario document of one world."""
    last_s = -(-max(task.at_ms for task in tasks) // MILLI)
    name = "joined" if joined else "isolated"
    return {
        "version": 1,
        "name": f"demo-{name}",
        "about": f"recorded tasks on recorded nodes over four sites, {name}",
        "seed": seed,
        "until": last_s + ENDS_AFTER_S,
        "settings": SETTINGS,
        "policy": {"name": "default", "billing": {"currency": "USD"}},
        "sites": [{"id": site, "region": REGIONS[site], "city": CITIES[site]} for site in sample.SITES],
        "links": [_link(link) for link in links],
        "nodes": [_node(node, fleet.site) for fleet in fleets for node in fleet.nodes],
        "queues": [{"id": queue} for queue in sorted({task.queue for task in tasks})],
        "datasets": [
            {"id": _dataset(site, size), "size": f"{size}GB", "copies": [{"site": site, "authoritative": True}]}
            for site in sample.SITES
            for size in DATASET_GB
        ],
        "steps": [
            *({"at": task.at_ms / MILLI, "submit": _task(task, joined=joined, seed=seed)} for task in tasks),
            *_loss(fleets, last_s // 2),
            {"at": last_s + ENDS_AFTER_S - SETTLES_BEFORE_S, "settle": {}},
        ],
        "expect": [],
    }


def _link(link: SampleLink) -> dict[str, Any]:
    return {
        "from": link.source,
        "to": link.target,
        "round_trip_ms": link.round_trip_us / MILLI,
        "bandwidth": link.bandwidth_bits,
        "price_per_gb": money_text(link.price_per_gb_micro),
        "both_ways": False,
    }


def _node(node: SampleNode, site: str) -> dict[str, Any]:
    return {
        "id": node.name,
        "site": site,
        "cpu": milli_text(node.cpu_milli),
        "memory": f"{node.memory_mib}MiB",
        "devices": {"model": f"openb-{node.model}", "count": node.device_count},
        "price_per_hour": PRICES[node.model],
    }


def _dataset(site: str, size_gb: int) -> str:
    return f"{site}-{size_gb}gb"


def _task(task: SampleTask, *, joined: bool, seed: int) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": task.name,
        "queue": task.queue,
        "labels": {"home": task.home},
        "run": {"work_s": task.run_s},
        "declared_s": -(-task.run_s // DECLARED_STEP_S) * DECLARED_STEP_S,
        "resources": {"cpu": milli_text(task.cpu_milli), "memory": f"{task.memory_mib}MiB"},
        "checkpoint": {"every_s": CHECKPOINT_EVERY_S, "size": "1GB", "parts": 2},
        "data": [{"dataset": _dataset(task.home, DATASET_GB[draw(seed, "data", task.name) % len(DATASET_GB)])}],
    }
    if task.device_count == 1 and task.device_milli < MILLI:
        document["resources"]["devices"] = {"share": milli_text(task.device_milli)}
    elif task.device_count:
        document["resources"]["devices"] = {"count": task.device_count}
    if not joined:
        document["where"] = {"sites": [task.home]}
    return document


def _loss(fleets: Sequence[SiteFleet], at_s: int) -> list[dict[str, Any]]:
    """The first 8-device node of the busiest site loses power half-way and comes back empty."""
    lost = next(node.name for node in fleets[0].nodes if node.device_count == 8)
    return [
        {"at": at_s, "node": {"kill": lost}},
        {"at": at_s + LOSS_LASTS_S, "node": {"restart": lost}},
    ]
