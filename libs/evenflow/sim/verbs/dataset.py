"""`dataset`: copies come and go."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Values
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.verb import Verb

_DROP: Final = Form(
    "drop",
    "one copy",
    (
        Field("id", kinds.ID, "the dataset", required=True),
        Field("site", kinds.ID, "where the copy is", required=True),
    ),
)


def _check(values: Values, path: str) -> None:
    if "silently" in values and "drop" not in values:
        raise FieldRefused(f"{path}.silently", "belongs to drop")
    if "evict_to" in values and "id" not in values:
        raise FieldRefused(f"{path}.id", "is required with evict_to")


_FORM: Final = Form(
    "dataset",
    "one thing that happens to a dataset",
    (
        Field("drop", _DROP.kind(), "a copy is gone"),
        Field("silently", kinds.BOOLEAN, "and nobody says so", default=False),
        Field("add", kinds.ANY_MAP, "a dataset as in `datasets`, sent as written"),
        Field("evict_to", kinds.integer(0, 1_000), "copies that may stay", status="planned"),
        Field("id", kinds.ID, "the dataset of evict_to", status="planned"),
    ),
    one_of=("drop", "add", "evict_to"),
    check=_check,
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    if values["drop"] is not None:
        await stage.data.drop_dataset(values["drop"]["id"], values["drop"]["site"], silently=values["silently"])
    elif values["add"] is not None:
        await stage.data.add_dataset(values["add"])


VERB: Final = Verb("dataset", "copies come and go", _FORM.kind(), _act)
