"""A second opinion on placements of small pools: by brute force, from descriptions and holdings, without the engine.

It knows what a place must satisfy and tries every way to seat a task. Slow and plain on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from evenflow.core.demand.task import Resources, Task
from evenflow.core.fleet.catalogue import MODELS, memory_bytes_of
from evenflow.core.fleet.description import SiteDescription
from evenflow.core.fleet.views import NodeView
from evenflow.core.lifecycle.node import DeviceState
from evenflow.core.placement.plan import Place

WHOLE = 1_000


@dataclass(slots=True)
class Stock:
    """What is left of one node."""

    view: NodeView
    cpu: int
    memory: int
    disk: int
    devices: list[int]
    device_memory: list[int]
    usable: list[bool] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The node's id."""
        return self.view.description.id


def stock_of(view: NodeView) -> Stock:
    """An empty node."""
    node = view.description
    count = node.device_count
    memory = 0
    if node.devices is not None:
        memory = node.devices.memory_bytes or memory_bytes_of(node.devices.model) or 0
    states = [*view.devices, *[DeviceState.OK] * count][:count]
    usable = [state is DeviceState.OK for state in states]
    return Stock(view, node.cpu_milli, node.memory_bytes, node.disk_bytes, [WHOLE] * count, [memory] * count, usable)


def take(stock: Stock, place: Place, sign: int = -1) -> None:
    """Take a place from a node, or give it back with sign 1."""
    stock.cpu += sign * place.cpu_milli
    stock.memory += sign * place.memory_bytes
    stock.disk += sign * place.disk_bytes
    for index, milli in place.devices:
        stock.devices[index] += sign * milli
        stock.device_memory[index] += sign * place.device_memory_bytes


def is_overdrawn(stock: Stock) -> bool:
    """Whether more is held than there is, in any dimension."""
    return min([stock.cpu, stock.memory, stock.disk, *stock.devices, *stock.device_memory]) < 0


def _permits(stock: Stock, task: Task, asked: Resources, region: str, barred: Sequence[str]) -> bool:
    """Hard rules that do not depend on what is free."""
    node, where, devices = stock.view.description, task.where, asked.devices
    if not stock.view.open or node.id in barred or node.id in where.not_nodes:
        return False
    if (where.nodes and node.id not in where.nodes) or (where.sites and node.site not in where.sites):
        return False
    if (where.racks and node.rack_id not in where.racks) or (where.regions and region not in where.regions):
        return False
    if (where.residency and region not in where.residency) or any(pair not in node.labels for pair in where.labels):
        return False
    if not (devices.count or devices.share_milli or devices.memory_bytes):
        return True
    if node.devices is None or (devices.models and node.devices.model not in devices.models):
        return False
    known = MODELS.get(node.devices.model)
    precisions = node.devices.precisions or (known.precisions if known else ())
    return devices.precision is None or devices.precision in precisions


def _ways(stock: Stock, asked: Resources) -> Iterator[tuple[tuple[tuple[int, int], ...], int]]:
    """Every choice of devices (with the memory held on each) that the node can give now."""
    devices = asked.devices
    total = stock_of(stock.view).device_memory
    if devices.count:
        whole = [
            index
            for index, free in enumerate(stock.devices)
            if free == WHOLE and stock.usable[index] and total[index] >= devices.memory_bytes
        ]
        if len(whole) >= devices.count:
            yield tuple((index, WHOLE) for index in whole[: devices.count]), total[whole[0]]
        return
    if not devices.share_milli and not devices.memory_bytes:
        yield (), 0
        return
    for index, free in enumerate(stock.devices):
        if not stock.usable[index]:
            continue
        memory = devices.memory_bytes or total[index] * devices.share_milli // WHOLE
        if memory > stock.device_memory[index]:
            continue
        named = 0 if devices.any_share else devices.share_milli
        share = named or -(-memory * WHOLE // total[index])
        if share <= free:
            yield ((index, share),), memory


def can_seat(
    stocks: Sequence[Stock],
    task: Task,
    *,
    level: str = "",
    barred: Sequence[str] = (),
    sites: Iterable[SiteDescription] = (),
) -> bool:
    """Whether all members have a seat at once, within one domain of `level` ("" = anywhere)."""
    regions = {site.id: site.region_id for site in sites}

    def region(stock: Stock) -> str:
        site = stock.view.description.site
        return regions.get(site, f"{site}/")

    def domain(stock: Stock) -> object:
        node = stock.view.description
        names = {"node": node.id, "rack": (node.site, node.rack_id), "site": node.site, "region": region(stock)}
        return names.get(level, "")

    def seat(member: int, group: Sequence[Stock], used: dict[str, None]) -> bool:
        if member == task.members:
            return True
        asked = task.resources_of(member)
        for stock in group:
            if task.one_per_node and stock.name in used:
                continue
            if not _permits(stock, task, asked, region(stock), barred):
                continue
            if stock.cpu < asked.cpu_milli or stock.memory < asked.memory_bytes or stock.disk < asked.disk_bytes:
                continue
            for devices, memory in list(_ways(stock, asked)):
                place = Place(
                    member,
                    stock.name,
                    "",
                    devices,
                    asked.cpu_milli,
                    asked.memory_bytes,
                    asked.disk_bytes,
                    device_memory_bytes=memory,
                )
                take(stock, place)
                found = seat(member + 1, group, {**used, stock.name: None})
                take(stock, place, 1)
                if found:
                    return True
        return False

    domains: dict[object, list[Stock]] = {}
    for stock in stocks:
        domains.setdefault(domain(stock), []).append(stock)
    return any(seat(0, group, {}) for group in domains.values())
