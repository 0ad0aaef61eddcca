"""`settle`: faults end here; from now on everything satisfiable must finish."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.sim.scenario.schema import Kind, Reading
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.verb import Verb


def _nothing(value: object, path: str, _reading: Reading) -> None:
    if value not in (None, {}):
        raise FieldRefused(path, "settle takes no arguments")


async def _act(stage: Stage, _values: Any) -> None:
    await stage.settle()


VERB: Final = Verb("settle", "faults end here", Kind("nothing", _nothing), _act)
