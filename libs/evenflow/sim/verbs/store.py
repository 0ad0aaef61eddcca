"""`store`: faults of the stores and of the log."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Values
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.verb import Verb

_STORE: Final = kinds.choice("live", "documents", "objects", "log")
_KEPT: Final = kinds.choice("live", "documents", "objects")
_COUNTED: Final = ("refuse", "lose_answers", "swallow")


def _check(values: Values, path: str) -> None:
    if "times" in values and not set(_COUNTED) & values.keys():
        raise FieldRefused(f"{path}.times", "belongs to refuse, lose_answers or swallow")
    if "match" in values and "refuse" not in values:
        raise FieldRefused(f"{path}.match", "belongs to refuse")


_FORM: Final = Form(
    "store",
    "one thing that happens to a store",
    (
        Field("wipe", kinds.choice("live", "documents"), "it is empty"),
        Field("down", _STORE, "it does not answer"),
        Field("up", _STORE, "it answers again"),
        Field("read_only", _STORE, "it refuses every write"),
        Field("refuse", _KEPT, "it refuses matching writes"),
        Field("lose_answers", _KEPT, "it applies and does not answer"),
        Field("swallow", _KEPT, "it answers and does not keep"),
        Field("match", kinds.ANY_MAP, "fields of the writes that are refused", default={}),
        Field("times", kinds.integer(1, 1_000_000), "how often", default=1),
    ),
    one_of=("wipe", "down", "up", "read_only", *_COUNTED),
    check=_check,
)


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    verb = next(name for name in _FORM.one_of if values[name] is not None)
    store = values[verb]
    match verb:
        case "wipe":
            await stage.stores.wipe(store)
        case "down":
            await stage.stores.down(store)
        case "up":
            await stage.stores.up(store)
        case "read_only":
            await stage.stores.read_only(store)
        case "refuse":
            await stage.stores.refuse(store, values["match"], values["times"])
        case "lose_answers":
            await stage.stores.lose_answers(store, values["times"])
        case _:
            await stage.stores.swallow(store, values["times"])


VERB: Final = Verb("store", "faults of the stores and of the log", _FORM.kind(), _act)
