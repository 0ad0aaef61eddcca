"""`telemetry`: what a node's sensors say."""

from __future__ import annotations

from typing import Any, Final

from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.verb import Verb

_FORM: Final = Form(
    "telemetry",
    "the node and its readings",
    (
        Field("node", kinds.ID, "the node", required=True),
        Field("set", kinds.ANY_MAP, "raw readings by name"),
        Field("silent", kinds.BOOLEAN, "heartbeats without readings"),
    ),
    one_of=("set", "silent"),
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    await stage.machines.telemetry(values["node"], values["set"], silent=bool(values["silent"]))


VERB: Final = Verb("telemetry", "what a node's sensors say", _FORM.kind(), _act)
