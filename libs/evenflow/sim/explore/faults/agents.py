"""Faults of agent processes and of what they run."""

from __future__ import annotations

from typing import Final

from evenflow.sim.explore.faults.fault import Fault
from evenflow.sim.explore.points import AGENT_POINTS
from evenflow.sim.explore.scene import Scene


def _restart(scene: Scene) -> None:
    for _ in range(scene.chance.randint(1, 3)):
        scene.step(scene.moment(), "node", {"restart": scene.chance.choice(scene.node_ids())})


def _crash_between_steps(scene: Scene) -> None:
    for _ in range(scene.chance.randint(1, 4)):
        node, steps = scene.chance.choice(scene.node_ids()), round(scene.span(1, 2_000))
        scene.step(scene.moment(), "node", {"restart": node, "after_steps": steps})


def _crash_at_point(scene: Scene) -> None:
    for _ in range(scene.chance.randint(1, 4)):
        node, point = scene.chance.choice(scene.node_ids()), scene.chance.choice(AGENT_POINTS)
        scene.step(scene.moment(), "node", {"restart": node, "at_point": point})


def _pause(scene: Scene) -> None:
    node, at_s = scene.chance.choice(scene.node_ids()), scene.moment()
    scene.step(at_s, "node", {"pause": node})
    scene.step(at_s + scene.span(2, 100), "node", {"resume": node})


def _skew(scene: Scene) -> None:
    clock_s = scene.chance.choice((-3_600, -60, 60, 3_600))
    scene.step(scene.moment(), "node", {"skew": scene.chance.choice(scene.node_ids()), "clock_s": clock_s})


def _slow_start(scene: Scene) -> None:
    takes_s = scene.span(2, 40)
    scene.step(scene.moment(), "start", {"node": scene.chance.choice(scene.node_ids()), "takes_s": takes_s})


def _hanging_start(scene: Scene) -> None:
    for task in scene.chance.sample(scene.tasks, scene.chance.randint(1, 3)):
        task["ready_timeout_s"] = 20
        scene.step(0, "start", {"task": task["id"], "hangs": True, "times": scene.chance.randint(1, 2)})


def _failing_start(scene: Scene) -> None:
    node, times = scene.chance.choice(scene.node_ids()), scene.chance.randint(1, 3)
    scene.step(scene.moment(), "start", {"node": node, "fails_after_s": scene.span(0.2, 4), "times": times})


def _process_killed(scene: Scene) -> None:
    for task in scene.chance.sample(scene.tasks, min(3, len(scene.tasks))):
        member = scene.chance.randrange(task.get("members", 1))
        scene.step(scene.moment(), "process", {"kill": {"task": task["id"], "member": member}})


def _will_not_die(scene: Scene) -> None:
    for task in scene.chance.sample(scene.tasks, 3):
        seconds = scene.span(5, 90)
        scene.step(scene.moment(0, 60), "process", {"stop_takes_s": {"task": task["id"], "seconds": seconds}})
        if scene.chance.random() < 0.5:
            scene.step(scene.moment(), "cancel", {"task": task["id"], "reason": "drawn"})


FAULTS: Final = (
    Fault("agent-restart", "an agent starts anew while its tasks live on", _restart),
    Fault("agent-crash-between-steps", "an agent is killed between any two of its steps", _crash_between_steps),
    Fault("agent-crash-at-point", "an agent is killed at a named fail point", _crash_at_point),
    Fault("agent-paused", "an agent stands still", _pause),
    Fault("agent-clock-skew", "a node's wall clock is wrong", _skew),
    Fault("slow-start", "starts on a node take long", _slow_start),
    Fault("hanging-start", "a start never ends by itself", _hanging_start),
    Fault("failing-start", "starts on a node fail", _failing_start),
    Fault("process-killed", "a task's process is killed", _process_killed),
    Fault("process-will-not-die", "a stop takes longer than its grace", _will_not_die),
)
