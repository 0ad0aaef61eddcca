"""`reprioritise`: give a task another priority."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.lifecycle.event_types import EventType
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.verb import Verb

_FORM: Final = Form(
    "reprioritise",
    "the task and its new priority",
    (
        Field("task", kinds.TEXT, "id of the task", required=True),
        Field("priority", kinds.ANYTHING, "0 to 1000, sent as written", required=True),
    ),
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    await stage.door.request(EventType.TASK_CHANGE_REQUESTED, values["task"], {"priority": values["priority"]})


VERB: Final = Verb("reprioritise", "give a task another priority", _FORM.kind(), _act)
