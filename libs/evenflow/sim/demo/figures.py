"""Every figure of the demo, computed from the kept log alone: one pass over `events.jsonl` of one world.

Times are virtual seconds on the log. A wait counts from the submission's record to the first `attempt.started` of the
task, so staging data counts as waiting. A task that no node of its home could hold is counted apart and left out of
both worlds' waits. Device use is the share of all device time up to the last arrival in which attempts ran.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from evenflow.core.ledger.chain import first_break
from evenflow.core.units import MILLI

Event = Mapping[str, Any]

#: The file that keeps them.
FIGURES: Final = "figures.json"

#: How their lines go on after the time.
_OWN_STATES: Final = (b'"topic":"evenflow.placement-state.v1"', b'"topic":"evenflow.billing-state.v1"')


@dataclass(slots=True)
class Crossings:
    """What crossing cost and was worth. Money in micro-units, gains in milliseconds over all settled ones."""

    taken: int = 0
    settled: int = 0
    bytes: int = 0
    cost_micro: int = 0
    predicted_gain_ms: int = 0
    actual_gain_ms: int = 0
    refused_no_gain: int = 0
    refused_within_margin: int = 0


@dataclass(slots=True)
class Figures:
    """One world."""

    submitted: int = 0
    impossible_at_home: int = 0
    placed: int = 0
    succeeded: int = 0
    wait_mean_s: float = 0.0
    wait_p95_s: float = 0.0
    wait_by_site: dict[str, tuple[float, float]] = field(default_factory=dict)
    device_use_pct: float = 0.0
    lost_attempts: int = 0
    resumed_attempts: int = 0
    resumed_work_s: int = 0
    crossings: Crossings = field(default_factory=Crossings)
    bill_micro: dict[str, int] = field(default_factory=dict)
    bill_chain_whole: bool = False
    finished_s: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Figures:
        """The same from plain values."""
        return cls(**{**value, "crossings": Crossings(**value["crossings"])})


@dataclass(slots=True)
class _Fold:
    nodes: dict[str, dict[str, Any]] = field(default_factory=dict)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    submitted_s: dict[str, float] = field(default_factory=dict)
    started_s: dict[str, float] = field(default_factory=dict)
    assigned: dict[str, int] = field(default_factory=dict)
    holds: dict[tuple[str, int], int] = field(default_factory=dict)
    begun: dict[tuple[str, int], float] = field(default_factory=dict)
    runs: list[tuple[float, float, int]] = field(default_factory=list)
    refused: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    ledger: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)


def read_events(path: Path) -> Iterator[Event]:
    """The lines of an events.jsonl, but for services' own states, of which no figure is made."""
    with path.open("rb") as file:
        for line in file:
            if not line.startswith(_OWN_STATES, line.find(b",") + 1):
                yield json.loads(line)


def figures(events: Iterable[Event]) -> Figures:
    """All figures of one world's log."""
    out, fold = Figures(), _Fold()
    for event in events:
        value = event["value"]
        if isinstance(value, dict):
            _take(event["type"], float(event["t"]), value, out, fold)
    _conclude(out, fold)
    return out


def _take(kind: str, t: float, value: Mapping[str, Any], out: Figures, fold: _Fold) -> None:
    match kind:
        case "node.registered":
            fold.nodes[value["node"]] = value["document"]
        case "task.submitted":
            fold.tasks[value["id"]] = dict(value)
            fold.submitted_s.setdefault(value["id"], t)
        case "task.queued":
            if value.get("crossing"):
                fold.refused[value["task"]] = value["crossing"]
        case "task.assigned":
            _assigned(value, out, fold)
        case "attempt.started":
            fold.started_s.setdefault(value["task"], t)
            fold.begun.setdefault((value["task"], value["attempt"]), t)
            if value["resumed_progress_ms"]:
                out.resumed_attempts += 1
                out.resumed_work_s += value["resumed_progress_ms"] // MILLI
        case "task.requeued" | "task.ended":
            _ended(kind, t, value, out, fold)
        case "transfer.finished":
            out.crossings.bytes += value["counted_bytes"]
        case "crossing.settled":
            out.crossings.settled += 1
            out.crossings.predicted_gain_ms += value["predicted"]["gain_ms"]
            out.crossings.actual_gain_ms += value["gain_ms"]
        case "charge.recorded" | "charge.corrected":
            fold.ledger.setdefault(value["queue"], []).append(value)
            if value["kind"] == "transfer":
                out.crossings.cost_micro += value["amount_micro"]


def _assigned(value: Mapping[str, Any], out: Figures, fold: _Fold) -> None:
    task, attempt = value["task"], value["attempt"]
    fold.assigned[task] = fold.assigned.get(task, 0) + 1
    held = sum(device["milli"] for member in value["members"] for device in member["devices"])
    fold.holds[task, attempt] = held
    if value.get("crossing") and value["crossing"]["taken"]:
        out.crossings.taken += 1


def _ended(kind: str, t: float, value: Mapping[str, Any], out: Figures, fold: _Fold) -> None:
    use = value.get("use")
    if use:
        attempt = (value["task"], use["attempt"])
        if attempt in fold.begun:
            fold.runs.append((fold.begun[attempt], t, fold.holds.get(attempt, 0)))
        out.lost_attempts += use["end"] == "lost"
    if kind == "task.ended":
        out.succeeded += value["end"] == "succeeded"
        out.finished_s = max(out.finished_s, t)


def _conclude(out: Figures, fold: _Fold) -> None:
    counted = [name for name in fold.tasks if _fits_home(fold.tasks[name], fold.nodes)]
    out.submitted = len(fold.tasks)
    out.impossible_at_home = len(fold.tasks) - len(counted)
    out.placed = len(fold.assigned)
    waits: dict[str, list[float]] = {}
    for name in counted:
        if name in fold.started_s:
            home = fold.tasks[name]["labels"]["home"]
            waits.setdefault(home, []).append(fold.started_s[name] - fold.submitted_s[name])
    everybody = [wait for home in sorted(waits) for wait in waits[home]]
    out.wait_mean_s, out.wait_p95_s = mean_and_p95(everybody)
    out.wait_by_site = {home: mean_and_p95(waits[home]) for home in sorted(waits)}
    out.device_use_pct = _device_use(fold)
    for terms in fold.refused.values():
        if terms["gain_ms"] <= 0:
            out.crossings.refused_no_gain += 1
        else:
            out.crossings.refused_within_margin += 1
    out.bill_micro = {queue: sum(line["amount_micro"] for line in fold.ledger[queue]) for queue in sorted(fold.ledger)}
    out.bill_chain_whole = all(
        first_break(sorted(lines, key=lambda line: int(line["number"]))) is None for lines in fold.ledger.values()
    )


def mean_and_p95(values: list[float]) -> tuple[float, float]:
    """Mean and 95th percentile (nearest rank), rounded to milliseconds; zeros for nothing."""
    if not values:
        return 0.0, 0.0
    ordered = sorted(values)
    rank = -(-95 * len(ordered) // 100)
    return round(sum(ordered) / len(ordered), 3), round(ordered[rank - 1], 3)


def _device_use(fold: _Fold) -> float:
    end = max(fold.submitted_s.values(), default=0.0)
    capacity = sum(MILLI * node.get("devices", {}).get("count", 0) for node in fold.nodes.values()) * end
    used = sum(held * max(0.0, min(until, end) - since) for since, until, held in fold.runs)
    return round(100 * used / capacity, 2) if capacity else 0.0


def _fits_home(task: Mapping[str, Any], nodes: Mapping[str, Mapping[str, Any]]) -> bool:
    wanted = task["resources"]
    devices = wanted.get("devices", {}).get("count", 1 if "devices" in wanted else 0)
    return any(
        node["site"] == task["labels"]["home"]
        and float(node["cpu"]) >= float(wanted["cpu"])
        and _mib(node["memory"]) >= _mib(wanted["memory"])
        and node.get("devices", {}).get("count", 0) >= devices
        for node in nodes.values()
    )


def _mib(text: str) -> int:
    return int(text.removesuffix("MiB"))
