"""The shipped samples as plain values. Their source, licence and making: NOTICE and prepare.py."""

from __future__ import annotations

import csv
import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from evenflow.core.units import MILLI

ARRIVALS_S: Final = 6 * 3_600
SITES: Final = ("frankfurt", "dublin", "ohio", "las-vegas")
SEED: Final = 7


@dataclass(frozen=True, slots=True)
class SampleTask:
    """One recorded task. `at_ms` is its arrival after compression, `home` its site by seeded hash."""

    name: str
    at_ms: int
    run_s: int
    cpu_milli: int
    memory_mib: int
    device_count: int
    device_milli: int
    queue: str
    home: str

    @property
    def devices_milli(self) -> int:
        """Milli-devices it holds: a share of one, or whole ones."""
        return self.device_count * self.device_milli


@dataclass(frozen=True, slots=True)
class SampleNode:
    """One recorded node."""

    name: str
    cpu_milli: int
    memory_mib: int
    device_count: int
    model: str


@dataclass(frozen=True, slots=True)
class SampleLink:
    """One measured direction between two sites."""

    source: str
    target: str
    round_trip_us: int
    bandwidth_bits: int
    price_per_gb_micro: int


def draw(seed: int, *words: object) -> int:
    """A number below 2^64 that depends on the words alone."""
    text = "/".join(str(word) for word in (seed, *words))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _rows(name: str) -> list[dict[str, str]]:
    text = files(__package__).joinpath("data").joinpath(name).read_text()
    return list(csv.DictReader(text.splitlines()))


def tasks(seed: int = SEED) -> list[SampleTask]:
    """The recorded tasks in order of arrival, arrivals compressed to six hours, durations kept."""
    rows = _rows("tasks.csv")
    first = int(rows[0]["created_s"])
    span = int(rows[-1]["created_s"]) - first
    return [
        SampleTask(
            name=row["name"],
            at_ms=(int(row["created_s"]) - first) * ARRIVALS_S * MILLI // span,
            run_s=int(row["run_s"]),
            cpu_milli=int(row["cpu_milli"]),
            memory_mib=int(row["memory_mib"]),
            device_count=int(row["devices"]),
            device_milli=int(row["device_milli"]),
            queue=row["qos"].lower(),
            home=SITES[draw(seed, "home", row["name"]) % len(SITES)],
        )
        for row in rows
    ]


def nodes() -> list[SampleNode]:
    """The recorded nodes with devices, in the list's order."""
    return [
        SampleNode(r["name"], int(r["cpu_milli"]), int(r["memory_mib"]), int(r["devices"]), r["model"].lower())
        for r in _rows("nodes.csv")
    ]


def links() -> list[SampleLink]:
    """The measured directions between the four sites."""
    return [
        SampleLink(r["from"], r["to"], int(r["round_trip_us"]), int(r["bandwidth_bits"]), int(r["price_per_gb_micro"]))
        for r in _rows("links.csv")
    ]
