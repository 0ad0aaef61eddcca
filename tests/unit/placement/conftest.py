"""A pool without a log: records in, rounds made and taken, facts out. Every test of placement's rules starts here."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

import pytest
import structlog

from evenflow.core.lifecycle.reasons import Blocker, Reason
from evenflow.core.placement.plan import Demand, Place, Placement, Plan, Wait
from evenflow.events.contract import Contract
from evenflow.events.contracts import agent, checkpoint, inventory, tasks
from evenflow.events.contracts.console import DocumentPublished
from evenflow.events.envelope import AgentStamp
from evenflow.events.streams import BY_NAME, CHECKPOINTS, NODES, POLICIES, RUNS, TASKS, Stream
from evenflow.placement.encoding import row_of
from evenflow.placement.inputs import Input
from evenflow.placement.memory.capacity import Capacity
from evenflow.placement.memory.model import Model
from evenflow.placement.memory.tables import Tables
from evenflow.placement.rounds import Rounds
from evenflow.placement.settings import PlacementSettings
from evenflow.platform.broker.codec import Encoded, Fact, Received, decode, encode, read_body
from evenflow.platform.runtime import Runtime

START_MS = 1_767_225_600_000


@dataclass(slots=True)
class LogRecord:
    """A record as a consumer gives it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]


@dataclass(slots=True)
class Out:
    """A record that a round wrote, read again."""

    stream: Stream
    type: str
    key: str
    id: str
    body: Any


def first_fit(snapshot: Any, queues: Any, demands: Any, policy: Any, now_ms: int) -> Plan:
    """An engine that takes the first node by name with room, whole devices or shares of the first device that fits."""
    del policy, now_ms
    view = snapshot.fleet
    free = {name: [int(view.amounts[0, row]), view.devices[:, row].tolist()] for name, row in view.table.row_of.items()}
    used = {}
    placements, waits = [], []
    for demand in sorted(demands, key=lambda one: (-one.task.priority, one.sequence)):
        queue = queues.get(demand.task.queue)
        asked = demand.task.members * demand.task.resources.devices.total_milli
        held = used.setdefault(demand.task.queue, queue.used.devices_milli if queue else 0)
        limit = queue.limit.devices_milli if queue else None
        if limit is not None and held + asked > limit:
            waits.append(Wait(demand, (Blocker(Reason.QUOTA, "devices", str(asked), str(limit - held)),), 1))
            continue
        places = _places(demand, free, view)
        if places is None:
            nodes = demand.task.where.nodes
            reason = Blocker(Reason.PINNED if nodes else Reason.DEVICE_COUNT, "devices", str(asked), "0", len(free))
            waits.append(Wait(demand, (reason,), 1, never_fits=not free))
            continue
        used[demand.task.queue] += asked
        placements.append(Placement(demand, tuple(places)))
    return Plan(tuple(placements), tuple(waits))


def _places(demand: Demand, free: dict[str, list[Any]], view: Any) -> list[Place] | None:
    trial = {name: [cpu, list(devices)] for name, (cpu, devices) in free.items()}
    places = []
    for member in range(demand.task.members):
        asked = demand.task.resources_of(member)
        for name in sorted(trial):
            row = view.table.row_of[name]
            wanted = demand.task.where.nodes
            banned = (*demand.avoid, *demand.apart_nodes)
            if row in view.closed or name in banned or (wanted and name not in wanted):
                continue
            cpu, devices = trial[name]
            count, share = asked.devices.count, asked.devices.share_milli
            fitting = [index for index, milli in enumerate(devices) if milli >= (share or 1000)]
            if cpu < asked.cpu_milli or len(fitting) < max(count, bool(share)):
                continue
            taken = tuple((index, share or 1000) for index in fitting[: max(count, bool(share))])
            trial[name][0] -= asked.cpu_milli
            for index, milli in taken:
                devices[index] -= milli
            places.append(
                Place(member, name, "east", taken, asked.cpu_milli, asked.memory_bytes, asked.disk_bytes, 4_000_000)
            )
            break
        else:
            return None
    free.update(trial)
    return places


class Pool:
    """One decider's rules, its rows and its tables, on a clock that the test moves."""

    def __init__(self, **settings: Any) -> None:
        self.settings = PlacementSettings(**settings)
        self.now_ms = START_MS
        self.tables = Tables()
        self.capacity = Capacity()
        self.model = Model(self.settings.pool, self.capacity)
        self.epoch = 1
        self.offset = 0
        self.log: list[tuple[str, bytes | None]] = []
        self.said: list[Out] = []
        self.round_count = 0
        self.pending: list[Input] = []
        self.rounds = self._rounds()
        self._sequence = 0
        self._sessions: dict[str, str] = {}

    def _rounds(self) -> Rounds:
        runtime = Runtime(
            "placement",
            "placement.1",
            None,
            None,
            random.Random(1),
            None,
            None,
            None,
            None,
            structlog.get_logger(),  # type: ignore[arg-type]  # only name and log are used
        )
        return Rounds(runtime, self.settings, self.model, self.tables, self.capacity, first_fit)

    # --- in -----------------------------------------------------------------------------------------------------------

    def feed(self, stream: Stream, encoded: Encoded) -> Input:
        """Put a record into the next round."""
        record = LogRecord(stream.name, 0, self.offset, self.now_ms, encoded.key, encoded.value, list(encoded.headers))
        self.offset += 1
        one = Input(record, decode(record, stream))
        if stream in (TASKS, RUNS, CHECKPOINTS):
            self.pending.append(one)
        else:
            assert isinstance(one.received, Received), one.received
            self.tables.apply(one.received)
        return one

    def tell(self, stream: Stream, body: Contract, key: str = "", stamp: AgentStamp | None = None) -> Input:
        """Put a fact into the next round."""
        identity = f"in-{self.offset}"
        return self.feed(
            stream, encode(Fact(stream, body, key=key, id=identity, stamp=stamp), source="test", now_ms=self.now_ms)
        )

    def again(self, one: Input) -> None:
        """The same record once more, as a new one."""
        record = one.record
        copy = LogRecord(record.topic, 0, self.offset, record.timestamp, record.key, record.value, list(record.headers))
        self.offset += 1
        self.pending.append(Input(copy, decode(copy, BY_NAME[record.topic])))

    def submit(self, name: str | None, /, *, key: str | None = None, **spec: Any) -> Input:
        """Submit a task with these fields."""
        document = {**spec} if name is None else {"id": name, **spec}
        raw = json.dumps(document).encode()
        return self.tell(
            TASKS, tasks.TaskSubmitted(raw=raw), key=key or f"{spec.get('tenant', 'default')}/{name or 'x'}"
        )

    def cancel(self, name: str) -> Input:
        """Ask for a cancel."""
        return self.tell(TASKS, tasks.TaskCancelRequested(task=name))

    def node(self, name: str, devices: int = 1, *, cpu: int = 64, **status: Any) -> None:
        """Say the whole state of a node."""
        document: dict[str, Any] = {"id": name, "site": "east", "cpu": cpu}
        if devices:
            document["devices"] = {"model": "a100-80g", "count": devices}
        broken = status.pop("states", {})
        states = tuple(inventory.DeviceStatus(index=index, state=state) for index, state in broken.items())
        fields = {
            "devices": states,
            "reach": "ok",
            "administration": "open",
            "health": "ok",
            "session": f"s-{name}",
            **status,
        }
        self.tell(NODES, inventory.NodeChanged(node=name, revision=self.offset, document=document, **fields))

    def document(self, kind: str, name: str, document: dict[str, Any]) -> None:
        """Publish a document."""
        body = DocumentPublished(kind=kind, name=name, version=1, document=document)  # type: ignore[arg-type]  # a literal
        self.tell(POLICIES, body)

    def receipt(self, kind: type[agent.Receipt], task: str, *, attempt: int = 1, member: int = 0, **more: Any) -> Input:
        """A receipt by the node that holds the member, unless `node` says otherwise."""
        node = more.pop("node", None) or self.node_of(task, attempt, member)
        epoch = more.pop("epoch", self.epoch)
        self._sequence += 1
        stamp = AgentStamp(node, f"s-{node}", more.pop("sequence", self._sequence), attempt, member, epoch, "ff")
        body = kind(
            tenant="default", task=task, attempt=attempt, generation=attempt, member=member, epoch=epoch, node=node,
            at_ms=self.now_ms, **more,
        )  # fmt: skip
        return self.tell(RUNS, body, stamp=stamp)

    def node_of(self, task: str, attempt: int, member: int) -> str:
        """Where a member was put."""
        for out in reversed(self.said):
            if out.type == "task.assigned" and out.body.task == task and out.body.attempt == attempt:
                return str(out.body.members[member].node)
        return "n1"

    def started(self, task: str, *, attempt: int = 1, members: int = 1) -> None:
        """All members accepted and became ready."""
        for member in range(members):
            self.receipt(agent.AttemptAccepted, task, attempt=attempt, member=member)
            self.receipt(agent.AttemptStarted, task, attempt=attempt, member=member, start_ms=500)
        self.turn()

    def outcome(self, ended_as: str, **more: Any) -> agent.Outcome:
        """An outcome."""
        return agent.Outcome(ended_as=ended_as, **more)

    def succeed(self, task: str, *, attempt: int = 1, member: int = 0, run_ms: int = 5_000) -> Input:
        """A success receipt."""
        outcome = self.outcome("succeeded", run_ms=run_ms, progress_ms=run_ms)
        return self.receipt(agent.AttemptSucceeded, task, attempt=attempt, member=member, outcome=outcome)

    def reclaim(
        self, task: str, *, attempt: int = 1, member: int = 0, ended_as: str = "succeeded", **more: Any
    ) -> Input:
        """A reclaim receipt."""
        leftover = more.pop("leftover", False)
        node, outcome = more.pop("node", None), self.outcome(ended_as, **more)
        return self.receipt(
            agent.AttemptReclaimed, task, attempt=attempt, member=member, outcome=outcome, leftover=leftover, node=node
        )

    def verified(self, task: str, number: int, progress_ms: int, generation: int = 1) -> None:
        """The checkpoint service verified a checkpoint."""
        body = checkpoint.CheckpointVerified(
            tenant="default", task=task, checkpoint=number, attempt=generation, generation=generation,
            progress_ms=progress_ms, manifest=f"checkpoints/default/{task}/g{generation}/c{number}/manifest.json",
            size_bytes=10, site="east",
        )  # fmt: skip
        self.tell(CHECKPOINTS, body)

    # --- rounds -------------------------------------------------------------------------------------------------------

    def turn(self, *, rounds_max: int = 20) -> list[Out]:
        """Make rounds until there is nothing to do. Returns what was written, state rows left out."""
        before = len(self.said)
        for _ in range(rounds_max):
            inputs, self.pending = self.pending, []
            decided = self.rounds.decide(inputs, self.epoch, self.now_ms)
            version = self.model.waiting.version
            if not decided.empty:
                self._take(decided)
            again = decided.planned.more or (self.model.waiting.version != version and len(self.model.waiting))
            if not again:
                return self.said[before:]
        raise AssertionError("rounds go on for ever")

    def _take(self, decided: Any) -> None:
        self.round_count += 1
        for record, partition in zip(decided.records, decided.partitions, strict=True):
            if partition == 0:
                self.log.append((record.key.decode(), record.value))
                continue
            headers = dict(record.headers)
            type_ = headers["ce_type"].decode()
            if type_ == "record.parked":
                self.said.append(Out(BY_NAME[record.topic[: -len(".dlq")]], type_, record.key.decode(), "", headers))
                continue
            body = read_body(type_, record.value) if record.value else None
            self.said.append(Out(BY_NAME[record.topic], type_, record.key.decode(), headers["ce_id"].decode(), body))
        self.rounds.take(decided)

    def after(self, seconds: float) -> list[Out]:
        """Let time pass, then a turn."""
        self.now_ms += round(seconds * 1000)
        return self.turn()

    def take_over(self) -> None:
        """Another process restores from the rows written so far and goes on."""
        capacity = Capacity()
        model = Model(self.settings.pool, capacity)
        for key, value in self.log:
            model.apply(key, row_of(key, value) if value is not None else None)
        model.restored(self.now_ms)
        assert model.digest() == self.model.digest()
        self.capacity, self.model = capacity, model
        self.tables.dirty_nodes.update(dict.fromkeys([*self.tables.nodes, *model.on_node]))
        self.tables.network_changed = self.tables.queues_changed = True
        self.rounds = self._rounds()
        self.epoch += 1

    # --- questions ----------------------------------------------------------------------------------------------------

    def state(self, task: str) -> str:
        """A task's state."""
        return str(self.model.tasks[f"default/{task}"].state)

    def free_milli(self, node: str) -> int:
        """Free milli-devices of a node."""
        return int(self.capacity.fleet.free_of(node).devices_milli)

    def used_milli(self, queue: str = "default") -> int:
        """Milli-devices counted against a queue."""
        return int(self.capacity.queues.used(queue).devices_milli)

    def types(self, outs: list[Out]) -> list[str]:
        """Types of facts about tasks, in order."""
        return [out.type for out in outs if out.stream.name == "evenflow.assignments.v1"]

    def wishes(self, outs: list[Out]) -> list[tuple[str, str]]:
        """Desired state as (key, wish); a tombstone is `gone`."""
        return [
            (out.key, str(out.body.wish) if out.body is not None else "gone")
            for out in outs
            if out.stream.name == "evenflow.dispatch.v1"
        ]

    def last(self, type_: str) -> Any:
        """The newest fact of a type."""
        return next(out.body for out in reversed(self.said) if out.type == type_)

    def count(self, type_: str) -> int:
        """How many facts of a type were written."""
        return sum(out.type == type_ for out in self.said)


@pytest.fixture
def pool() -> Pool:
    """A pool with nothing in it."""
    return Pool()


@pytest.fixture
def make_pool() -> type[Pool]:
    """Pools with other settings."""
    return Pool
