"""`process`: what happens to a task's own process."""

from __future__ import annotations

from typing import Any, Final

from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.verb import Verb

_KILL: Final = Form(
    "kill",
    "a member's process",
    (
        Field("task", kinds.TEXT, "id of the task", required=True),
        Field("member", kinds.integer(0, 100_000), "number of the member", default=0),
    ),
)
_STOP: Final = Form(
    "stop_takes_s",
    "a slow end",
    (
        Field("task", kinds.TEXT, "id of the task", required=True),
        Field("seconds", kinds.SECONDS, "time that its stop takes", required=True),
    ),
)
_FORM: Final = Form(
    "process",
    "what happens to a task's process",
    (
        Field("kill", _KILL.kind(), "a member's process is gone"),
        Field("stop_takes_s", _STOP.kind(), "its stop takes long"),
    ),
    one_of=("kill", "stop_takes_s"),
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    if values["kill"] is not None:
        await stage.machines.kill_process(values["kill"]["task"], values["kill"]["member"])
    else:
        await stage.machines.stop_takes(values["stop_takes_s"]["task"], values["stop_takes_s"]["seconds"])


VERB: Final = Verb("process", "what happens to a task's own process", _FORM.kind(), _act)
