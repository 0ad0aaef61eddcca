"""`window`: maintenance windows and the end of quotas."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.lifecycle.event_types import EventType
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.verb import Verb

_FORM: Final = Form(
    "window",
    "what ends or pauses, and when",
    (
        Field("nodes", kinds.list_of(kinds.ID), "nodes under maintenance"),
        Field("links", kinds.list_of(kinds.list_of(kinds.ID)), "links under maintenance, each [from, to]"),
        Field("from_s", kinds.SECONDS, "its start"),
        Field("to_s", kinds.SECONDS, "its end"),
        Field("quota", kinds.ID, "queue whose quota ends"),
        Field("renew", kinds.ID, "queue whose quota is renewed"),
        Field("ends_s", kinds.SECONDS, "when it ends"),
        Field("daily", kinds.TEXT, "every day, such as 02:30-03:30"),
        Field("zone", kinds.TEXT, "time zone of daily"),
    ),
    status="planned",
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    body = {name: value for name, value in values.items() if value is not None}
    if values["renew"] is not None:
        await stage.door.request(EventType.QUOTA_RENEW_REQUESTED, values["renew"], body)
    else:
        subject = values["quota"] or (values["nodes"] or ["all"])[0]
        await stage.door.request(EventType.WINDOW_SET_REQUESTED, subject, body)


VERB: Final = Verb("window", "maintenance windows and the end of quotas", _FORM.kind(), _act, "planned")
