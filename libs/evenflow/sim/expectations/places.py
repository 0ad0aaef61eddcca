"""`{queue, used}`, `{node, …}`, `{device, …}`, `{total}`, `{dataset, copies}`: queues, nodes, devices, datasets."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.core.lifecycle.node import Administration, DeviceState, Health, Reach
from evenflow.sim.expectations.form import AT, BY, Answer, Expect, one_moment
from evenflow.sim.observation.entities import NodeMoment
from evenflow.sim.observation.model import Observation
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.file import AMOUNTS
from evenflow.sim.scenario.schema import Field, Form, Kind, Reading, Values

_REACH: Final = tuple(str(entry) for entry in Reach)
_ADMINISTRATION: Final = tuple(str(entry) for entry in Administration)
_HEALTH: Final = tuple(str(entry) for entry in Health)


def _read_node_state(value: object, path: str, reading: Reading) -> str:
    if value == "ok":
        raise FieldRefused(path, "is ambiguous: say reach: ok or health: ok")
    return str(kinds.choice(*_REACH[1:], *_ADMINISTRATION, *_HEALTH[1:]).read(value, path, reading))


def _compare(wanted: dict[str, int], found: dict[str, int]) -> tuple[bool, dict[str, int]]:
    got = {name: found.get(name, 0) for name in wanted}
    return got == wanted, got


def _queue(values: Values, model: Observation, t_ms: int) -> Answer:
    view = model.queues.get(values["queue"])
    moment = None if view is None else view.history.at(t_ms)
    holds, got = _compare(values["used"], dict(moment or ()))
    return Answer(holds, {"used": got})


QUEUE: Final = Expect(
    "queue",
    "what the live attempts of a queue use",
    (("queue",), ("used",)),
    Form(
        "queue expectation",
        "a queue at a moment",
        (
            AT,
            Field("queue", kinds.ID, "name of the queue", required=True),
            Field("used", AMOUNTS.partial(), "amounts by dimension, exact", required=True),
        ),
    ),
    _queue,
)


def _copies(values: Values, model: Observation, t_ms: int) -> Answer:
    name = f"{values['dataset']}/"
    found = sorted(
        key.removeprefix(name)
        for key, past in model.copies.items()
        if key.startswith(name) and past.at(t_ms) == "present"
    )
    return Answer(found == sorted(values["copies"]), found)


COPIES: Final = Expect(
    "copies",
    "sites where the catalogue says that a dataset is",
    (("dataset",), ("copies",)),
    Form(
        "copies expectation",
        "a dataset at a moment",
        (
            AT,
            Field("dataset", kinds.ID, "name of the dataset", required=True),
            Field("copies", kinds.list_of(kinds.ID), "sites, in any order", required=True),
        ),
    ),
    _copies,
)


def _node_fits(moment: NodeMoment | None, values: Values) -> tuple[bool, Any]:
    if moment is None:
        return False, "not registered"
    got: dict[str, Any] = {
        "reach": moment.reach,
        "administration": moment.administration,
        "health": moment.health,
        "health_reason": moment.health_reason,
    }
    holds = all(values.get(name) in (None, got[name]) for name in got)
    if values.get("is") is not None:
        holds &= values["is"] in (moment.reach, moment.administration, moment.health)
    for name, found in (("free", moment.free), ("used", moment.used)):
        if values.get(name) is not None:
            same, amounts = _compare(values[name], dict(found))
            got[name] = amounts
            holds &= same
    return holds, got


def _node_at(values: Values, model: Observation, t_ms: int) -> Answer:
    node = model.nodes.get(values["node"])
    return Answer(*_node_fits(None if node is None else node.history.at(t_ms), values))


def _node_by(values: Values, model: Observation, t_ms: int) -> Answer:
    node = model.nodes.get(values["node"])
    if node is None:
        return Answer(holds=False, got="not registered")
    if any(_node_fits(moment, values)[0] for _, moment in node.history.until(t_ms)):
        return Answer(holds=True, got=None)
    return _node_at(values, model, t_ms)


NODE: Final = Expect(
    "node",
    "reach, administration, health, free and used amounts of a node",
    (("node",), ("is", "reach", "administration", "health", "health_reason", "free", "used")),
    Form(
        "node expectation",
        "a node at a moment",
        (
            AT,
            BY,
            Field("node", kinds.ID, "the node", required=True),
            Field(
                "is",
                Kind(" | ".join((*_REACH[1:], *_ADMINISTRATION, *_HEALTH[1:])), _read_node_state),
                "any of the three",
            ),
            Field("reach", kinds.choice(*_REACH), "whether it is heard"),
            Field("administration", kinds.choice(*_ADMINISTRATION), "what operators said of it"),
            Field("health", kinds.choice(*_HEALTH), "whether it is trusted"),
            Field("health_reason", kinds.TEXT, "why it is not"),
            Field("free", AMOUNTS.partial(), "amounts free, devices only usable ones"),
            Field("used", AMOUNTS.partial(), "amounts held by members"),
        ),
        check=one_moment,
    ),
    _node_at,
    _node_by,
)


def _read_device(value: object, path: str, _reading: Reading) -> tuple[str, int]:
    node, slash, index = value.rpartition("/") if isinstance(value, str) else ("", "", "")
    if not slash or not index.isdigit():
        raise FieldRefused(path, "must be node/index, such as n1/0")
    return node, int(index)


def _device(values: Values, model: Observation, t_ms: int) -> Answer:
    node, index = values["device"]
    view = model.nodes.get(node)
    past = None if view is None else view.device_history.get(index)
    moment = None if past is None else past.at(t_ms)
    if moment is None:
        return Answer(holds=False, got="not registered")
    holds = values.get("is") in (None, moment.state) and values.get("used") in (None, moment.used_milli)
    return Answer(holds, {"is": moment.state, "used": moment.used_milli / 1000})


DEVICE: Final = Expect(
    "device",
    "state and use of one device",
    (("device",), ("is", "used")),
    Form(
        "device expectation",
        "a device at a moment",
        (
            AT,
            Field("device", Kind("node/index", _read_device), "the device", required=True),
            Field("is", kinds.choice(*(str(state) for state in DeviceState)), "its state; held = a leftover is on it"),
            Field("used", kinds.MILLI, "its shares in use"),
        ),
    ),
    _device,
)


def _total(values: Values, model: Observation, _t_ms: int) -> Answer:
    holds, got = _compare(values["total"], model.total())
    return Answer(holds, {"total": got})


TOTAL: Final = Expect(
    "total",
    "capacity of all registered nodes together",
    (("total",),),
    Form(
        "total expectation",
        "the pool at a moment",
        (AT, Field("total", AMOUNTS.partial(), "amounts by dimension, exact", required=True)),
    ),
    _total,
)
