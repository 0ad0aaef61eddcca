"""`queue`: a new version of a queue's document."""

from __future__ import annotations

from typing import Any, Final

from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.file import QUEUE
from evenflow.sim.scenario.schema import Field, Form, Kind, Reading
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.verb import Verb


def _read_queue(value: object, path: str, reading: Reading) -> dict[str, Any]:
    written = kinds.ANY_MAP.read(value, path, reading)
    QUEUE.read(written, path, reading)
    return dict(written)


_FORM: Final = Form(
    "queue",
    "the queue and its new values",
    (Field("set", Kind("queue", _read_queue, QUEUE), "a queue as in `queues`; fields left out stay", required=True),),
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    await stage.door.document("queue", values["set"]["id"], values["set"])


VERB: Final = Verb("queue", "a new version of a queue's document", _FORM.kind(), _act)
