"""A task as everybody inside the product sees it: exact integers, defaults filled in.

`events.documents.task_specification` makes these from what a user wrote; nothing else does. Field names and units are
documented there and in docs/task-specification.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Level = Literal["node", "rack", "site", "region"]
Workload = Literal["compute", "bandwidth", "balanced"]

#: The value of `ready_after_ms` for a simulated task that never becomes ready.
NEVER: Final = -1


@dataclass(frozen=True, slots=True)
class Devices:
    """Accelerators of one member: `count` whole ones, or a share of one.

    Exactly one of `count` and `share_milli` is above zero when any device is asked for. `memory_bytes` is per device.
    `any_share`: the task asked for device memory alone, so whatever share goes with that memory will do; `share_milli`
    is then the smallest there is.
    """

    count: int = 0
    share_milli: int = 0
    models: tuple[str, ...] = ()
    memory_bytes: int = 0
    precision: str | None = None
    any_share: bool = False

    @property
    def total_milli(self) -> int:
        """Milli-devices of one member."""
        return self.count * 1000 + self.share_milli


@dataclass(frozen=True, slots=True)
class Resources:
    """What one member holds while it lives."""

    cpu_milli: int = 1000
    memory_bytes: int = 2**30
    disk_bytes: int = 0
    devices: Devices = Devices()


@dataclass(frozen=True, slots=True)
class MemoryPeak:
    """A simulated jump of memory use."""

    at_ms: int
    bytes: int


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """What a simulated executor does instead of running a command."""

    work_ms: int = 0
    fail_at_ms: int | None = None
    exit_code: int = 1
    progress_every_ms: int | None = None
    ready_after_ms: int = 0
    memory: MemoryPeak | None = None


@dataclass(frozen=True, slots=True)
class Adjacency:
    """How close members of a gang must be. `then`: what follows after `wait_ms`."""

    level: Level
    wait_ms: int = 300_000
    then: Literal["relax", "fail", "wait"] = "relax"


@dataclass(frozen=True, slots=True)
class Group:
    """`size` members (or inner groups) inside one domain of `level`; innermost first."""

    size: int
    level: Level


@dataclass(frozen=True, slots=True)
class CheckpointWish:
    """How often progress is saved. `every_ms` None = auto."""

    every_ms: int | None = None
    cost_ms: int = 0
    size_bytes: int = 0
    parts: int = 1


@dataclass(frozen=True, slots=True)
class DataRead:
    """One dataset, read `reads` times."""

    dataset: str
    reads: int = 1


@dataclass(frozen=True, slots=True)
class Output:
    """What is written at the end and where it must be."""

    size_bytes: int
    site: str | None = None


@dataclass(frozen=True, slots=True)
class Where:
    """Hard placement rules; empty means anything."""

    sites: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    not_nodes: tuple[str, ...] = ()
    apart_from: tuple[str, ...] = ()
    not_with: tuple[tuple[str, str], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    residency: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Latency:
    """Sensitive tasks near their users; tolerant ones may go far."""

    sensitive: bool = False
    near: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One task's specification after the door.

    `members` is the number of gang members (1 = no gang); every member asks for `resources` unless `member_resources`
    gives one entry per member. `min_members` None = not elastic.
    """

    tenant: str
    id: str
    queue: str = "default"
    kind: Literal["job", "service"] = "job"
    name: str = ""
    priority: int = 50
    command: tuple[str, ...] = ()
    image: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()
    run: SimulatedRun | None = None
    resources: Resources = Resources()
    members: int = 1
    member_resources: tuple[Resources, ...] = ()
    min_members: int | None = None
    one_per_node: bool = False
    groups: tuple[Group, ...] = ()
    adjacency: Adjacency | None = None
    ready_timeout_ms: int = 600_000
    declared_ms: int | None = None
    workload: Workload = "balanced"
    checkpoint: CheckpointWish | None = None
    data: tuple[DataRead, ...] = ()
    output: Output | None = None
    objective: Literal["finish", "cost"] = "finish"
    budget_micro: int | None = None
    deadline_ms: int | None = None
    latency: Latency = Latency()
    where: Where = Where()
    max_failures: int = 3
    reschedule_on_lost: bool = True
    preemptible: bool = True
    labels: tuple[tuple[str, str], ...] = ()

    def resources_of(self, member: int) -> Resources:
        """What member number `member` (from 0) asks for."""
        return self.member_resources[member] if self.member_resources else self.resources

    @property
    def key(self) -> str:
        """The record key of everything about this task: tenant/task."""
        return f"{self.tenant}/{self.id}"
