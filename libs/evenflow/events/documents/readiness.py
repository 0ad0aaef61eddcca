"""Which fields do something yet. Each is ready or planned; a planned one may only hold its default.

A planned feature that is accepted and ignored is a promise nobody keeps, so the doors name it instead. A feature
that is built loses its line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from evenflow.core.demand.task import Latency, Task
from evenflow.core.fleet.description import NodeDescription, SiteDescription
from evenflow.core.placement.policy import DEFAULT_POLICY, Policy
from evenflow.core.queueing.description import NOTHING, ROOT, UNLIMITED, QueueDescription
from evenflow.events.documents import network, node, policy, queue, task_specification

Readiness = Literal["ready", "planned"]

PLANNED: Final[dict[str, frozenset[str]]] = {
    "task": frozenset(
        {"kind", "image", "secrets", "min_members", "groups", "budget", "latency", "members[].resources"}
    ),
    "node": frozenset({"class", "devices.slices"}),
    "site": frozenset({"store"}),
    "link": frozenset(),
    "dataset": frozenset(),
    "queue": frozenset({"parent", "weight", "guaranteed", "borrowing_limit", "lending_limit", "budget"}),
    "policy": frozenset(
        {
            "retry.memory_growth",
            *(f"placement.{key}" for key in policy.SECTIONS["placement"]),
            *(f"order.{key}" for key in policy.SECTIONS["order"]),
            *(f"fairness.{key}" for key in policy.SECTIONS["fairness"]),
            *(f"checkpoint.{key}" for key in policy.SECTIONS["checkpoint"]),
            *(f"preemption.{key}" for key in policy.SECTIONS["preemption"]),
            *(f"headroom.{key}" for key in policy.SECTIONS["headroom"]),
            *(f"moves.{key}" for key in policy.SECTIONS["moves"]),
        }
    ),
}


def _names(fields: Mapping[str, object], parts: Mapping[str, Mapping[str, object]]) -> list[str]:
    """All paths of a document: a field with parts is listed by its parts."""
    listed: list[str] = []
    for name in fields:
        inner = parts.get(name)
        listed.extend([name] if inner is None else [f"{name}.{part}" for part in inner])
    return listed


def documented_fields() -> dict[str, dict[str, Readiness]]:
    """Every field of every document as path → ready or planned, for docs and `scenario verbs`."""
    task = [*_names(task_specification.FIELDS, task_specification.PARTS), "members[].resources"]
    listed = {
        "task": task,
        "node": _names(node.FIELDS, {"devices": node.DEVICE_FIELDS}),
        "site": list(network.SITE_FIELDS),
        "link": list(network.LINK_FIELDS),
        "dataset": list(network.DATASET_FIELDS),
        "queue": list(queue.FIELDS),
        "policy": ["name", *_names(policy.SECTIONS, policy.SECTIONS)],
    }
    return {
        kind: {path: "planned" if path in PLANNED[kind] else "ready" for path in sorted(paths)}
        for kind, paths in listed.items()
    }


def _in_use(kind: str, used: Mapping[str, bool]) -> list[str]:
    return sorted(path for path, is_used in used.items() if is_used and path in PLANNED[kind])


def planned_in_task(task: Task) -> list[str]:
    """List the planned fields that a task uses, by path."""
    return _in_use(
        "task",
        {
            "kind": task.kind != "job",
            "image": task.image is not None,
            "secrets": bool(task.secrets),
            "min_members": task.min_members is not None,
            "groups": bool(task.groups),
            "budget": task.budget_micro is not None,
            "latency": task.latency != Latency(),
            "members[].resources": bool(task.member_resources),
        },
    )


def planned_in_node(description: NodeDescription) -> list[str]:
    """List the planned fields that a node description uses."""
    return _in_use(
        "node",
        {
            "class": description.node_class != "normal",
            "devices.slices": bool(description.devices and description.devices.slices),
        },
    )


def planned_in_site(description: SiteDescription) -> list[str]:
    """List the planned fields that a site uses."""
    return _in_use("site", {"store": not description.store})


def planned_in_queue(description: QueueDescription) -> list[str]:
    """List the planned fields that a queue uses."""
    return _in_use(
        "queue",
        {
            "parent": description.parent not in (None, ROOT),
            "weight": description.weight_milli != 1_000,
            "guaranteed": description.guaranteed != NOTHING,
            "borrowing_limit": description.borrowing_limit != UNLIMITED,
            "lending_limit": description.lending_limit != UNLIMITED,
            "budget": description.budget_micro is not None,
        },
    )


def planned_in_policy(given: Policy) -> list[str]:
    """List the planned keys that a policy sets to anything but the default."""
    mine, default = policy.policy_document(given), policy.policy_document(DEFAULT_POLICY)
    changed = {
        f"{section}.{key}": mine[section][key] != default[section][key]
        for section, keys in policy.SECTIONS.items()
        for key in keys
    }
    return _in_use("policy", changed)
