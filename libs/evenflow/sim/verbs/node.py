"""`node`: what happens to a machine and its agent."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.core.lifecycle.event_types import EventType
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Values
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.verb import Verb

_PAIRS: Final = {
    "at_s": "reclaim",
    "deadline_s": "drain",
    "clock_s": "skew",
    "at_point": "restart",
    "after_steps": "restart",
}


def _check(values: Values, path: str) -> None:
    for detail, verb in _PAIRS.items():
        if detail in values and verb not in values:
            raise FieldRefused(f"{path}.{detail}", f"belongs to {verb}")
    if "skew" in values and "clock_s" not in values:
        raise FieldRefused(f"{path}.clock_s", "is required with skew")


_FORM: Final = Form(
    "node",
    "one thing that happens to a node",
    (
        Field("add", kinds.ANYTHING, "a node as in `nodes`, sent as written"),
        Field("kill", kinds.ID, "the machine and all its processes are gone"),
        Field("restart", kinds.ID, "the agent process alone; after a kill the machine boots empty"),
        Field("pause", kinds.ID, "the agent process stands still"),
        Field("resume", kinds.ID, "it goes on"),
        Field("reclaim", kinds.ID, "its provider wants it back", status="planned"),
        Field("at_s", kinds.SECONDS, "when the provider takes it", status="planned"),
        Field("remove", kinds.ID, "it leaves for good"),
        Field("cordon", kinds.ID, "no new work"),
        Field("uncordon", kinds.ID, "new work again"),
        Field("drain", kinds.ID, "no new work, and what runs moves away"),
        Field("deadline_s", kinds.SECONDS, "when a drain stops what still runs"),
        Field("at_point", kinds.TEXT, "the agent ends at its next visit of this fail point"),
        Field("after_steps", kinds.integer(1, 10_000_000), "the agent ends after so many of its own steps"),
        Field("skew", kinds.ID, "its wall clock is wrong"),
        Field("clock_s", kinds.SIGNED_SECONDS, "by how much"),
    ),
    one_of=("add", "kill", "restart", "pause", "resume", "reclaim", "remove", "cordon", "uncordon", "drain", "skew"),
    check=_check,
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    match next(name for name in _FORM.one_of if values[name] is not None):
        case "add":
            await stage.nodes.add(values["add"])
        case "skew":
            await stage.nodes.skew(values["skew"], values["clock_s"])
        case "cordon":
            await stage.door.request(EventType.NODE_CORDON_REQUESTED, values["cordon"], {})
        case "uncordon":
            await stage.door.request(EventType.NODE_UNCORDON_REQUESTED, values["uncordon"], {})
        case "drain":
            body = {} if values["deadline_s"] is None else {"deadline_ms": values["deadline_s"]}
            await stage.door.request(EventType.NODE_DRAIN_REQUESTED, values["drain"], body)
        case "kill":
            await stage.nodes.kill(values["kill"])
        case "restart":
            await stage.nodes.restart(values["restart"], values["at_point"], values["after_steps"])
        case "pause":
            await stage.nodes.pause(values["pause"])
        case "resume":
            await stage.nodes.resume(values["resume"])
        case _:
            await stage.nodes.remove(values["remove"])


VERB: Final = Verb("node", "what happens to a machine and its agent", _FORM.kind(), _act)
