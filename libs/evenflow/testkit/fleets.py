"""Builders of fleets, tasks and demands for tests of the engine: short to write, exact, the rest by the defaults."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from evenflow.core.demand.task import DataRead, Devices, Resources, SimulatedRun, Task, Where
from evenflow.core.fleet.columns import Fleet
from evenflow.core.fleet.datasets import DatasetsView
from evenflow.core.fleet.description import DeviceGroup, NodeDescription, SiteDescription
from evenflow.core.fleet.links import LinksView
from evenflow.core.fleet.snapshot import RunningView, Snapshot
from evenflow.core.fleet.views import DatasetView, LinkView, NodeView
from evenflow.core.lifecycle.node import DeviceState
from evenflow.core.placement.plan import Demand, Plan
from evenflow.core.queueing.description import Limits, QueueDescription
from evenflow.core.queueing.quota import Queues

GIB = 2**30
GB = 10**9


def node(  # noqa: PLR0913  a node has that many sides, each with its default
    name: str,
    *,
    site: str = "east",
    rack: str | None = None,
    cpu: int = 64,
    memory: int = 512 * GIB,
    disk: int = 4 * 10**12,
    devices: int = 0,
    model: str = "a100-80g",
    device_memory: int = 80 * GIB,
    price: int = 0,
    cpu_price: int = 0,
    labels: Sequence[tuple[str, str]] = (),
    is_open: bool = True,
    reason_closed: str = "",
    states: Sequence[DeviceState] = (),
) -> NodeView:
    """A node of `cpu` cores and `devices` whole devices; money in micro-units per hour."""
    group = DeviceGroup(model, devices, device_memory) if devices else None
    description = NodeDescription(
        name, site, rack, cpu * 1_000, memory, disk, group, price, cpu_price, labels=tuple(labels)
    )
    return NodeView(description, is_open, reason_closed, tuple(states))


def asks(
    *,
    cpu_milli: int = 1_000,
    memory: int = GIB,
    disk: int = 0,
    count: int = 0,
    share: int = 0,
    models: Sequence[str] = (),
    device_memory: int = 0,
    precision: str | None = None,
) -> Resources:
    """What one member asks for, as the door reads it; `share` in milli-devices."""
    any_share = bool(device_memory) and not count and not share
    devices = Devices(count, 1 if any_share else share, tuple(models), device_memory, precision, any_share)
    return Resources(cpu_milli, memory, disk, devices)


def demand(
    name: str,
    asked: Resources | None = None,
    *,
    sequence: int = 0,
    queued_ms: int = 0,
    work_ms: int = 0,
    reads: Sequence[tuple[str, int]] = (),
    where: Where | None = None,
    around: dict[str, Any] | None = None,
    **task: Any,
) -> Demand:
    """A waiting task of tenant `t`; `reads` are (dataset, times), `around` are further fields of the demand."""
    body = Task(
        tenant="t",
        id=name,
        resources=asked or asks(),
        run=SimulatedRun(work_ms) if work_ms else None,
        data=tuple(DataRead(dataset, times) for dataset, times in reads),
        where=where or Where(),
        **task,
    )
    return Demand(body, sequence, queued_ms, **(around or {}))


def fleet_of(nodes: Iterable[NodeView]) -> Fleet:
    """A fleet of these nodes, empty."""
    fleet = Fleet()
    for view in nodes:
        fleet.upsert(view)
    return fleet


def snapshot_of(
    nodes: Iterable[NodeView] | Fleet,
    *,
    links: Iterable[LinkView] = (),
    datasets: Iterable[DatasetView] = (),
    running: Sequence[RunningView] = (),
    sites: Sequence[SiteDescription] = (),
) -> Snapshot:
    """A pool at one moment."""
    fleet = nodes if isinstance(nodes, Fleet) else fleet_of(nodes)
    return Snapshot(fleet.snapshot(), LinksView(links), DatasetsView(datasets), tuple(running), tuple(sites))


def link(
    source: str, target: str, *, gbit: int = 10, round_trip_us: int = 0, price: int = 0, confidence: int = 1_000_000
) -> LinkView:
    """A directed link; `price` in micro-units per GB, confidence in parts per million."""
    return LinkView(source, target, round_trip_us, gbit * 10**9, price, confidence)


def dataset(name: str, size: int, *sites: str, residency: Sequence[str] = ()) -> DatasetView:
    """A dataset with copies at `sites`."""
    return DatasetView(name, size, tuple(residency), tuple(sorted(sites)))


def queues_of(*queues: QueueDescription, **limits: Limits) -> Queues:
    """Queues of these descriptions, and further ones by name with their limits."""
    books = Queues()
    for queue in queues:
        books.set(queue)
    for name, limit in limits.items():
        books.set(QueueDescription(name, limit=limit))
    return books


def nodes_in(plan: Plan) -> dict[str, list[str]]:
    """Task → nodes of its members, of everything that was placed."""
    return {placed.demand.task.id: [place.node for place in placed.places] for placed in plan.placements}


def reasons_in(plan: Plan) -> dict[str, list[str]]:
    """Task → reasons, of everything that waits or was rejected."""
    waits = {wait.demand.task.id: [blocker.reason.value for blocker in wait.blockers] for wait in plan.waits}
    return waits | {gone.demand.task.id: [gone.blocker.reason.value] for gone in plan.rejections}
