"""Makes the demo's samples from recorded data: `python -m evenflow.sim.demo.prepare FOLDER`.

FOLDER holds `openb/` and `interregion/` as described in NOTICE. The samples ship with the package, so nobody needs the
recorded data to run the demo; this says exactly how they were made.
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

DATA: Final = Path(__file__).parent / "data"
FIRST_ROW: Final = 2_000
ROWS_END: Final = 4_000
RUN_MAX_S: Final = 4 * 3_600
#: Site of the demo → region of the measurements. All four have latency, throughput and price.
REGIONS: Final = {
    "frankfurt": "aws:eu-central-1",
    "dublin": "azure:northeurope",
    "ohio": "aws:us-east-2",
    "las-vegas": "gcp:us-west4-a",
}


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", newline="") as file:
        yield from csv.DictReader(file)


def _write(name: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    with (DATA / name).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def tasks(source: Path) -> list[list[object]]:
    """Rows 2,000–3,999 of the default list by creation time that started and ran at most four hours."""
    listed = sorted(
        _rows(source / "pods" / "openb_pod_list_default.csv.gz"), key=lambda r: (float(r["creation_time"]), r["name"])
    )
    out: list[list[object]] = []
    for row in listed[FIRST_ROW:ROWS_END]:
        if not row["scheduled_time"] or not row["deletion_time"]:
            continue
        run_s = int(float(row["deletion_time"])) - int(float(row["scheduled_time"]))
        if 0 < run_s <= RUN_MAX_S:
            created = int(float(row["creation_time"]))
            fields = [row[k] for k in ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "qos")]
            out.append([row["name"], created, run_s, *fields])
    return out


def nodes(source: Path) -> list[list[object]]:
    """Every node that has devices."""
    listed = _rows(source / "nodes" / "openb_node_list_gpu_node.csv.gz")
    return [[r["sn"], r["cpu_milli"], r["memory_mib"], r["gpu"], r["model"]] for r in listed]


def links(source: Path) -> list[list[object]]:
    """Round trip in microseconds, received bits a second, price in micro-USD per GB, for each ordered pair of sites."""
    site_of = {region: site for site, region in REGIONS.items()}
    round_trip: dict[tuple[str, str], float] = {}
    for row in _rows(source / "skyplane_latency_2022-04.csv.gz"):
        if row["src_tier"] == row["dst_tier"] == "PREMIUM" and row["avg_rtt"]:
            round_trip.setdefault((row["src_region"], row["dst_region"]), float(row["avg_rtt"]))
    received: dict[tuple[str, str], float] = {}
    for row in _rows(source / "skyplane_throughput_2022-01.csv.gz"):
        if row["src_tier"] == row["dst_tier"] == "PREMIUM" and row["throughput_received"]:
            received.setdefault((row["src_region"], row["dst_region"]), float(row["throughput_received"]))
    price = {(r["src"], r["dst"]): r["usd_per_gb"] for r in _rows(source / "skyplane_egress_cost_usd_per_gb.csv.gz")}
    out: list[list[object]] = []
    for pair in sorted(round_trip):
        if pair[0] in site_of and pair[1] in site_of and pair[0] != pair[1]:
            micro = round(float(price[pair]) * 1_000_000)
            out.append(
                [site_of[pair[0]], site_of[pair[1]], round(round_trip[pair] * 1000), round(received[pair]), micro]
            )
    return out


def main(folder: Path) -> None:
    """Write the three samples."""
    header = ["name", "created_s", "run_s", "cpu_milli", "memory_mib", "devices", "device_milli", "qos"]
    _write("tasks.csv", header, tasks(folder / "openb"))
    _write("nodes.csv", ["name", "cpu_milli", "memory_mib", "devices", "model"], nodes(folder / "openb"))
    header = ["from", "to", "round_trip_us", "bandwidth_bits", "price_per_gb_micro"]
    _write("links.csv", header, links(folder / "interregion"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
