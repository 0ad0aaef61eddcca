"""`submit`: a task specification, sent to the door exactly as written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.events.documents.readiness import PLANNED
from evenflow.sim.scenario.schema import Kind, Reading
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.verb import Verb

_DEFAULTS: Final[dict[str, Any]] = {"groups": [], "latency": {"class": "tolerant"}, "kind": "job", "secrets": {}}
#: Fields of a task specification that are planned, with their defaults. The door reads all others itself.
PLANNED_TASK_FIELDS: Final[dict[str, Any]] = {
    name: _DEFAULTS.get(name) for name in sorted({"replicas", *PLANNED["task"]} - {"members[].resources"})
}


def read_specification(value: object, path: str, reading: Reading) -> object:
    """Any value, as written; planned features of a mapping are noted."""
    if value is None:
        raise FieldRefused(path, "must not be null")
    if isinstance(value, Mapping):
        for name, default in PLANNED_TASK_FIELDS.items():
            if name in value:
                reading.uses_planned(f"{path}.{name}", "planned", value[name], default)
        if isinstance(value.get("members"), list):
            reading.uses_planned(f"{path}.members", "planned", value["members"], None)
    return value


SPECIFICATION: Final = Kind("task specification", read_specification)


async def _act(stage: Stage, specification: Any) -> None:
    await stage.door.submit(specification)


VERB: Final = Verb("submit", "a task specification, sent to the door exactly as written", SPECIFICATION, _act)
