"""INV7 rules: hard constraints hold for every attempt, not only the first."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from evenflow.core.demand.task import Task
from evenflow.core.errors import FieldRefused
from evenflow.core.fleet.description import NodeDescription
from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.member import MemberState
from evenflow.events.contract import ID_PATTERN
from evenflow.events.documents.node import parse_node
from evenflow.events.documents.task_specification import parse_task
from evenflow.sim.invariants.invariant import attempt_of
from evenflow.sim.observation.entities import MemberView, TaskView
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen

_ID: Final = re.compile(ID_PATTERN)


class Rules:
    """Checked whenever a member is desired on a node."""

    name = "INV7"

    def __init__(self) -> None:
        self._asked: dict[tuple[str, str], Mapping[str, Any]] = {}

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """The node is one that the task's rules allow, and the devices are what it asked for."""
        if record.type == EventType.TASK_SUBMITTED:
            self._asked.setdefault((str(record.body.get("tenant", "default")), str(record.body.get("id"))), record.body)
        if record.type in (EventType.TASK_REQUEUED, EventType.TASK_ENDED):
            yield from self._given_up(model, record)
        if record.type != EventType.ATTEMPT_DESIRED or record.body.get("wish") != "run":
            return
        found = attempt_of(model, record)
        member = (
            None if found is None else found[1].members.get(int((record.body.get("place") or {}).get("member", -1)))
        )
        if found is None or member is None or found[0].document is None or member.node not in model.nodes:
            return
        yield from self._as_asked(found[0])
        yield from (f"{found[0].shown} was taken although {wrong}" for wrong in _hostile(found[0].document, ""))
        try:
            task = parse_task(found[0].document, new_id=lambda: found[0].id)
            node = parse_node(model.nodes[member.node].document)
        except FieldRefused as refusal:
            yield f"{found[0].shown} or {member.node} has a document that no door would take: {refusal}"
            return
        for problem in (*_place_problems(task, node), *_device_problems(task, node, member)):
            yield f"attempt {found[1].number} of {found[0].shown} on {node.id}: {problem}"

    @staticmethod
    def _given_up(model: Observation, record: Seen) -> Iterator[str]:
        """A task that waits for its node is not given up while the node is lost and may come back with what runs there.

        Judged by the members that were given up: one that was done before stands in no node's way. A machine that took
        a member anew has nothing to wait for, and says so before inventory says that its node is back.
        """
        body = record.body
        use = body.get("use") or {}
        task = model.tasks.get((str(body.get("tenant", "default")), str(body.get("task", ""))))
        if task is None or task.document is None or task.document.get("reschedule_on_lost") is not False:
            return
        attempt = task.attempts.get(int(use.get("attempt", 0)))
        for member in use.get("members", ()) if use.get("cause") == "node-lost" else ():
            place = member.get("place") or {}
            node = model.nodes.get(str(place.get("node")))
            known = None if attempt is None else attempt.members.get(int(place.get("member", -1)))
            if member.get("ended_as") != MemberState.LOST or (known is not None and known.taken_anew):
                continue
            if node is not None and node.reach == "lost" and any(node.capacity.values()):
                yield f"{task.shown} was given up although it waits for {node.id}"

    def _as_asked(self, task: TaskView) -> Iterator[str]:
        """What runs is what was asked for, under an id; a document without an id got one."""
        asked, document = self._asked.get((task.tenant, task.id)), task.document
        if asked is not None and document is not None and asked != document:
            yield f"{task.shown} runs with another document than it was submitted with"
        if not _ID.fullmatch(task.id):
            yield f"{task.shown} was taken although that is no id"

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """Nothing more."""
        del model, settled
        yield from ()


def _hostile(value: Any, path: str) -> Iterator[str]:
    """Numbers of a document below nothing, and none at all: counted without the product's own readers."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _hostile(inner, f"{path}.{name}".lstrip("."))
    elif isinstance(value, int | float) and not 0 <= value < math.inf:
        yield f"its {path} is {value}"


def _place_problems(task: Task, node: NodeDescription) -> Iterator[str]:
    where = task.where
    if where.sites and node.site not in where.sites:
        yield f"site {node.site} is not one of {', '.join(where.sites)}"
    if where.racks and node.rack_id not in where.racks:
        yield f"rack {node.rack_id} is not one of {', '.join(where.racks)}"
    if where.nodes and node.id not in where.nodes:
        yield f"it is not one of {', '.join(where.nodes)}"
    if node.id in where.not_nodes:
        yield "the task forbids it"
    labels = dict(node.labels)
    for name, value in where.labels:
        if labels.get(name) != value:
            yield f"its label {name} is {labels.get(name)!r}, not {value!r}"


def _device_problems(task: Task, node: NodeDescription, member: MemberView) -> Iterator[str]:
    wanted = task.resources_of(member.number)
    if member.device_milli != wanted.devices.total_milli:
        yield f"it holds {member.device_milli} milli-devices, {wanted.devices.total_milli} were asked for"
    if wanted.devices.count and any(milli != 1000 for _, milli in member.devices):
        yield "whole devices were asked for, shares were given"
    if len({index for index, _ in member.devices}) != len(member.devices):
        yield "one device was given twice"
    if member.cpu_milli != wanted.cpu_milli or member.memory_bytes < wanted.memory_bytes:
        yield "it holds other cores or memory than were asked for"
    if wanted.devices.total_milli and node.devices is not None:
        if wanted.devices.models and node.devices.model not in wanted.devices.models:
            yield f"model {node.devices.model} is not one of {', '.join(wanted.devices.models)}"
        if wanted.devices.memory_bytes > node.devices.memory_bytes:
            yield "its devices have less memory than was asked for"
