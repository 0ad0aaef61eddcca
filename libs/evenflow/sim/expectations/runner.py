"""Judging a run's expectations, each at its own moment, in the order of their moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evenflow.sim.expectations import FORMS
from evenflow.sim.expectations.form import Answer, moment_of
from evenflow.sim.observation.model import Observation
from evenflow.sim.scenario.file import Expectation


@dataclass(frozen=True, slots=True)
class Broken:
    """An expectation that does not hold: when it was decided, what it wanted, what was found."""

    at_ms: int
    number: int
    wanted: Any
    got: Any

    def row(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {"expect": self.number, "at": self.at_ms / 1000, "wanted": self.wanted, "got": self.got}


def moment_of_expectation(expectation: Expectation, until_ms: int) -> int:
    """When an expectation is decided; of alternatives the latest."""
    if expectation.form == "any_of":
        return max(moment_of_expectation(inner, until_ms) for inner in expectation.values["any_of"])
    return moment_of(expectation.values, until_ms)


def judge(expectation: Expectation, model: Observation, until_ms: int) -> Answer:
    """Whether an expectation holds in what was observed."""
    if expectation.form == "any_of":
        answers = [judge(inner, model, until_ms) for inner in expectation.values["any_of"]]
        return Answer(any(answer.holds for answer in answers), [answer.got for answer in answers])
    form = FORMS[expectation.form]
    t_ms = moment_of(expectation.values, until_ms)
    if expectation.values.get("by") is not None and form.by is not None:
        return form.by(expectation.values, model, t_ms)
    return form.at(expectation.values, model, t_ms)


class Judge:
    """Decides each expectation once, as soon as its moment has passed.

    `due` gives those that are decided before time moves past a moment: a form that has no past of its own (`total`)
    sees the present then.
    """

    def __init__(self, expectations: Sequence[Expectation], until_ms: int) -> None:
        self._until_ms = until_ms
        self._left = sorted(expectations, key=lambda entry: (moment_of_expectation(entry, until_ms), entry.number))
        self.broken: list[Broken] = []

    def before(self, t_ms: int, model: Observation) -> None:
        """Decide what was due before records of this time; call it before each new moment."""
        while self._left and moment_of_expectation(self._left[0], self._until_ms) < t_ms:
            self._decide(self._left.pop(0), model)

    def finish(self, model: Observation) -> None:
        """Decide everything that is left."""
        while self._left:
            self._decide(self._left.pop(0), model)

    def _decide(self, expectation: Expectation, model: Observation) -> None:
        answer = judge(expectation, model, self._until_ms)
        if not answer.holds:
            at_ms = moment_of_expectation(expectation, self._until_ms)
            self.broken.append(Broken(at_ms, expectation.number, expectation.written, answer.got))
