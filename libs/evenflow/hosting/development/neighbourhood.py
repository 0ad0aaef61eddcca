"""Three made-up sites: a core site of large nodes, one of bandwidth-rich ones, one of small ones; links between them.

Names, sizes and prices are invented. They are small enough that tasks now and then have to wait or to cross.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]

SITES: Final[tuple[Json, ...]] = (
    {"id": "east", "region": "coast", "city": "Portsea", "latitude": "36.1", "longitude": "120.4"},
    {"id": "west", "region": "inland", "city": "Highmoor", "latitude": "30.6", "longitude": "104.1"},
    {"id": "north", "region": "steppe", "city": "Coldwell", "latitude": "43.9", "longitude": "116.1"},
)

LINKS: Final[tuple[Json, ...]] = (
    {"from": "east", "to": "west", "bandwidth": "2Gbit/s", "round_trip_ms": 28, "price_per_gb": "0.05"},
    {"from": "east", "to": "north", "bandwidth": "1Gbit/s", "round_trip_ms": 14, "price_per_gb": "0.02"},
    {"from": "west", "to": "north", "bandwidth": "500Mbit/s", "round_trip_ms": 35, "price_per_gb": "0.02"},
)

QUEUES: Final[tuple[Json, ...]] = (
    {"id": "research", "limit": {"devices": 12}},
    {"id": "production"},
)

DATASETS: Final[tuple[Json, ...]] = (
    {"id": "pictures", "size": "20GB", "copies": [{"site": "east", "authoritative": True}]},
    {"id": "texts", "size": "2GB", "copies": [{"site": "west", "authoritative": True}]},
)


def _node(name: str, site: str, rack: str, **more: Any) -> Json:
    return {"id": name, "site": site, "rack": rack, **more}


def _large(name: str, rack: str) -> Json:
    devices = {"model": "a100-80g", "count": 8}
    return _node(name, "east", rack, cpu=96, memory="1TiB", devices=devices, price_per_hour="4.00")


def _wide(name: str, rack: str) -> Json:
    devices = {"model": "h20", "count": 4}
    return _node(name, "west", rack, cpu=64, memory="512GiB", devices=devices, price_per_hour="2.20")


def _small(name: str, rack: str) -> Json:
    devices = {"model": "t4", "count": 2}
    return _node(
        name, "north", rack, cpu=32, memory="128GiB", devices=devices, price_per_hour="0.80", cpu_price_per_hour="0.03"
    )


NODES: Final[tuple[Json, ...]] = (
    _large("east-1", "a"),
    _large("east-2", "a"),
    _wide("west-1", "a"),
    _wide("west-2", "b"),
    _wide("west-3", "b"),
    _small("north-1", "a"),
    _small("north-2", "a"),
    _small("north-3", "b"),
    _small("north-4", "b"),
)


@dataclass(frozen=True, slots=True)
class Path:
    """A direct link as it really is."""

    bandwidth_bits: int
    round_trip_us: int


def paths() -> dict[tuple[str, str], Path]:
    """The direct links in both directions."""
    from evenflow.events.documents.network import parse_link

    found: dict[tuple[str, str], Path] = {}
    for document in LINKS:
        link = parse_link(document)
        path = Path(link.bandwidth_bits, link.round_trip_us)
        found[link.source, link.target] = found[link.target, link.source] = path
    return found
