"""The standing invariants, one file each, and the guardian that looks at them after every record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evenflow.sim.invariants.bills import Bills
from evenflow.sim.invariants.blindness import Blindness
from evenflow.sim.invariants.books import Books
from evenflow.sim.invariants.capacity import Capacity
from evenflow.sim.invariants.endings import Endings
from evenflow.sim.invariants.gangs import Gangs
from evenflow.sim.invariants.intake import Intake
from evenflow.sim.invariants.invariant import Invariant
from evenflow.sim.invariants.pauses import Pauses
from evenflow.sim.invariants.progress import Progress
from evenflow.sim.invariants.quota import Quota
from evenflow.sim.invariants.reasons import Reasons
from evenflow.sim.invariants.rules import Rules
from evenflow.sim.invariants.single_run import SingleRun
from evenflow.sim.invariants.survival import Survival
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken invariant: which, when, what. `at_end`: seen only when everything was over."""

    invariant: str
    t_ms: int
    text: str
    at_end: bool = False

    def row(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {"invariant": self.invariant, "at": self.t_ms / 1000, "text": self.text}


class Guardian:
    """Keeps the invariants of one run and their violations, in order. The tolerance of silence is the world's."""

    def __init__(self, silence_tolerance_ms: int, blind_max_ms: int) -> None:
        self.reasons = Reasons()
        self.quota = Quota()
        self.intake = Intake()
        self.survival = Survival()
        self._all: tuple[Invariant, ...] = (
            Capacity(),
            SingleRun(),
            Gangs(),
            Books(),
            Endings(),
            Bills(),
            Rules(),
            Progress(),
            Pauses(),
            self.reasons,
            self.quota,
            Blindness(silence_tolerance_ms, blind_max_ms),
            self.intake,
            self.survival,
        )
        self.violations: list[Violation] = []

    def after(self, model: Observation, record: Seen) -> None:
        """Look at every invariant now that the record is in."""
        self._remarks(model)
        for invariant in self._all:
            for text in invariant.after(model, record):
                self.violations.append(Violation(invariant.name, model.now_ms, text))

    def finish(self, model: Observation, *, settled: bool) -> None:
        """Look once more at the end."""
        self._remarks(model)
        for invariant in self._all:
            for text in invariant.finish(model, settled=settled):
                self.violations.append(Violation(invariant.name, model.now_ms, text, at_end=True))

    def _remarks(self, model: Observation) -> None:
        for name, text in model.remarks:
            self.violations.append(Violation(name, model.now_ms, text))
        model.remarks.clear()
