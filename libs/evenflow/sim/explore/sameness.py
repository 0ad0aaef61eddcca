"""Whether a world fails in the same way as another: kinds of problem, and faults that must not outlive their end."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from evenflow.core.errors import Refused
from evenflow.sim.explore.leaving import verb_of
from evenflow.sim.explore.lives import FULL, LEAN, problems_of
from evenflow.sim.explore.scene import Document
from evenflow.sim.scenario.outcome import ScenarioPlanned, ScenarioWrong
from evenflow.sim.scenario.parse import scenario_of
from evenflow.sim.world.running import Run

#: Words of a problem that make its kind; what follows differs from world to world.
WORDS: Final = 8
BROKE_OFF: Final = "broke off"
#: What ends a lasting state of a node or device, by what begins it.
BEGINS: Final = {"kill": "killed", "remove": "removed", "cordon": "closed", "drain": "closed"}
ENDS: Final = {"restart": "killed", "uncordon": "closed"}


def kind_of(problem: str) -> str:
    """The kind of a problem: its invariant and the first words, with `#` for whatever holds a digit.

    >>> kind_of("INV1 at 91.7 s: n7 holds 2000 of cpu, it has 0, after t18")
    'INV1: # holds # of cpu, it has #'
    """
    name, _, text = problem.partition(": ")
    words: list[str] = []
    for word in text.split():
        if word[0] in "[{" or len(words) == WORDS:
            break
        digits = any(letter.isdigit() for letter in word)
        words.append("#" + "," * word.endswith(",") if digits else word)
    return f"{name.partition(' at ')[0]}: {' '.join(words)}".rstrip(" ,")


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that did not hold. `at_end` is true for what is judged only after the end of the run."""

    problem: str
    at_s: float
    at_end: bool

    @property
    def kind(self) -> str:
        """The kind of its problem."""
        return kind_of(self.problem)


def failures_of(document: Document, *, lean: bool) -> list[Failure]:
    """Run a document as `evenflow scenario run` does; what did not hold, first one first.

    Raises ScenarioWrong or ScenarioPlanned for a document that is no scenario.
    """
    gc.collect()  # what the world before left
    run = Run(scenario_of(document), pace=LEAN if lean else FULL)
    try:
        result = run.go()
    except Refused:
        raise
    except Exception as error:  # noqa: BLE001  whatever breaks a world off is what is looked for
        return [Failure(f"{BROKE_OFF}: {type(error).__name__}: {error}", 0.0, at_end=True)]
    last_s = max((violation.t_ms for violation in result.violations), default=0) / 1000
    found = [
        Failure(problem, violation.t_ms / 1000, violation.at_end)
        for problem, violation in zip(problems_of(result), result.violations, strict=False)
    ]
    rest = problems_of(result)[len(found) :]
    return found + [Failure(problem, last_s, at_end=True) for problem in rest]


class Same:
    """Whether a document fails in the same way as an original one.

    What is judged at the end asks for more: as much time after `settle` as the original had, and no fault that the
    original ended and this one does not, or what cannot end for a good reason would count as the same failure.
    """

    def __init__(self, original: Document, failure: Failure, *, lean: bool) -> None:
        self._kind, self._at_end, self._lean = failure.kind, failure.at_end, lean
        self._rest_s = rest_s(original)
        self._lasting = set(lasting(original))

    def __call__(self, document: Document) -> bool:
        """Run it and compare."""
        if self._at_end:
            too_short = self._rest_s is not None and (rest_s(document) or 0) < self._rest_s
            if too_short or not self._lasting.issuperset(lasting(document)):
                return False
        try:
            found = failures_of(document, lean=self._lean)
        except (ScenarioWrong, ScenarioPlanned):
            return False
        return any(failure.kind == self._kind for failure in found)


def rest_s(document: Document) -> float | None:
    """Time between `settle` and the end; None without it."""
    settled = [step["at"] for step in document["steps"] if "settle" in step]
    return float(document["until"] - settled[0]) if settled else None


def lasting(document: Document) -> Iterator[str]:
    """States that hold at the end because nothing ends them: `n3 killed`, `n1/0 broken`."""
    states: dict[str, str] = {}
    for step in sorted(document["steps"], key=lambda step: float(step["at"])):
        arguments: Any = step[verb_of(step)]
        if "node" in step:
            verb = next((name for name in (*BEGINS, *ENDS) if name in arguments), "")
            node = arguments.get(verb)
            if verb in BEGINS:
                states[f"{node} {BEGINS[verb]}"] = ""
            elif verb in ENDS:
                states.pop(f"{node} {ENDS[verb]}", None)
        elif "device" in step:
            device = f"{arguments.get('node')}/{arguments.get('index', 0)} broken"
            if "repair" in arguments:
                states.pop(device, None)
            else:
                states[device] = ""
    yield from states
