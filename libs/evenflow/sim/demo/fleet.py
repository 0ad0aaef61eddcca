"""The fleet of the demo: real nodes, cut so that each site's isolated offered load is what the scene asks for.

load = Σ demand × duration / (capacity × 6 h), of devices or of cores, whichever is larger. A site takes one 8-device
node first, then nodes in an order drawn by name, as long as its capacity stays below what the load asks; the last
one is the node that comes closest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from evenflow.core.units import MILLI
from evenflow.sim.demo.sample import ARRIVALS_S, SITES, SampleNode, SampleTask, draw

#: Isolated offered load of each site in thousandths.
LOAD_MILLI: Final = {"frankfurt": 1_100, "dublin": 800, "ohio": 500, "las-vegas": 300}
BIG_NODE_DEVICES: Final = 8


@dataclass(frozen=True, slots=True)
class SiteFleet:
    """One site's nodes, and its offered load in thousandths."""

    site: str
    nodes: tuple[SampleNode, ...]
    load_milli: int

    @property
    def device_count(self) -> int:
        """Whole devices."""
        return sum(node.device_count for node in self.nodes)


def can_hold(task: SampleTask, nodes: Iterable[SampleNode]) -> bool:
    """Whether some empty node of a site can hold the task."""
    return any(
        node.cpu_milli >= task.cpu_milli
        and node.memory_mib >= task.memory_mib
        and node.device_count >= task.device_count
        for node in nodes
    )


def load_milli(tasks: Iterable[SampleTask], nodes: Sequence[SampleNode]) -> int:
    """Offered load of a site in thousandths: the larger of devices and cores."""
    device_time = core_time = 0
    for task in tasks:
        device_time += task.devices_milli * task.run_s
        core_time += task.cpu_milli * task.run_s
    devices = sum(node.device_count for node in nodes) * MILLI
    cores = sum(node.cpu_milli for node in nodes)
    if not devices:
        return 10**9
    return max(device_time * MILLI // (devices * ARRIVALS_S), core_time * MILLI // (cores * ARRIVALS_S))


def cut(tasks: Sequence[SampleTask], nodes: Sequence[SampleNode], seed: int) -> list[SiteFleet]:
    """The four fleets; no node belongs to two sites."""
    left = sorted(nodes, key=lambda node: draw(seed, "node", node.name))
    out: list[SiteFleet] = []
    for site in SITES:
        own = [task for task in tasks if task.home == site]
        wanted = LOAD_MILLI[site]
        big = next(node for node in left if node.device_count == BIG_NODE_DEVICES)
        chosen = [big]
        for node in left:
            if node is not big and load_milli(own, [*chosen, node]) > wanted:
                chosen.append(node)
        rest = [node for node in left if node not in chosen]
        closest = min(rest, key=lambda node: abs(load_milli(own, [*chosen, node]) - wanted))
        if abs(load_milli(own, [*chosen, closest]) - wanted) < abs(load_milli(own, chosen) - wanted):
            chosen.append(closest)
        left = [node for node in left if node not in chosen]
        out.append(SiteFleet(site, tuple(sorted(chosen, key=lambda n: n.name)), load_milli(own, chosen)))
    return out
