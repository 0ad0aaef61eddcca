"""`checkpoint`: what happens to saved progress in the store."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Values
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.verb import Verb

_WRITE: Final = Form(
    "write",
    "a checkpoint as a stale process would write it",
    (
        Field("generation", kinds.integer(1, 1_000_000), "generation of the writer", required=True),
        Field("progress_s", kinds.SECONDS, "work that it claims to hold", required=True),
        Field("parts", kinds.integer(1, 10_000), "parts that its manifest names", default=1),
        Field("there", kinds.integer(0, 10_000), "parts that are really there, from the first; all unless said"),
    ),
)


def _check(values: Values, path: str) -> None:
    if values.get("truncate") is False:
        raise FieldRefused(f"{path}.truncate", "can only be true")


_FORM: Final = Form(
    "checkpoint",
    "the task and what happens to its newest checkpoint",
    (
        Field("task", kinds.TEXT, "id of the task", required=True),
        Field("damage", kinds.integer(1, 100_000), "this part has other bytes"),
        Field("truncate", kinds.BOOLEAN, "its last part is cut"),
        Field("write", _WRITE.kind(), "one is written under the usual name"),
    ),
    one_of=("damage", "truncate", "write"),
    check=_check,
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    if values["write"] is not None:
        write = values["write"]
        parts = write["parts"]
        there = parts if write["there"] is None else min(parts, write["there"])
        await stage.data.write_checkpoint(
            values["task"], write["generation"], write["progress_s"], part_count=parts, there_count=there
        )
    else:
        part = values["damage"] or 0
        await stage.data.damage_checkpoint(values["task"], part, truncate=bool(values["truncate"]))


VERB: Final = Verb("checkpoint", "what happens to saved progress in the store", _FORM.kind(), _act)
