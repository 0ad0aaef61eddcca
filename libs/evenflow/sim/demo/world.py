"""One world of the demo in a process of its own: `python -m evenflow.sim.demo.world joined|isolated FOLDER [TASKS]`.

It writes the run's files into FOLDER and says on standard output, one JSON object a line, how far it is; the last line
has the figures, or the problem. Exit code 1 when something did not hold.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from evenflow.core.lifecycle.task import TERMINAL, TaskState
from evenflow.sim.demo import sample
from evenflow.sim.demo.figures import figures, read_events
from evenflow.sim.demo.fleet import cut
from evenflow.sim.demo.scene import scene
from evenflow.sim.observation.model import Observation
from evenflow.sim.scenario.parse import scenario_of
from evenflow.sim.timeline import EVENTS
from evenflow.sim.world.running import Run, RunResult

WORLDS: Final = ("joined", "isolated")
SCENARIO: Final = "scenario.json"
#: Virtual time between two lines of progress.
TELL_EVERY_MS: Final = 600_000
#: The worlds make little garbage in cycles and live for seconds: the collector may look seldom.
COLLECT_AFTER: Final = 200_000


class Teller:
    """Says how far a world is, from time to time."""

    def __init__(self) -> None:
        self._due_ms = 0

    def __call__(self, model: Observation, now_ms: int) -> None:
        """Look at the world; called every virtual second."""
        if now_ms < self._due_ms:
            return
        self._due_ms = now_ms + TELL_EVERY_MS
        states = [task.state for task in model.tasks.values()]
        told = {
            "t": now_ms // 1_000,
            "placed": sum(bool(task.attempts) for task in model.tasks.values()),
            "waiting": states.count(TaskState.QUEUED),
            "running": states.count(TaskState.RUNNING),
            "finished": sum(state in TERMINAL for state in states),
        }
        say(told)


def say(told: dict[str, Any]) -> None:
    """One line for whoever started this process."""
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def document(name: str, task_count: int | None = None) -> dict[str, Any]:
    """The scenario document of a world; `task_count` takes the first arrivals only, on the same fleet."""
    tasks = sample.tasks()
    fleets = cut(tasks, sample.nodes(), sample.SEED)
    return scene(tasks[:task_count], fleets, sample.links(), joined=name == WORLDS[0], seed=sample.SEED)


def problem_of(result: RunResult) -> str:
    """What did not hold, in one line; empty when everything did."""
    said = [f"{entry.invariant} at {entry.t_ms / 1000:g} s: {entry.text}" for entry in result.violations]
    said += [f"a process ended untold: {exited}" for exited in result.exits]
    said += [f"unhandled: {problem}" for problem in result.unhandled]
    return "; ".join(said[:3]) + (f"; and {len(said) - 3} more" if len(said) > 3 else "")


def main(arguments: Sequence[str]) -> int:
    """Run one world."""
    name, folder = arguments[0], Path(arguments[1])
    gc.set_threshold(COLLECT_AFTER)
    written = document(name, int(arguments[2]) if len(arguments) > 2 else None)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(written, ensure_ascii=False, separators=(",", ":"))
    (folder / SCENARIO).write_text(text + "\n", encoding="utf-8", newline="\n")
    result = Run(scenario_of(written), out=folder, look=Teller()).go()
    problem = problem_of(result)
    if problem:
        say({"problem": problem})
        return 1
    say({"figures": figures(read_events(folder / EVENTS)).as_json()})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
