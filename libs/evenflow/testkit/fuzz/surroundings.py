"""The world that everything is thrown at: three nodes, two sites, tasks that run, wait and have ended."""

from __future__ import annotations

from typing import Any, Final

from evenflow.sim.scenario.file import Scenario
from evenflow.sim.scenario.parse import scenario_of

#: Names that mean something in this world, by the fields that hold them.
KNOWN: Final[dict[str, tuple[Any, ...]]] = {
    "tenant": ("default",),
    "task": ("t1", "t2", "t3", "g1", "w1", "done", "made"),
    "id": ("t1", "t2", "w1", "done", "made", "n1", "n3", "q", "east", "d1"),
    "node": ("n1", "n2", "n3"),
    "queue": ("q", "default", "narrow"),
    "site": ("east", "west"),
    "from_site": ("east", "west"),
    "to_site": ("east", "west"),
    "dataset": ("d1", "d2"),
    "name": ("default", "q", "narrow", "east", "east..west", "node.lost"),
    "kind": ("queue", "policy", "site", "link", "work"),
    "pool": ("default",),
    "attempt": (1, 2, 0),
    "generation": (1, 2),
    "member": (0, 1),
    "epoch": (1, 2),
    "entry": ("default/done/1/0/work", "default/t1/1/0/work"),
    "state_version": (1,),
    "observer": ("inventory",),
    "subject": ("n1", "default/t1", "east"),
    "topic": ("evenflow.tasks.v1", "evenflow.runs.v1"),
    "partition": (0, 3),
    "offset": (0, 1),
    "limit": (1, 100),
    "state": ("queued", "running", "open"),
}

#: When records are thrown, when the state is compared, and until when the world must have read everything, in seconds.
THROWN_S: Final = 30
COMPARED_S: Final = 90
WORLD: Final[dict[str, Any]] = {
    "version": 1,
    "name": "fuzzed",
    "until": 600,
    "sites": [{"id": "east", "region": "r1"}, {"id": "west", "region": "r2"}],
    "links": [{"from": "east", "to": "west", "bandwidth": "10Gbit/s", "round_trip_ms": 30, "price_per_gb": "0.02"}],
    "nodes": [
        {"id": "n1", "site": "east", "devices": {"model": "a100-80g", "count": 4}, "price_per_hour": "4.00"},
        {"id": "n2", "site": "west", "devices": {"model": "a100-80g", "count": 2}, "price_per_hour": "3.60"},
        {"id": "n3", "site": "east", "cpu": 8, "cpu_price_per_hour": "0.10"},
    ],
    "queues": [{"id": "q"}, {"id": "narrow", "limit": {"devices": 1}}],
    "datasets": [{"id": "d1", "size": "1GB", "copies": [{"site": "east"}]}],
    "steps": [
        {"at": 0, "submit": {"id": "done", "queue": "q", "run": {"work_s": 5}}},
        {
            "at": 1,
            "submit": {
                "id": "t1",
                "queue": "q",
                "where": {"nodes": ["n1"]},
                "resources": {"devices": {"count": 1}},
                "run": {"work_s": 5000},
                "checkpoint": {"every_s": 10, "size": "1GB"},
            },
        },
        {"at": 1, "submit": {"id": "t2", "queue": "narrow", "resources": {"devices": {"share": "0.5"}},
                             "run": {"work_s": 5000}}},
        {"at": 1, "submit": {"id": "t3", "queue": "q", "where": {"nodes": ["n3"]}, "run": {"work_s": 5000}}},
        {"at": 2, "submit": {"id": "g1", "queue": "q", "members": 2, "resources": {"devices": {"count": 1}},
                             "run": {"work_s": 5000}}},
        {"at": 3, "submit": {"id": "w1", "queue": "narrow", "resources": {"devices": {"count": 1}},
                             "run": {"work_s": 60}}},
    ],
    "expect": [],
}  # fmt: skip


def world_scenario(seed: int) -> Scenario:
    """The scenario of one seed."""
    return scenario_of({**WORLD, "seed": seed})
