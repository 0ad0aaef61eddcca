"""One world of the demo in a process of its own: `python -m evenflow.sim.demo.world joined|isolated FOLDER [TASKS]`.

Writes the world's log and the figures made of it to FOLDER, and one JSON line of progress to standard output per five
virtual minutes. Exit 0: it ran to its end and every invariant held; 1: it did not, and standard error says why.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from evenflow.core.lifecycle.task import TaskState
from evenflow.platform.collector import tune_collector
from evenflow.sim.demo import sample
from evenflow.sim.demo.figures import FIGURES, figures, read_events
from evenflow.sim.demo.fleet import cut
from evenflow.sim.demo.scene import scene
from evenflow.sim.observation.model import Observation
from evenflow.sim.scenario.parse import scenario_of
from evenflow.sim.timeline import EVENTS
from evenflow.sim.world.running import Run
from evenflow.sim.world.world import Pace

#: Virtual time for the last charges and clean-ups after the last task ended.
AFTERMATH_MS = 900_000


class Progress:
    """Says how far the world is, and ends it some time after the last task did."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._ended_ms: int | None = None

    def __call__(self, now_ms: int, seen: Observation) -> bool:
        """One line; True ends the run."""
        states = Counter(task.state for task in seen.tasks.values())
        ended = sum(count for state, count in states.items() if state is not None and state.terminal)
        line = {
            "t_s": now_ms // 1000,
            "submitted": len(seen.tasks),
            "waiting": states[TaskState.QUEUED],
            "running": states[TaskState.RUNNING] + states[TaskState.STARTING],
            "ended": ended,
            "total": self._total,
        }
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        if ended < self._total:
            return False
        self._ended_ms = now_ms if self._ended_ms is None else self._ended_ms
        return now_ms - self._ended_ms >= AFTERMATH_MS


def main(name: str, folder: Path, task_count: int | None = None) -> int:
    """Run one world; returns its exit code."""
    tasks = sample.tasks()
    fleets = cut(tasks, sample.nodes(), sample.SEED)
    chosen = tasks[:task_count]
    document = scene(chosen, fleets, sample.links(), joined=name == "joined", seed=sample.SEED)
    tune_collector()
    pace = Pace(lean=True, delays=False)
    result = Run(scenario_of(document), out=folder, pace=pace, watch=Progress(len(chosen))).go()
    problems = [f"{v.t_ms / 1000:g} s {v.invariant}: {v.text}" for v in result.violations]
    problems += [f"ended untold: {text}" for text in result.exits]
    problems += [f"expected {broken.wanted}, found {broken.got}" for broken in result.broken]
    for problem in problems[:20]:
        sys.stderr.write(f"{name}: {problem}\n")
    if problems:
        return 1
    found = figures(read_events(folder / EVENTS)).as_json()
    (folder / FIGURES).write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None))
