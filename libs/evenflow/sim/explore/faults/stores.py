"""Faults of the stores, of saved progress and of data."""

from __future__ import annotations

from typing import Final

from evenflow.sim.explore.faults.fault import Fault
from evenflow.sim.explore.scene import Scene


def _wiped(store: str) -> Fault:
    def plan(scene: Scene) -> None:
        for _ in range(scene.chance.randint(1, 2)):
            scene.step(scene.moment(), "store", {"wipe": store})

    return Fault(f"{store}-wiped", f"the {store} store is empty all of a sudden", plan)


def _down(store: str) -> Fault:
    def plan(scene: Scene) -> None:
        at_s = scene.moment()
        scene.step(at_s, "store", {scene.chance.choice(("down", "down", "read_only")): store})
        scene.step(at_s + scene.span(0.5, 60), "store", {"up": store})

    return Fault(f"{store}-down", f"the {store} store does not answer, or takes no writes", plan)


def _refused(scene: Scene) -> None:
    store = scene.chance.choice(("documents", "objects", "live"))
    scene.step(scene.moment(), "store", {"refuse": store, "times": scene.chance.randint(1, 5)})


def _answers_lost(scene: Scene) -> None:
    store = scene.chance.choice(("documents", "objects", "live"))
    scene.step(scene.moment(), "store", {"lose_answers": store, "times": scene.chance.randint(1, 5)})


def _swallowed(scene: Scene) -> None:
    scene.step(scene.moment(), "store", {"swallow": "objects", "times": scene.chance.randint(1, 3)})


def _torn(scene: Scene) -> None:
    saving = [task for task in scene.tasks if "checkpoint" in task]
    for task in scene.chance.sample(saving, min(3, len(saving))):
        if scene.chance.random() < 0.5:
            damage = {"damage": scene.chance.randint(1, task["checkpoint"]["parts"])}
        else:
            damage = {"truncate": True}
        scene.step(scene.moment(), "checkpoint", {"task": task["id"], **damage})


def _copy_dropped(scene: Scene) -> None:
    if not scene.datasets:
        scene.datasets = [{"id": "d", "size": "2GB", "copies": [{"site": scene.site_ids()[0], "authoritative": True}]}]
    scene.datasets[0]["copies"] = [
        {"site": site, "authoritative": not index} for index, site in enumerate(scene.site_ids())
    ]
    drop = {"drop": {"id": "d", "site": scene.site_ids()[-1]}, "silently": scene.chance.random() < 0.5}
    scene.step(scene.moment(), "dataset", drop)


def _expiry(scene: Scene) -> None:
    scene.settings["retention_s"] = scene.chance.choice((15, 30, 60))
    if scene.chance.random() < 0.7:
        at_s = scene.moment(30)
        scene.step(at_s, "store", {"down": "objects"})
        scene.step(at_s + scene.span(5, 60), "store", {"up": "objects"})


FAULTS: Final = (
    _wiped("live"),
    _wiped("documents"),
    *(_down(store) for store in ("live", "documents", "objects", "log")),
    Fault("store-refuses", "single writes are refused", _refused),
    Fault("answers-lost", "writes are applied and the answer is lost", _answers_lost),
    Fault("writes-swallowed", "writes are acknowledged and not kept", _swallowed),
    Fault("checkpoint-torn", "saved progress is damaged or cut", _torn),
    Fault("log-expiry", "the log keeps rounds and ledger shortly, the store of the archive may be away", _expiry),
    Fault("dataset-copy-dropped", "a copy of a dataset vanishes, told or not", _copy_dropped),
)
