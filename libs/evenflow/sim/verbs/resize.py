"""`resize`: give a gang another number of members."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.lifecycle.event_types import EventType
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.verb import Verb

_FORM: Final = Form(
    "resize",
    "the task and its new number of members",
    (
        Field("task", kinds.TEXT, "id of the task", required=True),
        Field("members", kinds.ANYTHING, "members wanted, sent as written", required=True),
    ),
    status="planned",
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    await stage.door.request(EventType.TASK_CHANGE_REQUESTED, values["task"], {"members": values["members"]})


VERB: Final = Verb("resize", "give a gang another number of members", _FORM.kind(), _act, "planned")
