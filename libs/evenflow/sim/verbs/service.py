"""`service`: what happens to the product's own processes."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Values
from evenflow.sim.stage import Stage, Which
from evenflow.sim.verbs.verb import Verb

SERVICES: Final = ("inventory", "placement", "link-probe", "checkpoint", "billing", "gateway", "console")
_NAME: Final = kinds.choice(*SERVICES, "all")


def _check(values: Values, path: str) -> None:
    for detail, verb in (("clock_s", "skew"), ("offsets", "rewind")):
        if detail in values and verb not in values:
            raise FieldRefused(f"{path}.{detail}", f"belongs to {verb}")
        if verb in values and detail not in values:
            raise FieldRefused(f"{path}.{detail}", f"is required with {verb}")
    if "at_point" in values and not {"kill", "pause"} & values.keys():
        raise FieldRefused(f"{path}.at_point", "belongs to kill or pause")
    if "after_steps" in values and ("kill" not in values or "at_point" in values):
        raise FieldRefused(f"{path}.after_steps", "belongs to kill, without at_point")


_FORM: Final = Form(
    "service",
    "one thing that happens to a service",
    (
        Field("kill", _NAME, "gone until restart"),
        Field("pause", _NAME, "stands still"),
        Field("resume", _NAME, "goes on"),
        Field("restart", _NAME, "starts again; a running one is killed before"),
        Field("add", _NAME, "one more process of it, a standby"),
        Field("skew", _NAME, "its wall clock is wrong"),
        Field("rewind", _NAME, "its groups read again"),
        Field("which", kinds.choice("leader", "standby"), "which of its processes"),
        Field("at_point", kinds.TEXT, "at the next visit of this fail point"),
        Field("after_steps", kinds.integer(1, 10_000_000), "after so many of its own steps"),
        Field("clock_s", kinds.SIGNED_SECONDS, "by how much"),
        Field("offsets", kinds.integer(1, 10**9), "records per partition"),
    ),
    one_of=("kill", "pause", "resume", "restart", "add", "skew", "rewind"),
    check=_check,
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    verb = next(name for name in _FORM.one_of if values[name] is not None)
    which = Which(values[verb], values["which"], values["at_point"], values["after_steps"])
    services = stage.services
    match verb:
        case "kill":
            await services.kill(which)
        case "pause":
            await services.pause(which)
        case "resume":
            await services.resume(which)
        case "restart":
            await services.restart(which)
        case "add":
            await services.add(which.service)
        case "skew":
            await services.skew(which, values["clock_s"])
        case _:
            await services.rewind(which, values["offsets"])


VERB: Final = Verb("service", "what happens to the product's own processes", _FORM.kind(), _act)
