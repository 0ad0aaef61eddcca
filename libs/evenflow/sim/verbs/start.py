"""`start`: how starts go on a node or for a task's member."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Values
from evenflow.sim.stage import Stage, StartFault
from evenflow.sim.verbs.verb import Verb


def _check(values: Values, path: str) -> None:
    if not {"fails_after_s", "takes_s", "hangs"} & values.keys():
        raise FieldRefused(path, "needs fails_after_s, takes_s or hangs")


_FORM: Final = Form(
    "start",
    "how starts go",
    (
        Field("node", kinds.ID, "every start on this node"),
        Field("task", kinds.TEXT, "every start of this task"),
        Field("member", kinds.integer(0, 100_000), "of this member only"),
        Field("fails_after_s", kinds.SECONDS, "it fails after this time"),
        Field("takes_s", kinds.SECONDS, "it takes this time"),
        Field(
            "times", kinds.either(kinds.integer(1, 1_000_000), kinds.choice("forever")), "how often", default="forever"
        ),
        Field("hangs", kinds.BOOLEAN, "it never ends", default=False),
    ),
    one_of=("node", "task"),
    check=_check,
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    fault = StartFault(
        node=values["node"],
        task=values["task"],
        member=values["member"],
        fails_after_ms=values["fails_after_s"],
        takes_ms=values["takes_s"],
        times=None if values["times"] == "forever" else values["times"],
        hangs=values["hangs"],
    )
    await stage.machines.start_fault(fault)


VERB: Final = Verb("start", "how starts go on a node or for a task", _FORM.kind(), _act)
