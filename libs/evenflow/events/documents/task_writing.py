"""Write a Task back as a document: what state records and desired state carry.

Only what differs from its default is written. Sizes are bytes, money is text, decimals are text where a number would
not be whole; reading it back gives an equal Task.
"""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.demand.task import NEVER, Devices, Latency, Resources, SimulatedRun, Task, Where
from evenflow.core.units import MICRO, decimal_text
from evenflow.events.documents.quantities import milli_written as _milli

_PLAIN: Final = Task(tenant="default", id="")
_RESOURCES: Final = Resources()
_WHERE: Final = Where()
_NO_DEVICES: Final = Devices()


def task_document(task: Task) -> dict[str, Any]:
    """Write the specification that parses to an equal Task: text, numbers, lists and maps only."""
    out: dict[str, Any] = {"id": task.id, "tenant": task.tenant}
    if task.queue != "default":
        out["queue"] = task.queue
    if task.priority != 50:
        out["priority"] = task.priority
    if task.name:
        out["name"] = task.name
    if task.resources != _RESOURCES:
        out["resources"] = _resources(task.resources)
    if task.run is not None:
        out["run"] = _run(task.run)
    if task.members != 1 or task.member_resources or task.groups or task.min_members is not None:
        _add_gang(out, task)
    if task.declared_ms is not None:
        out["declared_s"] = _milli(task.declared_ms)
    if task.workload != "balanced":
        out["workload"] = task.workload
    if task.command:
        out["command"] = list(task.command)
    if task.env:
        out["env"] = dict(task.env)
    if task.labels:
        out["labels"] = dict(task.labels)
    if task.data:
        out["data"] = [{"dataset": read.dataset, "reads": read.reads} for read in task.data]
    if task.checkpoint is not None:
        wish = task.checkpoint
        out["checkpoint"] = {
            "every_s": "auto" if wish.every_ms is None else _milli(wish.every_ms),
            "cost_s": _milli(wish.cost_ms),
            "size": wish.size_bytes,
            "parts": wish.parts,
        }
    if task.where is not _PLAIN.where and task.where != _WHERE:
        out["where"] = _where(task.where)
    _add_rare(out, task)
    return out


def _add_rare(out: dict[str, Any], task: Task) -> None:
    if task.kind != "job":
        out["kind"] = task.kind
    if task.image is not None:
        out["image"] = task.image
    if task.secrets:
        out["secrets"] = dict(task.secrets)
    if task.adjacency is not None:
        near = task.adjacency
        out["adjacency"] = {"level": near.level, "wait_s": _milli(near.wait_ms), "then": near.then}
    if task.ready_timeout_ms != 600_000:
        out["ready_timeout_s"] = _milli(task.ready_timeout_ms)
    if task.output is not None:
        site = {} if task.output.site is None else {"site": task.output.site}
        out["output"] = {"size": task.output.size_bytes, **site}
    if task.objective != "finish":
        out["objective"] = task.objective
    if task.budget_micro is not None:
        out["budget"] = decimal_text(task.budget_micro, MICRO)
    if task.deadline_ms is not None:
        out["deadline_s"] = _milli(task.deadline_ms)
    if task.latency != _PLAIN.latency:
        out["latency"] = _latency(task.latency)
    if task.max_failures != 3:
        out["max_failures"] = task.max_failures
    if not task.reschedule_on_lost:
        out["reschedule_on_lost"] = False
    if not task.preemptible:
        out["preemptible"] = False
    if task.one_per_node:
        out["one_per_node"] = True


def _latency(latency: Latency) -> dict[str, Any]:
    out = {"class": "sensitive" if latency.sensitive else "tolerant"}
    if latency.near is not None:
        out["near"] = latency.near
    return out


def _add_gang(out: dict[str, Any], task: Task) -> None:
    if task.member_resources:
        out["members"] = [{"resources": _resources(entry)} for entry in task.member_resources]
    else:
        out["members"] = task.members
    if task.min_members is not None:
        out["min_members"] = task.min_members
    if task.groups:
        out["groups"] = [{"size": group.size, "level": group.level} for group in task.groups]


def _resources(resources: Resources) -> dict[str, Any]:
    out: dict[str, Any] = {"cpu": _milli(resources.cpu_milli), "memory": resources.memory_bytes}
    if resources.disk_bytes:
        out["disk"] = resources.disk_bytes
    devices = resources.devices
    if devices != _NO_DEVICES:
        asked: dict[str, Any] = {}
        if devices.count:
            asked["count"] = devices.count
        elif not devices.any_share:
            asked["share"] = _milli(devices.share_milli)
        if devices.models:
            asked["models"] = list(devices.models)
        if devices.memory_bytes:
            asked["memory"] = devices.memory_bytes
        if devices.precision is not None:
            asked["precision"] = devices.precision
        out["devices"] = asked
    return out


def _run(run: SimulatedRun) -> dict[str, Any]:
    out: dict[str, Any] = {"work_s": _milli(run.work_ms)}
    if run.fail_at_ms is not None:
        out["fail_at_s"] = _milli(run.fail_at_ms)
    if run.exit_code != 1:
        out["exit_code"] = run.exit_code
    if run.progress_every_ms is not None:
        out["progress_every_s"] = _milli(run.progress_every_ms)
    if run.ready_after_ms:
        out["ready_after_s"] = "never" if run.ready_after_ms == NEVER else _milli(run.ready_after_ms)
    if run.memory is not None:
        out["memory"] = {"at_s": _milli(run.memory.at_ms), "bytes": run.memory.bytes}
    return out


def _where(where: Where) -> dict[str, Any]:
    lists = {
        "sites": where.sites,
        "regions": where.regions,
        "racks": where.racks,
        "nodes": where.nodes,
        "not_nodes": where.not_nodes,
        "apart_from": where.apart_from,
        "residency": where.residency,
    }
    out: dict[str, Any] = {name: list(value) for name, value in lists.items() if value}
    if where.not_with:
        out["not_with"] = dict(where.not_with)
    if where.labels:
        out["labels"] = dict(where.labels)
    return out
