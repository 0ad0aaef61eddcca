"""What a round takes besides the snapshot, and what it gives back. Plain values; same input, same plan.

`engine.round(snapshot, queues, demands, policy, now_ms) -> Plan` is the whole interface of the placement engine:
production, dry run, what-if, simulator and replay call it. It never changes its input.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from evenflow.core.demand.task import Task
from evenflow.core.lifecycle.reasons import Blocker


@dataclass(frozen=True, slots=True)
class Place:
    """Where one member runs and what it holds there. `devices` are (index on the node, milli) pairs.

    `device_memory_bytes` is held on each of them. `disk_bytes` includes data staged for the member.
    """

    member: int
    node: str
    site: str
    devices: tuple[tuple[int, int], ...]
    cpu_milli: int
    memory_bytes: int
    disk_bytes: int
    price_per_hour_micro: int = 0
    cpu_price_per_hour_micro: int = 0
    device_memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Demand:
    """A waiting task as the engine sees it.

    `sequence` orders equal demands by arrival; `queued_ms` is since when it waits; `not_before_ms` holds it back;
    `avoid` are nodes where it failed to start; `apart_nodes` are nodes of tasks it must be apart from, or whose labels
    it must not meet; `progress_ms` is work already saved by a checkpoint of `resume_bytes` at `resume_site`.
    """

    task: Task
    sequence: int
    queued_ms: int
    not_before_ms: int = 0
    avoid: tuple[str, ...] = ()
    apart_nodes: tuple[str, ...] = ()
    progress_ms: int = 0
    resume_site: str | None = None
    resume_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """One dataset a placement must bring from elsewhere. `price_micro` is for one read over the whole path."""

    dataset: str
    from_site: str
    bytes: int
    reads: int
    keep_copy: bool
    price_micro: int


@dataclass(frozen=True, slots=True)
class Crossing:
    """The stored arithmetic of running away from the data: as events.contracts.placement.CrossingTerms."""

    dataset: str
    from_site: str
    to_site: str
    bytes: int
    reads: int
    keep_copy: bool
    bandwidth_bits: int
    confidence_ppm: int
    transfer_in_ms: int
    transfer_out_ms: int
    stay_wait_ms: int
    stay_run_ms: int
    cross_wait_ms: int
    cross_run_ms: int
    stay_cost_micro: int
    cross_cost_micro: int
    transfer_cost_micro: int
    margin_ppm: int
    by_money: bool
    gain_ms: int
    gain_micro: int
    taken: bool


@dataclass(frozen=True, slots=True)
class Placement:
    """One task gets all its members placed. `level` is the smallest topology level that holds a gang, "" if none does.

    `crossing` is set when data moves; `refused_crossing` is one that was weighed against this place and lost.
    """

    demand: Demand
    places: tuple[Place, ...]
    reads: tuple[Read, ...] = ()
    crossing: Crossing | None = None
    estimate_micro: int = 0
    level: str = ""
    refused_crossing: Crossing | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """One task goes on waiting, with every blocker; `crossing` is one that was refused. `position` counts from 1."""

    demand: Demand
    blockers: tuple[Blocker, ...]
    position: int
    crossing: Crossing | None = None
    never_fits: bool = False


@dataclass(frozen=True, slots=True)
class Rejection:
    """One task can never run here by its queue's own rules."""

    demand: Demand
    blocker: Blocker


@dataclass(frozen=True, slots=True)
class Eviction:
    """A running task must give its place up (preemption and reclaim; none in the first engine)."""

    task_key: str
    for_task_key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The result of one round. `wake_ms`: when something that waits may change by time alone (None = never)."""

    placements: tuple[Placement, ...] = ()
    waits: tuple[Wait, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    evictions: tuple[Eviction, ...] = ()
    wake_ms: int | None = None
    stage_us: dict[str, int] = field(default_factory=dict)
