"""The queue document: quota, place in the tree, order and budget."""

from __future__ import annotations

from typing import Final

from evenflow.core.queueing.description import ROOT, Limits, QueueDescription
from evenflow.events.documents import fields as f
from evenflow.events.documents import quantities as q

LIMIT_FIELDS: Final[dict[str, f.Reader]] = {
    "cpu": q.scaled(1_000),
    "memory": q.size(),
    "disk": q.size(),
    "devices": q.scaled(1_000),
}


def _read_limits(value: object) -> Limits:
    given = f.read_map(value, LIMIT_FIELDS)
    return Limits(given.get("cpu"), given.get("memory"), given.get("disk"), given.get("devices"))


def _read_guarantee(value: object) -> Limits:
    given = f.read_map(value, LIMIT_FIELDS)
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


def _read_queue(value: object) -> QueueDescription:
    given = f.read_map(value, FIELDS)
    f.require(given, "id")
    if given["id"] == ROOT:
        if "parent" in given:
            raise f.FieldProblem(below=[("parent", "can't be given to root, which is above all")])
        given["parent"] = None
    elif given.get("parent") == given["id"]:
        raise f.FieldProblem(below=[("parent", "is the queue itself")])
    return QueueDescription(**{_KEPT_AS.get(name, name): entry for name, entry in given.items()})


def parse_queue(document: object) -> QueueDescription:
    """Read a queue. Raises FieldRefused for the first problem."""
    return f.parsed(_read_queue, document)
