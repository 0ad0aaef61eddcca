"""`cancel`: ask for a task's end."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.lifecycle.event_types import EventType
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.verb import Verb

_FORM: Final = Form(
    "cancel",
    "the task and why",
    (
        Field("task", kinds.TEXT, "id of the task", required=True),
        Field("reason", kinds.TEXT, "why", default=""),
    ),
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    await stage.door.request(EventType.TASK_CANCEL_REQUESTED, values["task"], {"reason": values["reason"]})


VERB: Final = Verb("cancel", "ask for a task's end", _FORM.kind(), _act)
