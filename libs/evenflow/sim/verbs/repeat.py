"""`repeat`: the same submission several times, `{i}` numbered from 1, the first one at the step's own time."""

from __future__ import annotations

from typing import Any, Final

from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.submit import SPECIFICATION
from evenflow.sim.verbs.verb import Verb

TIMES_MAX: Final = 1_000_000

_FORM: Final = Form(
    "repeat",
    "what is submitted, how often",
    (
        Field("every_s", kinds.SECONDS, "time between two", required=True),
        Field("times", kinds.integer(1, TIMES_MAX), "how many", required=True),
        Field("submit", SPECIFICATION, "the specification; {i} in any text is the number", required=True),
    ),
)


def numbered(value: Any, number: int) -> Any:
    """The value with `{i}` replaced by the number in every text."""
    if isinstance(value, str):
        return value.replace("{i}", str(number))
    if isinstance(value, dict):
        return {numbered(name, number): numbered(entry, number) for name, entry in value.items()}
    if isinstance(value, list):
        return [numbered(entry, number) for entry in value]
    return value


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    every_ms, times, specification = values["every_s"], values["times"], values["submit"]

    async def one(number: int) -> None:
        if number < times:
            stage.later(every_ms, lambda: one(number + 1))
        await stage.door.submit(numbered(specification, number))

    await one(1)


VERB: Final = Verb("repeat", "the same submission several times", _FORM.kind(), _act)
