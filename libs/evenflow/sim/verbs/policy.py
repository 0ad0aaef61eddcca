"""`policy`: a new version of the policy document."""

from __future__ import annotations

from typing import Any, Final

from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.policy import POLICY
from evenflow.sim.scenario.schema import Field, Form, Kind, Reading
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.verb import Verb


def _read_policy(value: object, path: str, reading: Reading) -> dict[str, Any]:
    written = kinds.ANY_MAP.read(value, path, reading)
    POLICY.read(written, path, reading)
    return dict(written)


_FORM: Final = Form(
    "policy",
    "the policy's new values",
    (Field("set", Kind("policy", _read_policy, POLICY), "keys of a policy; those left out stay", required=True),),
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    await stage.door.document("policy", values["set"].get("name", "default"), values["set"])


VERB: Final = Verb("policy", "a new version of the policy document", _FORM.kind(), _act)
