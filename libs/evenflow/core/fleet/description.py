"""What is said of a node, a site, a link or a dataset before anything happens: exact, with defaults filled in.

`events.documents` reads these from what people and agents write; what they do at run time is kept elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evenflow.core.units import MILLI

#: The model of devices whose description names none.
UNNAMED_MODEL = "unnamed"


@dataclass(frozen=True, slots=True)
class Slice:
    """A fixed part that a device can be cut into, `count` of them per device."""

    profile: str
    count: int


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """The accelerators of one node, all of one model.

    `memory_bytes` is per device; 0 = not known, which no demand for device memory fits. `precisions` are those known to
    be supported.
    """

    model: str
    count: int
    memory_bytes: int
    precisions: tuple[str, ...] = ()
    slices: tuple[Slice, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeDescription:
    """One node. Prices are per hour: of one whole device, and of one core where there is no device."""

    id: str
    site: str
    rack: str | None = None
    cpu_milli: int = 64_000
    memory_bytes: int = 512 * 2**30
    disk_bytes: int = 4 * 10**12
    devices: DeviceGroup | None = None
    price_per_hour_micro: int = 0
    cpu_price_per_hour_micro: int = 0
    node_class: Literal["core", "normal"] = "normal"
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def device_count(self) -> int:
        """How many whole devices it has."""
        return self.devices.count if self.devices else 0

    @property
    def devices_milli(self) -> int:
        """Its devices in milli-devices."""
        return self.device_count * MILLI

    @property
    def rack_id(self) -> str:
        """The rack it stands in within its site; a node without one has a rack of its own, which no id can name."""
        return self.rack if self.rack is not None else f"{self.id}/"


@dataclass(frozen=True, slots=True)
class SiteDescription:
    """One site. Coordinates in millionths of a degree; `upload_bits` None = no limit but the links'.

    A site without a region is a region of its own. `store`: it can hold checkpoints and outputs.
    """

    id: str
    region: str | None = None
    city: str = ""
    data_centre: str = ""
    latitude_micro: int | None = None
    longitude_micro: int | None = None
    owner: str = ""
    store: bool = True
    upload_bits: int | None = None

    @property
    def region_id(self) -> str:
        """The region it lies in; a site without one has a region of its own, which no id can name."""
        return self.region if self.region is not None else f"{self.id}/"


@dataclass(frozen=True, slots=True)
class LinkDescription:
    """A path from one site to another, and back when `both_ways`. Price per GB (10^9 bytes) in micro-units."""

    source: str
    target: str
    bandwidth_bits: int
    round_trip_us: int = 0
    loss_ppm: int = 0
    price_per_gb_micro: int = 0
    both_ways: bool = True


@dataclass(frozen=True, slots=True)
class DatasetCopy:
    """Where a dataset lies. An authoritative copy is never evicted."""

    site: str
    authoritative: bool = False


@dataclass(frozen=True, slots=True)
class DatasetDescription:
    """One dataset. `residency` lists the regions its bytes may be in; empty = anywhere."""

    id: str
    size_bytes: int
    residency: tuple[str, ...] = ()
    copies: tuple[DatasetCopy, ...] = ()
