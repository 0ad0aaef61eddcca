"""The task specification: what a user writes to run something, read into a `Task`, and written back.

The form, its defaults and its bounds are in docs/task-specification.md. Each field has one reader in the tables below;
rules between fields follow them. `task_document` is the inverse: parsing what it gives yields an equal Task.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from evenflow.core.demand.task import (
    NEVER,
    Adjacency,
    CheckpointWish,
    DataRead,
    Devices,
    Group,
    Latency,
    MemoryPeak,
    Output,
    Resources,
    SimulatedRun,
    Task,
    Where,
)
from evenflow.core.errors import FieldRefused
from evenflow.events.documents import fields as f
from evenflow.events.documents import forms
from evenflow.events.documents import quantities as q

MEMBERS_MAX: Final = 16_384
NAME_BYTES_MAX: Final = 1_024
REFERENCE_BYTES_MAX: Final = 1_024
ARGUMENTS_MAX: Final = 1_024
ARGUMENT_BYTES_MAX: Final = 32_768
VARIABLES_MAX: Final = 256
DATASETS_MAX: Final = 64
GROUPS_MAX: Final = 4
DEVICES_MAX: Final = 1_024
PRECISIONS: Final = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8")
LEVELS: Final = ("node", "rack", "site", "region")

_duration = q.scaled(1_000)
_span = q.scaled(1_000, low=1)
_count = q.integer(1, 1_000_000)


# --- resources ----------------------------------------------------------------------------------------------------

_NO_DEVICES: Final = Devices()
_DEVICE_FIELDS: Final[dict[str, f.Reader]] = {
    "count": q.integer(0, DEVICES_MAX),
    "share": q.scaled(1_000, low=1, high=1_000),
    "models": f.list_of(f.read_id, 64),
    "memory": q.size(),
    "precision": f.one_of(*PRECISIONS),
}


#: Beyond the fields: whole devices or a share, and no wish about devices that asks for none.
_NO_MEMORY: Final = {"anyOf": [{"const": 0}, {"type": "string", "pattern": r"^0(\.0+)?\s?([kMGTP]?B|[KMGTP]iB)?$"}]}
_ASKING: Final = (
    {"required": ["share"]},
    {"required": ["count"], "properties": {"count": {"minimum": 1}}},
    {"required": ["memory"], "properties": {"count": False, "memory": {"not": _NO_MEMORY}}},
    {"propertyNames": {"const": "count"}},
)
_DEVICE_RULES: Final[tuple[Mapping[str, Any], ...]] = ({"not": {"required": ["count", "share"]}}, {"anyOf": _ASKING})


@f.map_of(_DEVICE_FIELDS, rules=_DEVICE_RULES)
def _read_devices(given: dict[str, Any]) -> Devices:
    if not given:
        return _NO_DEVICES
    count, share, memory = given.get("count"), given.get("share", 0), given.get("memory", 0)
    if share and count is not None:
        raise f.FieldProblem(below=[("share", "is given together with count; ask for whole devices or a share of one")])
    any_share = count is None and not share and memory > 0
    if any_share:
        share = 1
    if not count and not share:
        rest = sorted(given.keys() - {"count"})
        if rest:
            raise f.FieldProblem(
                below=[
                    (rest[0], "is given, but no device is asked for; add count, share or an amount of device memory")
                ]
            )
        return _NO_DEVICES
    return Devices(count or 0, share, given.get("models", ()), memory, given.get("precision"), any_share)


_RESOURCE_FIELDS: Final[dict[str, f.Reader]] = {
    "cpu": q.scaled(1_000),
    "memory": q.size(),
    "disk": q.size(),
    "devices": _read_devices,
}
_ORDINARY: Final = Resources()


@f.map_of(_RESOURCE_FIELDS)
def _read_resources(given: dict[str, Any]) -> Resources:
    return Resources(
        given.get("cpu", _ORDINARY.cpu_milli),
        given.get("memory", _ORDINARY.memory_bytes),
        given.get("disk", 0),
        given.get("devices", _NO_DEVICES),
    )


_MEMBER_FIELDS: Final[dict[str, f.Reader]] = {"resources": _read_resources}
_read_member_count = q.integer(1, MEMBERS_MAX)


@f.map_of(_MEMBER_FIELDS)
def _read_member(given: dict[str, Any]) -> Resources | None:
    resources: Resources | None = given.get("resources")
    return resources


@forms.takes(forms.Either((forms.form_of(_read_member_count), forms.Items(_read_member, 1, MEMBERS_MAX))))
def _read_members(value: object) -> int | tuple[Resources | None, ...]:
    if not isinstance(value, list):
        count: int = _read_member_count(value)
        return count
    if not value:
        f.refuse("is an empty list; a task has at least one member")
    return f.read_list(value, _read_member, MEMBERS_MAX)


# --- parts --------------------------------------------------------------------------------------------------------

_PEAK_FIELDS: Final[dict[str, f.Reader]] = {"at_s": _duration, "bytes": q.size()}


@f.map_of(_PEAK_FIELDS, "at_s", "bytes")
def _read_peak(given: dict[str, Any]) -> MemoryPeak:
    return MemoryPeak(given["at_s"], given["bytes"])


@forms.takes(forms.Either((forms.Choice(("never",)), forms.form_of(_duration))))
def _read_ready(value: object) -> int:
    if value == "never":
        return NEVER
    ready: int = _duration(value)
    return ready


_RUN_FIELDS: Final[dict[str, f.Reader]] = {
    "work_s": _duration,
    "fail_at_s": _duration,
    "exit_code": q.integer(0, 255),
    "progress_every_s": _span,
    "ready_after_s": _read_ready,
    "memory": _read_peak,
}


@f.map_of(_RUN_FIELDS)
def _read_run(given: dict[str, Any]) -> SimulatedRun:
    return SimulatedRun(
        given.get("work_s", 0),
        given.get("fail_at_s"),
        given.get("exit_code", 1),
        given.get("progress_every_s"),
        given.get("ready_after_s", 0),
        given.get("memory"),
    )


_ADJACENCY_FIELDS: Final[dict[str, f.Reader]] = {
    "level": f.one_of(*LEVELS),
    "wait_s": _duration,
    "then": f.one_of("relax", "fail", "wait"),
}


@f.map_of(_ADJACENCY_FIELDS, "level")
def _read_adjacency(given: dict[str, Any]) -> Adjacency:
    return Adjacency(given["level"], given.get("wait_s", 300_000), given.get("then", "relax"))


_GROUP_FIELDS: Final[dict[str, f.Reader]] = {"size": q.integer(1, MEMBERS_MAX), "level": f.one_of(*LEVELS)}


@f.map_of(_GROUP_FIELDS, "size", "level")
def _read_group(given: dict[str, Any]) -> Group:
    return Group(given["size"], given["level"])


@forms.takes(forms.Either((forms.Choice(("auto",)), forms.form_of(_span))))
def _read_every(value: object) -> int | None:
    if value == "auto":
        return None
    every: int = _span(value)
    return every


_CHECKPOINT_FIELDS: Final[dict[str, f.Reader]] = {
    "every_s": _read_every,
    "cost_s": _duration,
    "size": q.size(),
    "parts": q.integer(1, 10_000),
}


@f.map_of(_CHECKPOINT_FIELDS)
def _read_checkpoint(given: dict[str, Any]) -> CheckpointWish:
    return CheckpointWish(given.get("every_s"), given.get("cost_s", 0), given.get("size", 0), given.get("parts", 1))


_DATA_FIELDS: Final[dict[str, f.Reader]] = {"dataset": f.read_id, "reads": _count}


@f.map_of(_DATA_FIELDS, "dataset")
def _read_data(given: dict[str, Any]) -> DataRead:
    return DataRead(given["dataset"], given.get("reads", 1))


_OUTPUT_FIELDS: Final[dict[str, f.Reader]] = {"size": q.size(), "site": f.read_id}


@f.map_of(_OUTPUT_FIELDS, "size")
def _read_output(given: dict[str, Any]) -> Output:
    return Output(given["size"], given.get("site"))


_LATENCY_FIELDS: Final[dict[str, f.Reader]] = {"class": f.one_of("sensitive", "tolerant"), "near": f.read_id}


_LATENCY_RULES: Final[tuple[Mapping[str, Any], ...]] = (
    {"if": {"properties": {"class": {"const": "sensitive"}}, "required": ["class"]}, "then": {"required": ["near"]}},
)


@f.map_of(_LATENCY_FIELDS, rules=_LATENCY_RULES)
def _read_latency(given: dict[str, Any]) -> Latency:
    sensitive = given.get("class") == "sensitive"
    if sensitive:
        f.require(given, "near")
    return Latency(sensitive, given.get("near"))


_WHERE_LISTS: Final = ("sites", "regions", "racks", "nodes", "not_nodes", "apart_from", "residency")
_WHERE_FIELDS: Final[dict[str, f.Reader]] = {
    **dict.fromkeys(_WHERE_LISTS, f.list_of(f.read_id)),
    "not_with": f.read_labels,
    "labels": f.read_labels,
}


@f.map_of(_WHERE_FIELDS)
def _read_where(given: dict[str, Any]) -> Where:
    return Where(**given)


# --- the task -----------------------------------------------------------------------------------------------------

_reference = f.text(REFERENCE_BYTES_MAX, empty=False)
_argument = f.text(ARGUMENT_BYTES_MAX, lines=True)

FIELDS: Final[dict[str, f.Reader]] = {
    "id": f.read_id,
    "tenant": f.read_id,
    "kind": f.one_of("job", "service"),
    "name": f.text(NAME_BYTES_MAX),
    "queue": f.read_id,
    "priority": q.integer(0, 1_000),
    "command": f.list_of(_argument, ARGUMENTS_MAX),
    "image": _reference,
    "env": f.variables(_argument, VARIABLES_MAX),
    "secrets": f.variables(_reference, VARIABLES_MAX),
    "run": _read_run,
    "resources": _read_resources,
    "members": _read_members,
    "min_members": q.integer(1, MEMBERS_MAX),
    "one_per_node": f.read_bool,
    "groups": f.list_of(_read_group, GROUPS_MAX),
    "adjacency": _read_adjacency,
    "ready_timeout_s": _span,
    "declared_s": _span,
    "workload": f.one_of("compute", "bandwidth", "balanced"),
    "checkpoint": _read_checkpoint,
    "data": f.list_of(_read_data, DATASETS_MAX),
    "output": _read_output,
    "objective": f.one_of("finish", "cost"),
    "budget": q.read_money,
    "deadline_s": _span,
    "latency": _read_latency,
    "where": _read_where,
    "max_failures": q.integer(1, 1_000),
    "reschedule_on_lost": f.read_bool,
    "preemptible": f.read_bool,
    "labels": f.read_labels,
}
#: Fields of those parts that are maps, for listing.
PARTS: Final[dict[str, dict[str, f.Reader]]] = {
    "run": _RUN_FIELDS,
    "resources": _RESOURCE_FIELDS,
    "adjacency": _ADJACENCY_FIELDS,
    "checkpoint": _CHECKPOINT_FIELDS,
    "output": _OUTPUT_FIELDS,
    "where": _WHERE_FIELDS,
}
#: Names of the fields whose reader already gives what the Task keeps; the others are renamed by unit below.
_RENAMED: Final = (
    ("ready_timeout_s", "ready_timeout_ms"),
    ("declared_s", "declared_ms"),
    ("deadline_s", "deadline_ms"),
    ("budget", "budget_micro"),
)


def parse_task(document: object, *, tenant: str | None = None, new_id: Callable[[], str] | None = None) -> Task:
    """Read a task specification.

    `tenant` is who submits, as far as that is known; a document that names another is refused. `new_id` makes an id for
    a document without one; without it such a document is refused. Raises FieldRefused for the first problem.
    """
    return f.parsed(lambda given: _read_task(given, tenant, new_id), document)


def task_problems(document: object, *, tenant: str | None = None) -> list[f.Problem]:
    """List every problem of a specification, whether it has an id or not; empty when it is good."""
    return f.problems_of(lambda given: _read_task(given, tenant, lambda: "unnamed"), document)


def _read_task(document: object, tenant: str | None, new_id: Callable[[], str] | None) -> Task:
    given = f.read_map(document, FIELDS)
    if tenant is not None:
        if given.get("tenant", tenant) != tenant:
            raise f.FieldProblem(below=[("tenant", "is not the tenant that submits")])
        given["tenant"] = tenant
    elif "tenant" not in given:
        given["tenant"] = "default"
    if "id" not in given:
        if new_id is None:
            f.require(given, "id")
        else:
            given["id"] = new_id()
    for written, kept in _RENAMED:
        if written in given:
            given[kept] = given.pop(written)
    members = given.get("members", 1)
    if members.__class__ is tuple:
        ordinary = given.get("resources", _ORDINARY)
        given["member_resources"] = tuple(ordinary if entry is None else entry for entry in members)
        given["members"] = len(members)
    task = Task(**given)
    if task.members > 1 or task.groups or task.min_members is not None or len(task.data) > 1:
        _check_together(task)
    return task


def _check_together(task: Task) -> None:
    """Rules between fields of a gang and its data."""
    problems: list[f.Problem] = []
    if task.min_members is not None and task.min_members > task.members:
        problems.append(("min_members", f"is more than members, which is {task.members}"))
    block, widest = 1, -1
    for index, group in enumerate(task.groups):
        block *= group.size
        if LEVELS.index(group.level) <= widest:
            problems.append((f"groups[{index}].level", "must be wider than that of the group inside it"))
        widest = LEVELS.index(group.level)
        if task.members % block:
            problems.append((f"groups[{index}].size", f"{task.members} members are no whole number of {block}"))
            break
    names = [read.dataset for read in task.data]
    for index, name in enumerate(names):
        if name in names[:index]:
            problems.append((f"data[{index}].dataset", "is listed twice; give reads instead"))
    if problems:
        raise f.FieldProblem(below=problems)


# --- identity of a body -------------------------------------------------------------------------------------------


_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical_body(document: object) -> bytes:
    """Write a document so that two with the same content are the same bytes, whatever the order of their keys.

    Numbers stay as they were read: 1 and 1.0 are two bodies. Raises FieldRefused for what JSON can't hold.
    """
    try:
        return _CANONICAL.encode(document).encode("ascii")
    except (TypeError, ValueError, RecursionError):
        raise FieldRefused("", "is no document that JSON can hold") from None


def body_digest(document: object) -> str:
    """Digest a document for the rule that a used id with another body is refused: SHA-256 in hexadecimal."""
    return hashlib.sha256(canonical_body(document)).hexdigest()
