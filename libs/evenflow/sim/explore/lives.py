"""Living one world: a scenario document in, what held and what was seen out."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from evenflow.core.lifecycle.task import TERMINAL
from evenflow.sim.explore.drawing import draw
from evenflow.sim.explore.scene import Document
from evenflow.sim.invariants.progress import HOPELESS
from evenflow.sim.observation.entities import TaskView
from evenflow.sim.observation.model import Observation
from evenflow.sim.scenario.parse import scenario_of
from evenflow.sim.world.running import Run, RunResult
from evenflow.sim.world.world import Pace

#: One seed in so many runs on FastStream's own stack; the others hand records over directly.
FASTSTREAM_EVERY: Final = 10
LEAN: Final = Pace(lean=True)
FULL: Final = Pace()
#: How often a world is asked whether it is over, and how long it goes on after that.
LOOK_MS: Final = 10_000
QUIET_MS: Final = 45_000


@dataclass(slots=True)
class Life:
    """What came of one world. `problems` are the invariants that broke and what else did not hold, first one first.

    `lives` counts tasks that were submitted, `cpu_s` the processor time of the world.
    """

    seed: int
    faults: tuple[str, ...]
    problems: list[str]
    lives: int
    cpu_s: float
    records: int
    points: dict[str, int] = field(default_factory=dict)
    states: dict[str, int] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether everything held."""
        return not self.problems


def explore(seed: int, kinds: Sequence[str] | None = None) -> Life:
    """Draw the world of a seed and live it."""
    document, faults = draw(seed, kinds)
    return live(document, seed, faults)


def live(document: Document, seed: int, faults: tuple[str, ...] = ()) -> Life:
    """Live the world of a scenario document; the seed decides whether FastStream's stack takes part.

    Raises ScenarioWrong or ScenarioPlanned for a document that is no scenario.
    """
    scenario = scenario_of(document, seed=seed)
    gc.collect()  # what the world before left: a worker looks for it hardly ever by itself
    ending = _Ending(lambda: run.settled_ms)
    pace = FULL if seed % FASTSTREAM_EVERY == 0 else LEAN
    run = Run(scenario, pace=pace, watch=ending, watch_ms=LOOK_MS)
    began = time.process_time()  # a figure for people: nothing in the world sees it
    result = run.go()
    cpu_s = time.process_time() - began
    return Life(
        seed=seed,
        faults=faults,
        problems=problems_of(result),
        lives=sum("submit" in step for step in document["steps"]),
        cpu_s=cpu_s,
        records=result.records,
        points=result.reached,
        states=ending.states,
        reasons=sorted(ending.reasons),
    )


def problems_of(result: RunResult) -> list[str]:
    """Everything that did not hold in a run."""
    return [
        f"{violation.invariant} at {violation.t_ms / 1000:g} s: {violation.text}" for violation in result.violations
    ]


def _goes_on(task: TaskView) -> bool:
    """Whether something of a task is still to come: it can run, or it holds something that comes free."""
    if any(member.booked for attempt in task.attempts.values() for member in attempt.members.values()):
        return True
    return task.state not in TERMINAL and not HOPELESS & set(task.reasons)


class _Ending:
    """Watches a run: it is over when every task has ended and everything has been quiet for a while."""

    def __init__(self, settled_ms: Callable[[], int | None]) -> None:
        self._settled_ms = settled_ms
        self._over_ms: int | None = None
        self.states: dict[str, int] = {}
        self.reasons: dict[str, None] = {}

    def __call__(self, now_ms: int, model: Observation) -> bool:
        self.states = {}
        for task in model.tasks.values():
            self.states[str(task.state)] = self.states.get(str(task.state), 0) + 1
            self.reasons |= dict.fromkeys(task.reasons)
        if self._settled_ms() is None:
            return False
        if any(_goes_on(task) for task in model.tasks.values()):
            self._over_ms = None
            return False
        self._over_ms = now_ms if self._over_ms is None else self._over_ms
        return now_ms - self._over_ms >= QUIET_MS
