"""What does not change while work comes and goes: one row per node, ranked by name, as arrays.

A table is immutable. A new one is made when a node joins, leaves or is described anew, so whatever was worked out from
a table stays true for as long as that table is in use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evenflow.core.fleet.catalogue import MODELS, memory_bytes_of
from evenflow.core.fleet.description import NodeDescription

Integers = npt.NDArray[np.int64]
Shares = npt.NDArray[np.int32]
Bits = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

NO_MODEL = -1


class Rate(NamedTuple):
    """What decides how dear and how fast a node is: two prices per hour (device, core) and the model of its devices."""

    price_per_hour_micro: int
    cpu_price_per_hour_micro: int
    model: str


class NodeTable:
    """Descriptions of all nodes as columns of N rows, sorted by node id.

    `site`, `rack` and `model` are indexes into `site_names`, `rack_names` and `model_names`, each sorted, so that a
    lower index is also the earlier name. `rate` is an index into `rates`. `device_slots` is the largest device count of
    any node, at least 1.
    """

    def __init__(self, descriptions: Iterable[NodeDescription]) -> None:
        self.descriptions = tuple(sorted(descriptions, key=lambda node: node.id))
        nodes = self.descriptions
        self.ids = tuple(node.id for node in nodes)
        self.row_of = {node_id: row for row, node_id in enumerate(self.ids)}
        self.site_names = tuple(sorted({node.site for node in nodes}))
        self.rack_names = tuple(sorted({(node.site, node.rack_id) for node in nodes}))
        self.model_names = tuple(sorted({node.devices.model for node in nodes if node.devices}))
        sites = {name: index for index, name in enumerate(self.site_names)}
        racks = {name: index for index, name in enumerate(self.rack_names)}
        models = {name: index for index, name in enumerate(self.model_names)}
        self.sites = tuple(node.site for node in nodes)
        self.site = _column(sites[node.site] for node in nodes)
        self.rack = _column(racks[node.site, node.rack_id] for node in nodes)
        self.model = _column(models[node.devices.model] if node.devices else NO_MODEL for node in nodes)
        self.cpu_milli = _column(node.cpu_milli for node in nodes)
        self.memory_bytes = _column(node.memory_bytes for node in nodes)
        self.disk_bytes = _column(node.disk_bytes for node in nodes)
        self.device_count = _column(node.device_count for node in nodes)
        self.device_memories_bytes = tuple(device_memory_of(node) for node in nodes)
        self.device_memory_bytes = _column(self.device_memories_bytes)
        self.prices_micro = tuple(node.price_per_hour_micro for node in nodes)
        self.cpu_prices_micro = tuple(node.cpu_price_per_hour_micro for node in nodes)
        rates = [Rate(*prices) for prices in zip(self.prices_micro, self.cpu_prices_micro, _models(nodes), strict=True)]
        self.rates = tuple(dict.fromkeys(rates))
        of_rate = {rate: index for index, rate in enumerate(self.rates)}
        self.rate = _column(of_rate[rate] for rate in rates)
        self.device_slots = max((node.device_count for node in nodes), default=0) or 1
        self._rows_of_site: dict[str, Integers] = {}
        self._labelled: dict[tuple[str, str], Mask] = {}
        self._precise: dict[str, Mask] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def rows_of_site(self, site: str) -> Integers:
        """Rows of one site's nodes, in order of name."""
        rows = self._rows_of_site.get(site)
        if rows is None:
            index = self.site_names.index(site) if site in self.site_names else -1
            rows = np.flatnonzero(self.site == index).astype(np.int64)
            self._rows_of_site[site] = rows
        return rows

    def labelled(self, key: str, value: str) -> Mask:
        """Which nodes carry the label."""
        mask = self._labelled.get((key, value))
        if mask is None:
            mask = np.array([(key, value) in node.labels for node in self.descriptions], dtype=np.bool_)
            self._labelled[key, value] = mask
        return mask

    def precise(self, precision: str) -> Mask:
        """Which nodes have devices known to support the precision."""
        mask = self._precise.get(precision)
        if mask is None:
            mask = np.array([precision in _precisions(node) for node in self.descriptions], dtype=np.bool_)
            self._precise[precision] = mask
        return mask


def _models(nodes: Iterable[NodeDescription]) -> list[str]:
    return [node.devices.model if node.devices else "" for node in nodes]


def _column(values: Iterable[int]) -> Integers:
    return np.array(list(values), dtype=np.int64)


def device_memory_of(node: NodeDescription) -> int:
    """Memory of one device: as described, else as the catalogue knows the model, else 0 (not known)."""
    if node.devices is None:
        return 0
    return node.devices.memory_bytes or memory_bytes_of(node.devices.model) or 0


def _precisions(node: NodeDescription) -> tuple[str, ...]:
    if node.devices is None:
        return ()
    if node.devices.precisions:
        return node.devices.precisions
    known = MODELS.get(node.devices.model)
    return known.precisions if known else ()
