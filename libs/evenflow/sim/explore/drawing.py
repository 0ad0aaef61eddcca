"""Drawing a world from a seed: fleet, queues, data, load, and then faults of different kinds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from evenflow.sim.explore.faults import FAULTS
from evenflow.sim.explore.scene import FAULT_SPAN_S, Document, Scene

SITES: Final = (2, 3)
NODES: Final = (4, 7)
TASKS: Final = (12, 28)
#: Faults of a world, all of different kinds.
FAULT_COUNT: Final = (3, 6)
#: Periods of what looks around by itself: long, because every look costs and hardly any changes what is tried here.
PERIODS: Final = {
    "judge_period_s": 2,
    "flush_period_s": 5,
    "archive_period_s": 5,
    "declare_period_s": 10,
    "prune_period_s": 20,
    "probe_period_s": 60,
    "reasons_period_s": 5,
}
MODELS: Final = ("a100-80g", "t4")
#: Part of the tasks that go to the queue of three tenths.
TENTHS: Final = 0.12
#: Tasks that ask for a model that nobody has.
OTHER_MODEL: Final = (0.57, 0.6)
#: Tasks without devices that stay on one node, whatever happens to it.
STAYS: Final = (0.8, 0.88)
SHARES: Final = ("0.1", "0.25", "0.3", "0.5", "0.7")


def draw(seed: int, kinds: Sequence[str] | None = None) -> tuple[Document, tuple[str, ...]]:
    """The scenario document of a seed, and the kinds of fault in it. `kinds` limits what is drawn from; None = all.

    Raises KeyError for a kind that is not in FAULTS.
    """
    scene = Scene(seed, random.Random(f"explore/{seed}"))
    _sites(scene)
    _fleet(scene)
    _queues(scene)
    _data(scene)
    _rules(scene)
    _load(scene)
    pool = sorted(FAULTS) if kinds is None else list(kinds)
    count = min(len(pool), scene.chance.randint(*FAULT_COUNT))
    chosen = tuple(sorted(scene.chance.sample(pool, count)))
    for kind in chosen:
        FAULTS[kind].plan(scene)
    return scene.document(f"drawn from seed {seed}: {', '.join(chosen) or 'no faults'}"), chosen


def _sites(scene: Scene) -> None:
    chance = scene.chance
    names = ["east", "west", "north"][: chance.randint(*SITES)]
    scene.sites = [{"id": name, "region": f"r{chance.randint(1, 2)}"} for name in names]
    scene.links = [
        {
            "from": names[index],
            "to": names[(index + 1) % len(names)],
            "round_trip_ms": chance.randint(5, 120),
            "bandwidth": f"{chance.choice((1, 5, 10))}Gbit/s",
            "price_per_gb": chance.choice(("0", "0.02", "0.09")),
        }
        for index in range(len(names) if len(names) > 2 else 1)
    ]


def _fleet(scene: Scene) -> None:
    chance = scene.chance
    count = chance.randint(*NODES)
    for number in range(1, count + 1):
        site = scene.sites[(number - 1) % len(scene.sites)]["id"]
        node: Document = {"id": f"n{number}", "site": site, "cpu": chance.choice((4, 8, 16)), "memory": "64GiB"}
        if number <= 2 or chance.random() < 0.8:
            # Two nodes have room for the widest gang, so that most draws are satisfiable.
            node["devices"] = {
                "model": MODELS[0] if number <= 2 else chance.choice(MODELS),
                "count": chance.choice((2, 4)),
            }
            node["price_per_hour"] = chance.choice(("0.82", "1.00", "3.67"))
        node["cpu_price_per_hour"] = chance.choice(("0", "0.04", "0.11"))
        scene.nodes.append(node)


def _queues(scene: Scene) -> None:
    chance = scene.chance
    for name in ("research", "batch"):
        queue: Document = {"id": name, "limit": {}, "order": chance.choice(("default", "default", "strict"))}
        if chance.random() < 0.6:
            queue["limit"] = {"devices": str(chance.choice((2, 3, "2.5", 4)))}
        scene.queues.append(queue)
    # Tenths that add up exactly, which they do not in binary fractions.
    scene.queues.append({"id": "tenths", "limit": {"devices": "0.3"}})


def _data(scene: Scene) -> None:
    if scene.chance.random() < 0.5:
        site = scene.chance.choice(scene.site_ids())
        scene.datasets = [{"id": "d", "size": "2GB", "copies": [{"site": site, "authoritative": True}]}]


def _rules(scene: Scene) -> None:
    chance = scene.chance
    heartbeat_s = chance.choice((6, 10, 15))
    scene.settings = {
        "heartbeat_s": heartbeat_s,
        "suspect_after_s": round(heartbeat_s * 1.5, 3),
        "silence_tolerance_s": heartbeat_s * 3,
        "stop_grace_s": chance.choice((2, 5, 10)),
        "snapshot_period_s": chance.choice((20, 60)),
        "poll_wait_s": chance.choice((20, 60)),
        "hold_off_s": chance.choice((0, 20)),
        "object_store_s": chance.choice((0.003, 0.02, 0.06)),
        "through_console": chance.random() < 0.4,
        "ended_task_count_max": 10,
        **PERIODS,
    }


def _load(scene: Scene) -> None:
    chance = scene.chance
    for number in range(1, chance.randint(*TASKS) + 1):
        task = _task(scene, f"t{number}")
        at_s = scene.moment(0.0, FAULT_SPAN_S * 0.6)
        scene.tasks.append(task)
        scene.step(at_s, "submit", task)
        event = chance.random()
        if event < 0.06:
            scene.step(at_s + scene.span(0.05, 60), "cancel", {"task": task["id"], "reason": "drawn"})
        elif event < 0.1:
            scene.step(
                at_s + scene.span(0.05, 60), "reprioritise", {"task": task["id"], "priority": chance.randint(0, 100)}
            )
        elif event < 0.13:
            scene.step(at_s + scene.span(0.05, 30), "submit", task)


def _task(scene: Scene, name: str) -> Document:
    chance = scene.chance
    kind = chance.random()
    resources: Document = {"cpu": chance.choice(("0.5", 1, 2)), "memory": "1GiB"}
    # A name that is not tidy: it must come back as it is.
    task: Document = {
        "id": name,
        "name": f" Task {name} ",
        "run": {"work_s": scene.span(1, 40)},
        "resources": resources,
    }
    if kind < 0.35:
        resources["devices"] = {"share": chance.choice(SHARES)}
    elif kind < 0.6:
        resources["devices"] = {"count": chance.choice((1, 1, 2))}
    elif kind < 0.8:
        # One device a member: the pool always has four of them on two nodes.
        resources["devices"] = {"count": 1}
        task["members"] = chance.choice((2, 2, 3, 4))
    if OTHER_MODEL[0] <= kind < OTHER_MODEL[1]:
        resources["devices"]["models"] = ["a100"]  # of which there is none: the fleet's name goes on
    if kind < TENTHS:
        resources["devices"] = {"share": chance.choice(("0.1", "0.2"))}
        task["queue"] = "tenths"
    elif chance.random() < 0.5:
        task["queue"] = chance.choice(("research", "batch"))
    if task.get("members", 1) * resources.get("devices", {}).get("count", 1) > 2:
        task.pop("queue", None)
    if chance.random() < 0.5:
        task["checkpoint"] = {
            "every_s": chance.choice((3, 5, 10)),
            "size": "1MB",
            "parts": chance.choice((1, 3, 4)),
        }
    if chance.random() < 0.15:
        task["run"]["fail_at_s"] = scene.span(0.5, 20)
        task["max_failures"] = chance.choice((1, 2, 3))
    if chance.random() < 0.1:
        task["run"]["ready_after_s"] = scene.span(0.5, 10)
    if chance.random() < 0.3:
        task["priority"] = chance.choice((10, 50, 90))
    if chance.random() < 0.2:
        task["declared_s"] = round(task["run"]["work_s"] * chance.choice((1, 2)) + 1)
    if scene.datasets and chance.random() < 0.25 and "members" not in task:
        task["data"] = [{"dataset": "d"}]
    if STAYS[0] <= kind < STAYS[1]:
        # Its node is worth waiting for: the first two always come back.
        task |= {"where": {"nodes": [scene.node_ids()[len(scene.tasks) % 2]]}, "reschedule_on_lost": False}
    return task
