"""The shape of an expectation form: its fields, how it is recognised, and how it is judged.

A judge looks at the observation at one moment and answers whether it holds and what was found. Moments are the
runner's matter: `at` = after every record of time ≤ T, `by` = entered at or before T even if left since, `between`
includes both ends, none = at the end of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.sim.observation.model import Observation
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Status, Values


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether it holds, and what was found instead."""

    holds: bool
    got: Any


#: values, observation, moment in ms → answer, for `at` and for no moment.
AtJudge = Callable[[Values, Observation, int], Answer]
#: The same for `by`: entered at or before the moment.
ByJudge = Callable[[Values, Observation, int], Answer]


@dataclass(frozen=True, slots=True)
class Expect:
    """One form. `marks` are the keys of which each must be there for an expectation to be of this form."""

    name: str
    about: str
    marks: tuple[tuple[str, ...], ...]
    form: Form
    at: AtJudge
    by: ByJudge | None = None
    status: Status = "ready"

    def recognises(self, keys: frozenset[str]) -> bool:
        """Whether the keys are those of this form: one of each group of marks."""
        return all(any(mark in keys for mark in group) for group in self.marks)


AT: Final = Field("at", kinds.SECONDS, "after every record of time ≤ T")
BY: Final = Field("by", kinds.SECONDS, "entered at or before T, even if left since")
BETWEEN: Final = Field("between", kinds.list_of(kinds.SECONDS, least=2, most=2), "[from, to], both included")


def one_moment(values: Values, path: str) -> None:
    """Refuse more than one of at, by, between."""
    given = [name for name in ("at", "by", "between") if name in values]
    if len(given) > 1:
        raise FieldRefused(f"{path}.{given[1]}", f"cannot stand beside {given[0]}")


def moment_of(values: Values, until_ms: int) -> int:
    """The moment at which an expectation is decided; the end of the run unless it says so."""
    for name in ("at", "by"):
        if values.get(name) is not None:
            return int(values[name])
    if values.get("between") is not None:
        return int(values["between"][1])
    return until_ms
