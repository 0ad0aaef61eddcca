"""What a verb may do to the world: one small interface per power. The world is the stage, a verb acts on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Party = tuple[Literal["node", "site", "link"], str, str]
"""Who is cut off: ("node", id, ""), ("site", id, "") or ("link", from, to)."""

StoreName = Literal["live", "documents", "objects", "log"]


class Door(Protocol):
    """The product's own entrances: records as producers and operators send them."""

    async def submit(self, specification: object) -> None:
        """A task specification exactly as written; a missing id is left missing."""

    async def request(self, kind: str, subject: str, body: Mapping[str, Any]) -> None:
        """A request such as task.cancel-requested about a subject."""

    async def publish(self, topic: str, key: bytes | None, value: bytes | None, headers: Mapping[str, bytes]) -> None:
        """Any bytes straight onto the log."""

    async def document(self, kind: str, name: str, body: Mapping[str, Any]) -> None:
        """A new version of a document: a policy or a queue, changed by the fields given."""


@dataclass(frozen=True, slots=True)
class Which:
    """Which process of a service: the leader, a standby, or all of the name.

    When: at the next visit of a named fail point, after so many of its steps (callbacks), or now.
    """

    service: str
    role: Literal["leader", "standby"] | None = None
    at_point: str | None = None
    after_step_count: int | None = None


class Services(Protocol):
    """The product's services, without the agents. The service `all` is every one of them."""

    async def kill(self, which: Which) -> None: ...
    async def pause(self, which: Which) -> None: ...
    async def resume(self, which: Which) -> None: ...
    async def restart(self, which: Which) -> None: ...
    async def add(self, service: str) -> None: ...
    async def skew(self, which: Which, clock_ms: int) -> None: ...
    async def rewind(self, which: Which, offset_count: int) -> None: ...


class Nodes(Protocol):
    """Machines and the agent process on each."""

    async def add(self, written: object) -> None: ...
    async def kill(self, node: str) -> None: ...
    async def restart(self, node: str, at_point: str | None = None, after_step_count: int | None = None) -> None: ...
    async def pause(self, node: str) -> None: ...
    async def resume(self, node: str) -> None: ...
    async def remove(self, node: str) -> None: ...
    async def skew(self, node: str, clock_ms: int) -> None: ...


class Network(Protocol):
    """Who can reach whom, and how fast the links really are."""

    async def cut(self, party: Party) -> None: ...
    async def join(self, party: Party) -> None: ...
    async def change_link(self, source: str, target: str, changes: Mapping[str, Any]) -> None: ...


@dataclass(frozen=True, slots=True)
class StartFault:
    """How starts go: fail after a time, hang, or take long. `times` None = until settle."""

    node: str | None
    task: str | None
    member: int | None
    fails_after_ms: int | None
    takes_ms: int | None
    times: int | None
    hangs: bool


class Machines(Protocol):
    """What happens on a node that only a machine can do."""

    async def start_fault(self, fault: StartFault) -> None: ...
    async def kill_process(self, task: str, member: int) -> None: ...
    async def stop_takes(self, task: str, duration_ms: int) -> None: ...
    async def device(self, node: str, index: int, change: Literal["break", "repair", "leftover"]) -> None: ...
    async def telemetry(self, node: str, readings: Mapping[str, Any] | None, *, silent: bool) -> None: ...


class Stores(Protocol):
    """Faults of the stores and of the log."""

    async def wipe(self, store: StoreName) -> None: ...
    async def down(self, store: StoreName) -> None: ...
    async def up(self, store: StoreName) -> None: ...
    async def read_only(self, store: StoreName) -> None: ...
    async def refuse(self, store: StoreName, match: Mapping[str, Any], times: int) -> None: ...
    async def lose_answers(self, store: StoreName, times: int) -> None: ...
    async def swallow(self, store: StoreName, times: int) -> None: ...


@dataclass(slots=True)
class DeliveryRule:
    """What happens to the first `times` matching records between sender and log, until `ends_ms`."""

    topic: str
    match: Mapping[str, Any]
    action: Literal["duplicate", "drop", "hold", "reorder"]
    times: int | None
    ends_ms: int | None
    copies: int
    after_ms: int | None


class Delivery(Protocol):
    """Rules between senders and the log."""

    async def rule(self, rule: DeliveryRule) -> None: ...


@dataclass(frozen=True, slots=True)
class Report:
    """A receipt in an agent's name. `signed` True = correctly."""

    task: str
    attempt: int
    member: int
    type: str
    at_ms: int | None
    signed: Literal["right", "false", "wrong", "revoked", "replayed"]
    node: str | None
    values: Mapping[str, Any]


class Receipts(Protocol):
    """Receipts made up by the world."""

    async def report(self, report: Report) -> None: ...


class Data(Protocol):
    """Datasets and checkpoints as they lie in the stores, beside what the catalogue says."""

    async def drop_dataset(self, dataset: str, site: str, *, silently: bool) -> None: ...
    async def add_dataset(self, written: Mapping[str, Any]) -> None: ...
    async def damage_checkpoint(self, task: str, part: int, *, truncate: bool) -> None: ...
    async def write_checkpoint(
        self, task: str, generation: int, progress_ms: int, *, part_count: int, there_count: int
    ) -> None: ...


class Stage(Protocol):
    """The world as verbs see it."""

    @property
    def door(self) -> Door: ...
    @property
    def services(self) -> Services: ...
    @property
    def nodes(self) -> Nodes: ...
    @property
    def network(self) -> Network: ...
    @property
    def machines(self) -> Machines: ...
    @property
    def stores(self) -> Stores: ...
    @property
    def delivery(self) -> Delivery: ...
    @property
    def receipts(self) -> Receipts: ...
    @property
    def data(self) -> Data: ...
    def now_ms(self) -> int:
        """Milliseconds since the start of the run."""

    def later(self, after_ms: int, act: Callable[[], Any]) -> None:
        """Run something of the world's own after a time; a coroutine function is awaited."""

    async def settle(self) -> None:
        """End every fault that is still on."""
