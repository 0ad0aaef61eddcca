"""What the fleet's columns are fed with: plain values from other services' facts."""

from __future__ import annotations

from dataclasses import dataclass

from evenflow.core.fleet.description import NodeDescription
from evenflow.core.lifecycle.node import DeviceState


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as placement may use it. `open`: takes new work now. `devices`: the state of each device by index."""

    description: NodeDescription
    open: bool
    reason_closed: str = ""
    devices: tuple[DeviceState, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkView:
    """A directed link's estimate."""

    from_site: str
    to_site: str
    round_trip_us: int
    bandwidth_bits: int
    price_per_gb_micro: int
    confidence_ppm: int
    reachable: bool = True


@dataclass(frozen=True, slots=True)
class DatasetView:
    """A dataset's size and the sites that hold it, in order of name."""

    id: str
    size_bytes: int
    residency: tuple[str, ...]
    sites: tuple[str, ...]
