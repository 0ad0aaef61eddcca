"""`deliver`: what happens to records between their sender and the log."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Values
from evenflow.sim.stage import DeliveryRule, Stage
from evenflow.sim.verbs.verb import Verb

REORDERED_UNLESS_SAID: Final = 2
#: Topics that carry what agents send or receive: the only ones where a record may be dropped.
AGENT_TOPICS: Final = (
    "evenflow.runs.v1",
    "evenflow.telemetry.v1",
    "evenflow.probes.v1",
    "evenflow.dispatch.v1",
    "evenflow.node-requests.v1",
    "evenflow.transfers.v1",
)


def _check(values: Values, path: str) -> None:
    if values["action"] == "drop" and values["topic"] not in AGENT_TOPICS:
        raise FieldRefused(f"{path}.action", "drop is only possible on what agents send or receive")
    if "copies" in values and values["action"] != "duplicate":
        raise FieldRefused(f"{path}.copies", "belongs to duplicate")
    if "after_s" in values and values["action"] not in ("duplicate", "hold"):
        raise FieldRefused(f"{path}.after_s", "belongs to duplicate or hold")


_FORM: Final = Form(
    "deliver",
    "which records, and what happens to them",
    (
        Field("topic", kinds.TEXT, "the topic", required=True),
        Field("match", kinds.ANY_MAP, "headers and top-level fields by name", default={}),
        Field("action", kinds.choice("duplicate", "drop", "hold", "reorder"), "what happens", required=True),
        Field("times", kinds.integer(1, 1_000_000), "the first so many matches; all unless said"),
        Field("for_s", kinds.SECONDS, "how long; to the end unless said"),
        Field("copies", kinds.integer(1, 1_000), "copies of a duplicated record", default=1),
        Field("after_s", kinds.SECONDS, "when the copies come, or when a hold ends"),
    ),
    check=_check,
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    times = values["times"]
    if times is None and values["action"] == "reorder":
        times = REORDERED_UNLESS_SAID
    rule = DeliveryRule(
        topic=values["topic"],
        match=values["match"],
        action=values["action"],
        times=times,
        ends_ms=None if values["for_s"] is None else stage.now_ms() + values["for_s"],
        copies=values["copies"],
        after_ms=values["after_s"],
    )
    await stage.delivery.rule(rule)


VERB: Final = Verb("deliver", "what happens to records between sender and log", _FORM.kind(), _act)
