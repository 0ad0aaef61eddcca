"""The node description: what an agent announces and what a scenario lists under `nodes`."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.fleet.catalogue import MODELS
from evenflow.core.fleet.description import UNNAMED_MODEL, DeviceGroup, NodeDescription, Slice
from evenflow.events.documents import fields as f
from evenflow.events.documents import quantities as q
from evenflow.events.documents.task_specification import DEVICES_MAX, PRECISIONS

SLICES_MAX: Final = 64

_SLICE_FIELDS: Final[dict[str, f.Reader]] = {"profile": f.read_id, "count": q.integer(1, 1_000)}


@f.map_of(_SLICE_FIELDS, "profile", "count")
def _read_slice(given: dict[str, Any]) -> Slice:
    return Slice(given["profile"], given["count"])


DEVICE_FIELDS: Final[dict[str, f.Reader]] = {
    "model": f.read_id,
    "count": q.integer(0, DEVICES_MAX),
    "memory": q.size(),
    "slices": f.list_of(_read_slice, SLICES_MAX),
    "precisions": f.list_of(f.one_of(*PRECISIONS), len(PRECISIONS)),
}


@f.map_of(DEVICE_FIELDS)
def _read_devices(given: dict[str, Any]) -> DeviceGroup | None:
    count = given.get("count", 1 if given else 0)
    if not count:
        return None
    model = given.get("model", UNNAMED_MODEL)
    known = MODELS.get(model)
    memory, precisions = (known.memory_bytes, known.precisions) if known else (0, ())
    return DeviceGroup(
        model=model,
        count=count,
        memory_bytes=given.get("memory", memory),
        precisions=given.get("precisions", precisions),
        slices=given.get("slices", ()),
    )


FIELDS: Final[dict[str, f.Reader]] = {
    "id": f.read_id,
    "site": f.read_id,
    "rack": f.read_id,
    "cpu": q.scaled(1_000),
    "memory": q.size(),
    "disk": q.size(),
    "devices": _read_devices,
    "price_per_hour": q.read_money,
    "cpu_price_per_hour": q.read_money,
    "class": f.one_of("core", "normal"),
    "labels": f.read_labels,
}
_KEPT_AS: Final = {
    "cpu": "cpu_milli",
    "memory": "memory_bytes",
    "disk": "disk_bytes",
    "price_per_hour": "price_per_hour_micro",
    "cpu_price_per_hour": "cpu_price_per_hour_micro",
    "class": "node_class",
}


@f.map_of(FIELDS, "id", "site")
def read_node(given: dict[str, Any]) -> NodeDescription:
    """Read a node description, or say all that is wrong with it."""
    return NodeDescription(**{_KEPT_AS.get(name, name): entry for name, entry in given.items()})


def parse_node(document: object) -> NodeDescription:
    """Read a node description. Raises FieldRefused for the first problem."""
    return f.parsed(read_node, document)


def node_problems(document: object) -> list[f.Problem]:
    """List every problem of a node description."""
    return f.problems_of(read_node, document)
