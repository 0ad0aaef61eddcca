"""The subjects that the observer keeps: tasks with their attempts, nodes, queues, checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from evenflow.core.lifecycle.member import MemberState
from evenflow.core.lifecycle.task import TaskState
from evenflow.sim.observation.history import History

DEFAULT_TENANT: Final = "default"

#: The dimensions that are counted everywhere.
DIMENSIONS: Final = ("cpu", "devices", "disk", "memory")

Amounts = dict[str, int]
"""cpu and devices in milli-units, memory and disk in bytes."""


def shown_id(tenant: str, task: str) -> str:
    """How a task is named: its id, with the tenant in front unless it is the default one."""
    return task if tenant == DEFAULT_TENANT else f"{tenant}/{task}"


class TaskMoment(NamedTuple):
    """What a task was at a moment. `nodes` are those of its current attempt, `held_devices_milli` what that holds."""

    state: str
    unreachable: bool
    reasons: tuple[str, ...]
    nodes: tuple[str, ...]
    held: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class MemberView:
    """One member of an attempt.

    `free_ms` is when its resources were proven free; `booked`: its queue still pays for them, which ends then or when
    the attempt or its node is declared lost; `leftover`: gone, but something stays on its devices. `session` is the one
    in which its node took it; `taken_anew`: the node took it in another one too, so its machine forgot the first time.
    """

    number: int
    node: str
    site: str
    devices: tuple[tuple[int, int], ...]
    cpu_milli: int
    memory_bytes: int
    disk_bytes: int
    price_micro: int
    cpu_price_micro: int
    state: MemberState = MemberState.ASSIGNED
    started_ms: int | None = None
    done_ms: int | None = None
    free_ms: int | None = None
    booked: bool = False
    leftover: bool = False
    session: str = ""
    taken_anew: bool = False
    resumed_progress_ms: int | None = None
    resumed_generation: int = 0
    damaged: tuple[str, ...] = ()
    progress_ms: int = 0

    @property
    def device_milli(self) -> int:
        """Milli-devices that it holds."""
        return sum(milli for _, milli in self.devices)


@dataclass(slots=True)
class AttemptView:
    """One attempt. `end` is how it ended, once placement said so."""

    number: int
    generation: int
    epoch: int
    assigned_ms: int
    members: dict[int, MemberView]
    estimate_micro: int = 0
    crossing: Mapping[str, Any] | None = None
    resume: tuple[Mapping[str, Any], ...] = ()
    end: str | None = None
    cause: str | None = None
    ended_ms: int | None = None
    stopping: bool = False


@dataclass(slots=True)
class TaskView:
    """One task. `names` are all that it was shown under: more than one means that a view changed it."""

    tenant: str
    id: str
    queue: str = ""
    state: TaskState | None = None
    reasons: tuple[str, ...] = ()
    unreachable: bool = False
    waiting_since_ms: int = 0
    unexplained_since_ms: int | None = None
    failure_count: int = 0
    attempts: dict[int, AttemptView] = field(default_factory=dict)
    current: AttemptView | None = None
    submitted_ms: int = 0
    cause: str | None = None
    rejected_path: str = ""
    names: dict[str, None] = field(default_factory=dict)
    document: Mapping[str, Any] | None = None
    history: History[TaskMoment] = field(default_factory=History)

    @property
    def shown(self) -> str:
        """Its name in files and expectations."""
        return shown_id(self.tenant, self.id)

    def moment(self) -> TaskMoment:
        """What it is now."""
        nodes: tuple[str, ...] = ()
        held: Amounts = {}
        if self.current is not None:
            members = self.current.members.values()
            nodes = tuple(sorted({member.node for member in members}))
            held = sum_of(members)
        state = "unknown" if self.state is None else str(self.state)
        return TaskMoment(state, self.unreachable, self.reasons, nodes, tuple(sorted(held.items())))


class NodeMoment(NamedTuple):
    """What a node was at a moment; `free` and `used` by dimension."""

    reach: str
    administration: str
    health: str
    health_reason: str
    used: tuple[tuple[str, int], ...]
    free: tuple[tuple[str, int], ...]


class DeviceMoment(NamedTuple):
    """What a device was at a moment."""

    state: str
    used_milli: int


@dataclass(slots=True)
class NodeView:
    """One node and its devices."""

    id: str
    site: str
    rack: str
    document: Mapping[str, Any]
    capacity: Amounts
    device_count: int
    reach: str = "ok"
    lost: bool = False
    removed: bool = False
    administration: str = "open"
    health: str = "ok"
    health_reason: str = ""
    device_states: dict[int, str] = field(default_factory=dict)
    device_used: dict[int, int] = field(default_factory=dict)
    used: Amounts = field(default_factory=lambda: dict.fromkeys(DIMENSIONS, 0))
    history: History[NodeMoment] = field(default_factory=History)
    device_history: dict[int, History[DeviceMoment]] = field(default_factory=dict)

    def moment(self) -> NodeMoment:
        """What it is now; devices that are held back or broken are not free."""
        free = {name: self.capacity[name] - self.used[name] for name in DIMENSIONS}
        free["devices"] = sum(
            1000 - self.device_used.get(index, 0)
            for index in range(self.device_count)
            if self.device_states.get(index, "ok") == "ok"
        )
        return NodeMoment(
            self.reach,
            self.administration,
            self.health,
            self.health_reason,
            tuple(sorted(self.used.items())),
            tuple(sorted(free.items())),
        )

    def device_moment(self, index: int) -> DeviceMoment:
        """What one of its devices is now."""
        return DeviceMoment(self.device_states.get(index, "ok"), self.device_used.get(index, 0))


@dataclass(slots=True)
class QueueView:
    """One queue: its document and what its live attempts use."""

    id: str
    parent: str | None = None
    limit: Amounts = field(default_factory=dict)
    used: Amounts = field(default_factory=lambda: dict.fromkeys(DIMENSIONS, 0))
    history: History[tuple[tuple[str, int], ...]] = field(default_factory=History)


@dataclass(slots=True)
class CheckpointView:
    """One checkpoint of a task; `told_ms` is when it was first heard of."""

    task: str
    number: int
    generation: int
    progress_ms: int
    state: str
    told_ms: int
    history: History[str] = field(default_factory=History)


def amounts_of(member: MemberView) -> Amounts:
    """What one member holds."""
    return {
        "cpu": member.cpu_milli,
        "devices": member.device_milli,
        "disk": member.disk_bytes,
        "memory": member.memory_bytes,
    }


def sum_of(members: Any) -> Amounts:
    """What several members hold together."""
    total = dict.fromkeys(DIMENSIONS, 0)
    for member in members:
        for name, amount in amounts_of(member).items():
            total[name] += amount
    return total
