"""What the agent needs of the world: the gateway, its disk, executors, the machine.

The simulation fills these with simulated things; everything else of the agent is the same everywhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evenflow.agent.journal import Held, Outgoing
from evenflow.core.demand.task import Task
from evenflow.core.errors import EvenflowError
from evenflow.core.lifecycle.causes import Cause
from evenflow.core.lifecycle.node import DeviceState
from evenflow.events.contract import Document
from evenflow.events.contracts.placement import AttemptDesired
from evenflow.platform.clock import Clock, Ids
from evenflow.platform.fail_points import FailPoint, no_fail_point
from evenflow.platform.stores.ports import Objects

# --- the gateway ----------------------------------------------------------------------------------------------------


class SessionRefused(EvenflowError):
    """The gateway does not know this session (any more): open another one."""

    code = "session-unknown"
    retriable = True


class NodeRevoked(EvenflowError):
    """The node was taken out for good: nothing it says counts."""

    code = "node-revoked"


@dataclass(frozen=True, slots=True)
class Session:
    """An open session: its id and the key of its tags."""

    id: str
    key: bytes
    heartbeat_ms: int


@dataclass(frozen=True, slots=True)
class DesiredItem:
    """One row of the desired set; `desired` None = the key is gone. The ids are the event's."""

    key: str
    desired: AttemptDesired | None
    id: str = ""
    correlation_id: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """A one-off wish: the event's type and body."""

    id: str
    type: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DesiredChange:
    """What changed since the revision asked from, or the whole set when `full`."""

    instance: str
    revision: int
    full: bool
    items: tuple[DesiredItem, ...]
    requests: tuple[Request, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A record that the gateway will never take, and why."""

    sequence: int
    reason: str


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """`accepted`: every record of the batch up to this sequence is on the log or refused for good."""

    accepted: int
    refused: tuple[Refusal, ...] = ()


class GatewayClient(Protocol):
    """The agents' door. Calls raise Unavailable, SessionRefused, NodeRevoked or Refused, within a bounded time."""

    async def open_session(self, document: Document, *, booted_ms: int) -> Session: ...
    async def desired(self, session: Session, *, instance: str, revision: int, wait_ms: int) -> DesiredChange: ...
    async def send(self, session: Session, records: Sequence[Outgoing]) -> Acknowledgement: ...


# --- the agent's own disk -------------------------------------------------------------------------------------------


class Disk(Protocol):
    """Journal and outbox. Calls are short and synchronous; each is applied whole or not at all."""

    def members(self) -> list[Held]:
        """Every member held, in order of key."""

    def newest(self) -> dict[str, int]:
        """slot → highest attempt ever applied, the most recently applied slots."""

    def session(self) -> str:
        """The last session's id; empty before the first."""

    def remember_session(self, session: str) -> None: ...
    def reserve_sequence(self) -> int:
        """A new sequence for something that need not survive."""

    def commit(
        self, *, held: Sequence[Held] = (), forget: Sequence[str] = (), records: Sequence[Outgoing] = ()
    ) -> None:
        """Write rows, remove keys, append records. A row raises its slot's highest attempt."""

    def pending(self, count_max: int, bytes_max: int) -> list[Outgoing]:
        """The oldest records not acknowledged, in order of sequence; at least one if there is any."""

    def pending_count(self) -> int: ...
    def acknowledge(self, sequence: int) -> None:
        """Drop records up to this sequence."""

    def close(self) -> None: ...


# --- executors ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Launch:
    """One member to run. `key` names the run: starting the same key again never starts a second one.

    `resume_parts` are the verified parts of the checkpoint it starts from.
    """

    key: str
    tenant: str
    task: Task
    attempt: int
    member: int
    members: int
    devices: tuple[int, ...]
    cpu_milli: int
    memory_bytes: int
    progress_ms: int = 0
    resume_parts: tuple[bytes, ...] = ()
    progress_every_ms: int = 0


@dataclass(frozen=True, slots=True)
class Ready:
    """Work counts from here, or from so long ago when nobody looked at once."""

    ago_ms: int = 0


@dataclass(frozen=True, slots=True)
class Progressed:
    """So far."""

    run_ms: int
    progress_ms: int


@dataclass(frozen=True, slots=True)
class Saved:
    """Progress to keep: `part(i)` gives the bytes of one part. `pace_ms` is the time that each part takes to write.

    `size_bytes` is what the checkpoint counts as; a simulated one stores less.
    """

    run_ms: int
    progress_ms: int
    size_bytes: int
    part_count: int
    part: Callable[[int], bytes]
    pace_ms: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """The work is over. `at_ms`: the monotonic moment; `ready`: whether it ever became ready."""

    ended_as: Literal["succeeded", "failed", "stopped"]
    at_ms: int
    run_ms: int
    progress_ms: int
    ready: bool
    cause: Cause | None = None
    exit_code: int | None = None
    message: str = ""


RunEvent = Ready | Progressed | Saved | Ended


class StartFailed(EvenflowError):
    """The member could not be started on this node."""

    code = "start-failed"


class Run(Protocol):
    """A started member. It lives on without the agent."""

    async def next(self) -> RunEvent:
        """The next thing that happens; may be given up and asked again without losing any."""

    async def stop(self, grace_ms: int, *, save: bool) -> RunEvent:
        """End it within the grace: Saved (then call again) or Ended. `save`: progress may be kept once before."""

    async def kill(self) -> Ended:
        """End it at once."""

    async def save(self) -> None:
        """Ask for progress to be kept now; it shows as an event."""


class Executor(Protocol):
    """One way of running members."""

    async def start(self, launch: Launch) -> Run:
        """Start, or find what was started under this key. Raises StartFailed."""

    async def find(self, launch: Launch) -> Run | None:
        """What was started under this key, also if it has ended; None = never started, or gone without a trace."""

    async def reclaim(self, launch: Launch) -> bool:
        """Clean up after the end; True when no process is left and the scratch is clean."""


# --- the machine ----------------------------------------------------------------------------------------------------


class TransferBroken(EvenflowError):
    """A transfer ended early. `missing`: the source does not have it."""

    code = "transfer-broken"

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


@dataclass(frozen=True, slots=True)
class Sample:
    """One probe of a path."""

    reachable: bool
    round_trip_us: int = 0
    jitter_us: int = 0
    loss_ppm: int = 0
    bandwidth_bits: int = 0
    sent_bytes: int = 0


class Machine(Protocol):
    """The node's hardware and its paths to other sites."""

    @property
    def boot(self) -> str:
        """Changes with every boot."""

    @property
    def booted_ms(self) -> int:
        """Wall clock of the boot."""

    def device_states(self) -> Sequence[DeviceState]:
        """By index; devices that the machine says nothing of are ok."""

    def readings(self) -> Mapping[str, Any] | None:
        """Sensor values that replace what the agent works out; None = the sensors are silent."""

    async def holds(self, dataset: str) -> bool:
        """Whether the node's site really has a dataset that it is said to have; True where nobody can tell."""

    async def transfer(
        self, what: str, *, from_site: str, to_site: str, size_bytes: int, counted: Callable[[int], None]
    ) -> None:
        """Bring `size_bytes`; `counted` is told the bytes that arrived, in steps. Raises TransferBroken."""

    async def probe(self, to_site: str, size_bytes: int) -> Sample | None:
        """Measure a path; None = this machine can't."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything an agent is given. `disk` and `machine` outlive the agent process."""

    node: str
    document: Document
    instance: str
    clock: Clock
    ids: Ids
    random: random.Random
    objects: Objects
    gateway: GatewayClient
    disk: Disk
    machine: Machine
    key: Ed25519PrivateKey
    log: Any
    simulated: Executor | None = None
    process: Executor | None = None
    point: FailPoint = field(default=no_fail_point)
