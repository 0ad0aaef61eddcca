"""Faults of the product's own processes."""

from __future__ import annotations

from typing import Final

from evenflow.sim.explore.faults.fault import Fault
from evenflow.sim.explore.points import SERVICE_POINTS
from evenflow.sim.explore.scene import Scene

NAMES: Final = ("inventory", "placement", "link-probe", "checkpoint", "billing", "gateway", "console")
#: Deciders fail more often than others: most rules are about them.
OFTEN: Final = (*NAMES, "placement", "placement", "billing", "gateway")
#: Services that park, each with a topic that it reads in a group.
PARKERS: Final = (
    ("billing", "evenflow.runs.v1"),
    ("billing", "evenflow.assignments.v1"),
    ("checkpoint", "evenflow.runs.v1"),
    ("inventory", "evenflow.telemetry.v1"),
)
#: Longer than the session time-out of every group, so that others take over.
PAUSE_S: Final = (8.0, 40.0)
STEPS_MAX: Final = 6_000
AFTER_IMAGE: Final = "placement.after-image"
OFTEN_POINTS: Final = (*SERVICE_POINTS, *[AFTER_IMAGE] * 4)
#: Small tasks that keep coming until a decider ends at an image of its state: rounds go on while the image is made.
IMAGE_LOAD: Final = {"every_s": 0.2, "times": 110}
#: Short enough that an image falls into that load.
IMAGE_PERIOD_S: Final = 20
IMAGE_TASK: Final = {"id": "small-{i}", "resources": {"cpu": "0.1"}, "run": {"work_s": 1}}


def _crash(scene: Scene) -> None:
    for _ in range(scene.chance.randint(1, 2)):
        name, at_s = scene.chance.choice(OFTEN), scene.moment()
        scene.step(at_s, "service", {"kill": name})
        scene.step(at_s + scene.span(0.5, 30), "service", {"restart": name})


def _crash_between_steps(scene: Scene) -> None:
    for _ in range(scene.chance.randint(1, 3)):
        name, at_s = scene.chance.choice(OFTEN), scene.moment()
        steps = round(scene.span(1, STEPS_MAX))
        scene.step(at_s, "service", {"kill": name, "after_steps": steps})
        scene.step(at_s + scene.span(5, 40), "service", {"restart": name})


def _crash_at_point(scene: Scene) -> None:
    for _ in range(scene.chance.randint(1, 3)):
        point = scene.chance.choice(OFTEN_POINTS)
        name, at_s = point.partition(".")[0], scene.moment(0)
        scene.step(at_s, "service", {"kill": name, "at_point": point})
        scene.step(at_s + scene.span(5, 60), "service", {"restart": name})
        if point == AFTER_IMAGE:
            scene.settings["snapshot_period_s"] = IMAGE_PERIOD_S
            scene.step(at_s, "repeat", {**IMAGE_LOAD, "submit": dict(IMAGE_TASK)})


def _pause_at_point(scene: Scene) -> None:
    point = scene.chance.choice([point for point in SERVICE_POINTS if point.startswith("placement.")])
    at_s = scene.moment()
    scene.step(max(0.0, at_s - 20), "service", {"add": "placement"})
    scene.step(at_s, "service", {"pause": "placement", "which": "leader", "at_point": point})
    scene.step(at_s + scene.span(*PAUSE_S), "service", {"resume": "placement"})


def _pause_past_session(scene: Scene) -> None:
    name, at_s = scene.chance.choice(OFTEN), scene.moment()
    scene.step(max(0.0, at_s - 15), "service", {"add": name})
    which = {"which": "leader"} if name == "placement" else {}
    scene.step(at_s, "service", {"pause": name, **which})
    scene.step(at_s + scene.span(*PAUSE_S), "service", {"resume": name})


def _rebalance(scene: Scene) -> None:
    name = scene.chance.choice(("inventory", "billing", "checkpoint", "link-probe", "placement"))
    at_s = scene.moment()
    scene.step(at_s, "service", {"add": name})
    scene.step(at_s + scene.span(1, 40), "service", {"kill": name, "after_steps": round(scene.span(1, 2_000))})
    scene.step(at_s + scene.span(41, 80), "service", {"restart": name})


def _redelivery(scene: Scene) -> None:
    for _ in range(scene.chance.randint(1, 3)):
        name = scene.chance.choice(("inventory", "billing", "checkpoint", "link-probe", "all"))
        scene.step(scene.moment(), "service", {"rewind": name, "offsets": round(scene.span(1, 200))})


def _skew(scene: Scene) -> None:
    name, at_s = scene.chance.choice(OFTEN), scene.moment()
    clock_s = scene.chance.choice((-3_600, -120, -5, 5, 120, 3_600))
    scene.step(at_s, "service", {"skew": name, "clock_s": clock_s})
    if scene.chance.random() < 0.5:
        scene.step(at_s + scene.span(1, 60), "service", {"restart": name})


def _crash_while_parking(scene: Scene) -> None:
    for _ in range(scene.chance.randint(1, 2)):
        name, topic = scene.chance.choice(PARKERS)
        at_s, point = scene.moment(), scene.chance.choice(("before-publish", "before-publish", "after-publish"))
        scene.step(at_s, "service", {"kill": name, "at_point": f"{name}.{point}"})
        scene.step(at_s, "publish", {"topic": topic, "key": "default/x", "value": "no object"})
        scene.step(at_s + scene.span(5, 40), "service", {"restart": name})


def _gateway_away(scene: Scene) -> None:
    at_s, tolerance_s = scene.moment(), float(scene.settings["silence_tolerance_s"])
    scene.step(at_s, "service", {scene.chance.choice(("kill", "pause")): "gateway"})
    back_s = at_s + tolerance_s * scene.chance.uniform(0.8, 2.5)
    scene.step(back_s, "service", {"resume": "gateway"})
    scene.step(back_s, "service", {"restart": "gateway"})


def _all_restart(scene: Scene) -> None:
    scene.step(scene.moment(), "service", {"restart": "all"})


FAULTS: Final = (
    Fault("service-crash", "a service is killed and starts again", _crash),
    Fault("service-crash-between-steps", "a service is killed between any two of its steps", _crash_between_steps),
    Fault("service-crash-at-point", "a service is killed at a named fail point", _crash_at_point),
    Fault(
        "leader-paused-at-point", "the leader stands still at a fail point while a standby takes over", _pause_at_point
    ),
    Fault("service-paused-past-session", "a service stands still for longer than its session", _pause_past_session),
    Fault("rebalance", "a member joins and dies, so that partitions change hands within a batch", _rebalance),
    Fault("redelivery", "groups read again what they have read", _redelivery),
    Fault("service-clock-skew", "a service's wall clock is wrong", _skew),
    Fault("crash-while-parking", "a service ends while it puts a bad record aside", _crash_while_parking),
    Fault("gateway-away", "no node is heard, for about the tolerance of silence or longer", _gateway_away),
    Fault("all-services-restart", "every service is started anew at once", _all_restart),
)
