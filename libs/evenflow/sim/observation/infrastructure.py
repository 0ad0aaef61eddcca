"""The fold of nodes, links, datasets, checkpoints, alerts and documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from evenflow.core import units
from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.task import TERMINAL, TaskState
from evenflow.sim.observation.entities import DIMENSIONS, Amounts, CheckpointView, DeviceMoment, NodeView, shown_id
from evenflow.sim.observation.history import History
from evenflow.sim.observation.record import Seen

if TYPE_CHECKING:
    from evenflow.sim.observation.model import Observation

_READERS: Final[dict[str, Callable[[object], int]]] = {
    "cpu": units.milli,
    "devices": units.milli,
    "disk": units.size_bytes,
    "memory": units.size_bytes,
}
_NODE_DEFAULTS: Final[Amounts] = {"cpu": 64_000, "devices": 0, "disk": 4 * 10**12, "memory": 512 * 2**30}


def shown_device(moment: DeviceMoment) -> str:
    """A device's state as the timeline shows it: broken, leftover, held by a task, or free."""
    if moment.state == "broken":
        return "broken"
    if moment.state == "held":
        return "leftover"
    return "held" if moment.used_milli else "free"


def amounts(document: Mapping[str, Any]) -> Amounts:
    """Amounts by dimension as a document writes them; what can't be read is left out."""
    found: Amounts = {}
    for name in DIMENSIONS:
        if name in document:
            try:
                found[name] = _READERS[name](document[name])
            except ValueError:
                continue
    return found


def _capacity(document: Mapping[str, Any]) -> tuple[Amounts, int]:
    plain = {name: document[name] for name in ("cpu", "memory", "disk") if name in document}
    capacity = {**_NODE_DEFAULTS, **amounts(plain)}
    devices = document.get("devices") or {}
    count = int(devices.get("count", 1)) if isinstance(devices, Mapping) and devices else 0
    capacity["devices"] = count * 1000
    return capacity, count


def _node(model: Observation, record: Seen) -> None:
    body = record.body
    name = str(body.get("node", ""))
    document = body.get("document") or {}
    capacity, count = _capacity(document)
    node = model.nodes.get(name)
    if node is None:
        node = NodeView(
            name, str(document.get("site", "")), str(document.get("rack") or name), document, capacity, count
        )
        model.nodes[name] = node
    node.document, node.capacity, node.device_count = document, capacity, count
    before = (node.reach, node.administration, node.health) if len(node.history) else None
    node.reach = str(body.get("reach", "ok"))
    node.administration = str(body.get("administration", "open"))
    node.health = str(body.get("health", "ok"))
    node.health_reason = str(body.get("health_reason") or "")
    node.device_states = {int(entry["index"]): str(entry.get("state", "ok")) for entry in body.get("devices", ())}
    after = (node.reach, node.administration, node.health)
    if before != after:
        origin = None if before is None else "/".join(before)
        reasons = [node.health_reason] if node.health_reason else []
        model.change("node", name, origin, "/".join(after), node=name, site=node.site, reasons=reasons)
    node.removed = bool(body.get("revoked"))
    if node.removed:
        node.capacity = dict.fromkeys(DIMENSIONS, 0)
        node.device_count = 0
    node.lost = node.reach == "lost" and not body.get("blind")
    model.note_node(node)
    _flag_unreachable(model, name)
    if node.lost:
        _give_up_holds(model, name)


def _flag_unreachable(model: Observation, name: str) -> None:
    for task in model.tasks.values():
        attempt = task.current
        if attempt is None or task.state in TERMINAL or name not in {m.node for m in attempt.members.values()}:
            continue
        lost = any(
            model.nodes[member.node].reach == "lost"
            for member in attempt.members.values()
            if member.node in model.nodes
        )
        if lost != task.unreachable and task.state in (TaskState.RUNNING, TaskState.STARTING, TaskState.STOPPING):
            task.unreachable = lost
            state = str(task.state)
            model.change("task", task.shown, state, "unreachable" if lost else state, node=name, flag=True)
            model.note_task(task)


def _give_up_holds(model: Observation, name: str) -> None:
    """What ended attempts hold on a lost node counts against their queues no longer."""
    for task in model.tasks.values():
        for attempt in task.attempts.values():
            for member in attempt.members.values():
                if member.node == name and attempt.ended_ms is not None:
                    model.use_queue(task.queue, member, booked=False)


def _node_refused(model: Observation, record: Seen) -> None:
    name = str(record.body.get("node", ""))
    model.count("refused", node=name)
    model.change("node", name, None, "refused", node=name, path=record.body.get("path"))


def _link(state: Callable[[Mapping[str, Any]], str]) -> Callable[[Observation, Seen], None]:
    def fold(model: Observation, record: Seen) -> None:
        body = record.body
        name = f"{body.get('from_site')}/{body.get('to_site')}"
        past = model.links.setdefault(name, History())
        before, after = past.last, state(body)
        if past.note(model.now_ms, after):
            model.change("link", name, before, after, bandwidth_bits=body.get("bandwidth_bits"))

    return fold


def _dataset(model: Observation, record: Seen) -> None:
    body = record.body
    name = str(body.get("dataset", ""))
    present = {f"{name}/{copy.get('site')}": copy for copy in body.get("copies", ())}
    for key in (*present, *(key for key in model.copies if key.startswith(f"{name}/") and key not in present)):
        _copy(model, key, "present" if key in present else "absent")


def _copy(model: Observation, key: str, after: str) -> None:
    past = model.copies.setdefault(key, History())
    before = past.last
    if past.note(model.now_ms, after):
        model.change("copy", key, before or "absent", after, site=key.rpartition("/")[2])


def _transfer(state: str) -> Callable[[Observation, Seen], None]:
    def fold(model: Observation, record: Seen) -> None:
        body = record.body
        name = str(body.get("transfer", ""))
        before = model.transfers.get(name)
        if before == state or before in ("finished", "failed"):
            return
        model.transfers[name] = state
        model.change(
            "transfer",
            name,
            before,
            state,
            task=shown_id(str(body.get("tenant", "default")), str(body.get("task", ""))),
            bytes=body.get("counted_bytes", body.get("bytes")),
            node=body.get("node"),
        )
        if body.get("keep_copy") and state == "planned":
            key = f"{body.get('dataset')}/{body.get('to_site')}"
            if (past := model.copies.get(key)) is None or past.last != "present":
                _copy(model, key, "staging")

    return fold


def _checkpoint(state: str) -> Callable[[Observation, Seen], None]:
    def fold(model: Observation, record: Seen) -> None:
        body = record.body
        task = shown_id(str(body.get("tenant", "default")), str(body.get("task", "")))
        number = int(body.get("checkpoint", 0))
        generation = int(body.get("generation", 0))
        view = model.checkpoints.get((task, generation, number))
        if view is None:
            view = CheckpointView(task, number, generation, int(body.get("progress_ms", 0)), "", model.now_ms)
            model.checkpoints[task, generation, number] = view
        if state == "written" and view.state:
            return
        before, view.state = view.state, view.state if state == "replicated" else state
        view.history.note(model.now_ms, view.state)
        model.change(
            "checkpoint",
            f"{task}/g{generation}/c{number}",
            before or None,
            state,
            progress_ms=view.progress_ms,
            generation=view.generation,
        )

    return fold


def _alert(state: str) -> Callable[[Observation, Seen], None]:
    def fold(model: Observation, record: Seen) -> None:
        key = (str(record.body.get("name", "")), str(record.body.get("subject", "")))
        past = model.alerts.setdefault(key, History())
        before = past.last
        if past.note(model.now_ms, state):
            model.change("alert", "/".join(key), before, state)

    return fold


def _document(model: Observation, record: Seen) -> None:
    body = record.body
    document = body.get("document") or {}
    if body.get("kind") == "queue":
        view = model.queue(str(body.get("name", "")))
        view.parent = None if view.id == "root" else str(document.get("parent", "root"))
        view.limit = amounts(document.get("limit") or {})
        model.change("queue", view.id, None, "published", version=body.get("version"), limit=dict(view.limit))
    elif body.get("kind") == "policy":
        model.policy = dict(document)


FOLDS: Final[dict[str, Callable[[Observation, Seen], None]]] = {
    EventType.NODE_REGISTERED: _node,
    EventType.NODE_CHANGED: _node,
    EventType.NODE_REFUSED: _node_refused,
    EventType.LINK_ESTIMATED: _link(lambda body: "degraded" if body.get("degraded") else "ok"),
    EventType.LINK_DEGRADED: _link(lambda _body: "degraded"),
    EventType.LINK_RECOVERED: _link(lambda _body: "ok"),
    EventType.DATASET_CHANGED: _dataset,
    EventType.TRANSFER_PLANNED: _transfer("planned"),
    EventType.TRANSFER_PROGRESSED: _transfer("running"),
    EventType.TRANSFER_FINISHED: _transfer("finished"),
    EventType.TRANSFER_FAILED: _transfer("failed"),
    EventType.ATTEMPT_CHECKPOINTED: _checkpoint("written"),
    EventType.CHECKPOINT_VERIFIED: _checkpoint("verified"),
    EventType.CHECKPOINT_REPLICATED: _checkpoint("replicated"),
    EventType.CHECKPOINT_DAMAGED: _checkpoint("damaged"),
    EventType.CHECKPOINT_PRUNED: _checkpoint("pruned"),
    EventType.ALERT_RAISED: _alert("raised"),
    EventType.ALERT_ACKNOWLEDGED: _alert("acknowledged"),
    EventType.ALERT_CLEARED: _alert("cleared"),
    EventType.DOCUMENT_PUBLISHED: _document,
}
