"""Faults of records on their way, and of what strangers write."""

from __future__ import annotations

from typing import Any, Final

from evenflow.sim.explore.faults.fault import Fault
from evenflow.sim.explore.scene import Scene

#: What agents send or receive: the only topics on which a record may vanish.
AGENT_TOPICS: Final = ("evenflow.runs.v1", "evenflow.telemetry.v1", "evenflow.dispatch.v1")
TOPICS: Final = (*AGENT_TOPICS, "evenflow.tasks.v1", "evenflow.checkpoints.v1", "evenflow.assignments.v1")
BAD_VALUES: Final[tuple[Any, ...]] = (
    "no object",
    {},
    {"task": 5},
    [],
    {"id": "a/b"},
    {"id": "x", "resources": {"cpu": -1}},
)
#: What no door may take, each wrong in one field.
HOSTILE: Final[tuple[dict[str, Any], ...]] = (
    {"resources": {"cpu": -1}},
    {"resources": {"devices": {"share": -0.5}}},
    {"resources": {"devices": {"count": -1}}},
    {"resources": {"cpu": 1, "memory": -1}},
    {"resources": {"cpu": 1, "devices": {"share": float("-inf")}}},
    {"resources": {"cpu": 1}, "run": {"work_s": -5}},
    {"id": "a/../b", "resources": {"cpu": 1}},
    {"id": "Not An Id", "resources": {"cpu": 1}},
)
RECEIPTS: Final = ("attempt.started", "attempt.succeeded", "attempt.failed", "attempt.stopped", "attempt.reclaimed")


def _rule(scene: Scene, topics: tuple[str, ...], action: str, **more: Any) -> None:
    rule = {"topic": scene.chance.choice(topics), "action": action, "times": scene.chance.randint(1, 12)}
    scene.step(scene.moment(0), "deliver", {**rule, "for_s": round(scene.span(5, 120)), **more})


def _duplicated(scene: Scene) -> None:
    for _ in range(scene.chance.randint(1, 3)):
        copies, after_s = scene.chance.randint(1, 3), scene.chance.choice((0, scene.span(0.1, 90)))
        _rule(scene, TOPICS, "duplicate", copies=copies, after_s=after_s)


def _dropped(scene: Scene) -> None:
    for _ in range(scene.chance.randint(1, 2)):
        _rule(scene, AGENT_TOPICS, "drop")


def _held(scene: Scene) -> None:
    for _ in range(scene.chance.randint(1, 2)):
        _rule(scene, AGENT_TOPICS, "hold", after_s=scene.span(0.2, 60))


def _reordered(scene: Scene) -> None:
    _rule(scene, AGENT_TOPICS, "reorder")


def _garbage(scene: Scene) -> None:
    for _ in range(scene.chance.randint(2, 8)):
        value = scene.chance.choice(BAD_VALUES)
        record = {
            "topic": scene.chance.choice(TOPICS),
            "key": scene.chance.choice(("default/x", "n1", "zz")),
            "value": value,
        }
        scene.step(scene.moment(), "publish", record)


def _hostile(scene: Scene) -> None:
    for number in range(1, scene.chance.randint(1, 4) + 1):
        scene.step(scene.moment(), "submit", {"id": f"h{number}", **scene.chance.choice(HOSTILE)})


def _made_up(scene: Scene) -> None:
    for _ in range(scene.chance.randint(1, 4)):
        report = {
            "task": scene.chance.choice(scene.task_ids()),
            "attempt": scene.chance.randint(1, 2),
            "type": scene.chance.choice(RECEIPTS),
            "node": scene.chance.choice(scene.node_ids()),
            "signed": scene.chance.choice((False, "wrong", "replayed")),
        }
        scene.step(scene.moment(), "report", report)


FAULTS: Final = (
    Fault("records-duplicated", "records arrive twice or more, at once or late", _duplicated),
    Fault("agent-messages-dropped", "messages to or from agents vanish", _dropped),
    Fault("agent-messages-held", "messages to or from agents come late", _held),
    Fault("agent-messages-reordered", "messages to or from agents change places", _reordered),
    Fault("garbage", "records that nobody can read, or that break a rule", _garbage),
    Fault("hostile-submissions", "submissions that ask for less than nothing, or under no name", _hostile),
    Fault("receipts-made-up", "receipts that no agent sent, not or wrongly signed, and old ones replayed", _made_up),
)
