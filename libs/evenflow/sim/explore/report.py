"""What exploration found: figures over all seeds, for people and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any, Final

from evenflow.sim.explore.faults import FAULTS
from evenflow.sim.explore.points import POINTS
from evenflow.sim.explore.sameness import kind_of

#: Seeds from which on every kind of fault and every fail point must have occurred, when all may be drawn.
ENOUGH: Final = 500
PROBLEMS_SHOWN: Final = 3
FAILING_SHOWN: Final = 20
ALL: Final = "all"
EXPLORE: Final = "evenflow simulate explore"
RUN: Final = "evenflow scenario run"


@dataclass(slots=True)
class Outcome:
    """What one seed came to. `tasks` counts different tasks that were submitted, `cpu_s` its processor time."""

    seed: int
    faults: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    tasks: int = 0
    cpu_s: float = 0.0
    records: int = 0
    points: dict[str, int] = field(default_factory=dict)
    states: dict[str, int] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Found:
    """A failing seed's file. `replay` repeats it from the file; empty when only the seed does."""

    seed: int
    file: str
    replay: str
    steps: int
    steps_before: int


class Report:
    """The figures of seeds that were lived, whatever the order they came in."""

    def __init__(self, kinds: Sequence[str] | None, jobs: int) -> None:
        self._kinds = None if kinds is None else list(kinds)
        self._jobs = jobs
        self._outcomes: dict[int, Outcome] = {}
        self.found: dict[int, Found] = {}
        self.wall_s = 0.0

    def add(self, outcome: Outcome) -> None:
        """One more seed."""
        self._outcomes[outcome.seed] = outcome

    def keep_until(self, seed: int) -> None:
        """Forget what came after a seed: other processes were ahead of it."""
        self._outcomes = {number: outcome for number, outcome in self._outcomes.items() if number <= seed}

    @property
    def outcomes(self) -> list[Outcome]:
        """All seeds in order."""
        return [self._outcomes[seed] for seed in sorted(self._outcomes)]

    @property
    def failing(self) -> list[Outcome]:
        """Seeds with problems, in order."""
        return [outcome for outcome in self.outcomes if outcome.problems]

    def first_of_each_kind(self) -> dict[str, Outcome]:
        """The first failing seed of each kind of first problem."""
        found: dict[str, Outcome] = {}
        for outcome in self.failing:
            found.setdefault(kind_of(outcome.problems[0]), outcome)
        return found

    def command(self, seed: int) -> str:
        """The command that lives one seed again."""
        faults = "" if self._kinds is None else f" --faults {','.join(self._kinds) or 'none'}"
        return f"{EXPLORE} --seeds {seed}:{seed + 1}{faults}"

    def never(self) -> list[str]:
        """Kinds of fault and fail points that never occurred although all were drawn from, over enough seeds."""
        if self._kinds is not None or len(self._outcomes) < ENOUGH:
            return []
        faults, points = self._faults(), self._points()
        return [f"fault {kind}" for kind, count in faults.items() if not count] + [
            f"fail point {point}" for point, count in points.items() if not count
        ]

    def _faults(self) -> dict[str, int]:
        kinds = sorted(FAULTS) if self._kinds is None else self._kinds
        return {kind: sum(kind in outcome.faults for outcome in self.outcomes) for kind in kinds}

    def _points(self) -> dict[str, int]:
        return _summed([dict.fromkeys(POINTS, 0), *(outcome.points for outcome in self.outcomes)])

    def figures(self) -> dict[str, Any]:
        """As `--json` prints it."""
        outcomes = self.outcomes
        tasks = [outcome.tasks for outcome in outcomes if outcome.tasks]
        cpu_s = sum(outcome.cpu_s for outcome in outcomes)
        return {
            "seeds": len(outcomes),
            "first_seed": outcomes[0].seed if outcomes else None,
            "jobs": self._jobs,
            "seconds": round(self.wall_s, 1),
            "processor_seconds": round(cpu_s, 1),
            "runs_per_s": round(len(outcomes) / self.wall_s, 3) if self.wall_s else 0.0,
            "lives": sum(tasks),
            "lives_per_s": round(sum(tasks) / cpu_s, 2) if cpu_s else 0.0,
            "tasks_min": min(tasks, default=0),
            "tasks_median": median_low(tasks) if tasks else 0,
            "records": sum(outcome.records for outcome in outcomes),
            "faults": self._faults(),
            "fail_points": self._points(),
            "states": dict(sorted(_summed([outcome.states for outcome in outcomes]).items())),
            "reasons": sorted({reason for outcome in outcomes for reason in outcome.reasons}),
            "never": self.never(),
            "failing": [self._failing_row(outcome) for outcome in self.failing],
        }

    def _failing_row(self, outcome: Outcome) -> dict[str, Any]:
        found = self.found.get(outcome.seed)
        return {
            "seed": outcome.seed,
            "kind": kind_of(outcome.problems[0]),
            "problems": outcome.problems,
            "command": self.command(outcome.seed),
            "file": None if found is None else found.file,
            "replay": None if found is None else found.replay,
        }

    def lines(self) -> list[str]:
        """For people."""
        figures = self.figures()
        jobs = f"{self._jobs} job{'s' * (self._jobs > 1)}"
        speed = f"{figures['lives_per_s']:g}"
        lines = [
            f"{figures['seeds']} seeds in {figures['seconds']:g} s with {jobs}: {figures['runs_per_s']:g} a second",
            f"{figures['lives']} task lives in {figures['processor_seconds']:g} processor seconds: {speed} a second",
            f"tasks a seed: {figures['tasks_min']} at least, {figures['tasks_median']} in the middle",
            f"faults: {_occurred(figures['faults'])}",
            f"fail points: {_occurred(figures['fail_points'])}",
            f"states: {_counts(figures['states'])}",
            f"reasons: {', '.join(figures['reasons']) or 'none'}",
        ]
        lines += [f"never occurred: {name}" for name in figures["never"]]
        return lines + self._failing_lines()

    def _failing_lines(self) -> list[str]:
        failing = self.failing
        if not failing:
            return ["nothing found"]
        lines = []
        for outcome in failing[:FAILING_SHOWN]:
            lines.append(f"seed {outcome.seed} fails; again with: {self.command(outcome.seed)}")
            lines += [f"  {problem}" for problem in outcome.problems[:PROBLEMS_SHOWN]]
            if len(outcome.problems) > PROBLEMS_SHOWN:
                lines.append(f"  … and {len(outcome.problems) - PROBLEMS_SHOWN} more")
            found = self.found.get(outcome.seed)
            if found is not None and found.replay:
                lines.append(f"  {found.steps} of {found.steps_before} steps still fail; again with: {found.replay}")
            elif found is not None:
                lines.append(f"  the whole world: {found.file}; it fails only with the command above")
        lines.append(f"{len(failing)} failing, {len(self.first_of_each_kind())} kinds of failure")
        return lines


def _summed(parts: Sequence[dict[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in parts:
        for name, count in part.items():
            found[name] = found.get(name, 0) + count
    return found


def _occurred(counts: dict[str, int]) -> str:
    there = {name: count for name, count in counts.items() if count}
    return f"{len(there)} of {len(counts)} kinds: {_counts(there)}" if counts else "none"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
