"""`device`: what happens to one accelerator."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Values
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.verb import Verb

_CHANGES: Final = ("break", "repair", "leftover")


def _check(values: Values, path: str) -> None:
    for name in _CHANGES:
        if values.get(name) is False:
            raise FieldRefused(f"{path}.{name}", "can only be true")


_FORM: Final = Form(
    "device",
    "the device and what becomes of it",
    (
        Field("node", kinds.ID, "its node", required=True),
        Field("index", kinds.integer(0, 63), "its number on the node", default=0),
        Field("break", kinds.BOOLEAN, "it fails"),
        Field("repair", kinds.BOOLEAN, "it works again"),
        Field("leftover", kinds.BOOLEAN, "a process stays on it after the task ends"),
        Field("slow", kinds.NUMBER, "part of its speed that is left", status="planned"),
    ),
    one_of=(*_CHANGES, "slow"),
    check=_check,
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    for change in _CHANGES:
        if values[change]:
            await stage.machines.device(values["node"], values["index"], change)


VERB: Final = Verb("device", "what happens to one accelerator", _FORM.kind(), _act)
