"""The queue document: quota, place in the tree, order and budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from evenflow.core.queueing.description import ROOT, Limits, QueueDescription
from evenflow.events.documents import fields as f
from evenflow.events.documents import quantities as q

LIMIT_FIELDS: Final[dict[str, f.Reader]] = {
    "cpu": q.scaled(1_000),
    "memory": q.size(),
    "disk": q.size(),
    "devices": q.scaled(1_000),
}


@f.map_of(LIMIT_FIELDS)
def _read_limits(given: dict[str, Any]) -> Limits:
    return Limits(given.get("cpu"), given.get("memory"), given.get("disk"), given.get("devices"))


@f.map_of(LIMIT_FIELDS)
def _read_guarantee(given: dict[str, Any]) -> Limits:
    return Limits(given.get("cpu", 0), given.get("memory", 0), given.get("disk", 0), given.get("devices", 0))


FIELDS: Final[dict[str, f.Reader]] = {
    "id": f.read_id,
    "parent": f.read_id,
    "guaranteed": _read_guarantee,
    "borrowing_limit": _read_limits,
    "lending_limit": _read_limits,
    "limit": _read_limits,
    "weight": q.scaled(1_000),
    "order": f.one_of("default", "strict"),
    "waiting_limit": q.integer(0, 10_000_000),
    "budget": q.read_money,
}
_KEPT_AS: Final = {"weight": "weight_milli", "budget": "budget_micro"}


#: Beyond the fields: root is above all, so it has no parent.
_RULES: Final[tuple[Mapping[str, Any], ...]] = (
    {"not": {"properties": {"id": {"const": ROOT}}, "required": ["id", "parent"]}},
)


@f.map_of(FIELDS, "id", rules=_RULES)
def read_queue(given: dict[str, Any]) -> QueueDescription:
    """Read a queue, or say all that is wrong with it."""
    if given["id"] == ROOT:
        if "parent" in given:
            raise f.FieldProblem(below=[("parent", "can't be given to root, which is above all")])
        given["parent"] = None
    elif given.get("parent") == given["id"]:
        raise f.FieldProblem(below=[("parent", "is the queue itself")])
    return QueueDescription(**{_KEPT_AS.get(name, name): entry for name, entry in given.items()})


def parse_queue(document: object) -> QueueDescription:
    """Read a queue. Raises FieldRefused for the first problem."""
    return f.parsed(read_queue, document)
