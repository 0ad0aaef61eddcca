"""`report`: a receipt made up in an agent's name."""

from __future__ import annotations

from typing import Any, Final

from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Kind, Reading
from evenflow.sim.stage import Report, Stage
from evenflow.sim.verbs.verb import Verb

_SIGNED: Final = kinds.choice("wrong", "revoked", "replayed")


def _read_signed(value: object, path: str, reading: Reading) -> str:
    if isinstance(value, bool):
        return "right" if value else "false"
    return str(_SIGNED.read(value, path, reading))


_FORM: Final = Form(
    "report",
    "the receipt",
    (
        Field("task", kinds.TEXT, "id of the task", required=True),
        Field("attempt", kinds.integer(0, 1_000_000), "number of the attempt", default=1),
        Field("member", kinds.integer(0, 100_000), "number of the member", default=0),
        Field("type", kinds.TEXT, "type of the receipt, such as attempt.started", required=True),
        Field("at", kinds.SECONDS, "the moment claimed; now unless said"),
        Field("signed", Kind("true | false | wrong | revoked | replayed", _read_signed), "how", default="right"),
        Field("node", kinds.ID, "the node, for attempts that were never issued"),
        Field("values", kinds.ANY_MAP, "further fields of the receipt", default={}),
    ),
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    report = Report(
        task=values["task"],
        attempt=values["attempt"],
        member=values["member"],
        type=values["type"],
        at_ms=values["at"],
        signed=values["signed"],
        node=values["node"],
        values=values["values"],
    )
    await stage.receipts.report(report)


VERB: Final = Verb("report", "a receipt made up in an agent's name", _FORM.kind(), _act)
