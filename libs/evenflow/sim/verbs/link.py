"""`link`: change the real link, which link-probe must find out."""

from __future__ import annotations

from typing import Any, Final

from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.verb import Verb

_FORM: Final = Form(
    "link",
    "the link and what becomes of it",
    (
        Field("from", kinds.ID, "site it leaves", required=True),
        Field("to", kinds.ID, "site it reaches", required=True),
        Field("bandwidth", kinds.RATE, "bits per second"),
        Field("round_trip_ms", kinds.NUMBER, "round trip"),
        Field("loss", kinds.NUMBER, "part of packets lost"),
    ),
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    changes = {name: values[name] for name in ("bandwidth", "round_trip_ms", "loss") if values[name] is not None}
    await stage.network.change_link(values["from"], values["to"], changes)


VERB: Final = Verb("link", "change the real link", _FORM.kind(), _act)
