"""One round: inputs to a draft, the draft to records. Nothing is written and no memory of rows is changed here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic_core import to_json

from evenflow.core.errors import EvenflowError
from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.placement.engine import could_seat
from evenflow.core.placement.plan import Demand, Plan
from evenflow.core.probing.sequence import Freshness
from evenflow.events.streams import ROUNDS
from evenflow.placement.deciding import planning, watching
from evenflow.placement.deciding.draft import Draft, Said
from evenflow.placement.deciding.explaining import Explainer
from evenflow.placement.deciding.planning import Planned
from evenflow.placement.deciding.reducing import RETRIED, hear, reduce
from evenflow.placement.deciding.replays import Replays
from evenflow.placement.encoding import Writer, cut
from evenflow.placement.inputs import Input
from evenflow.placement.memory.capacity import Capacity
from evenflow.placement.memory.model import Model
from evenflow.placement.memory.rows import NodeRow, PoolRow, TaskRow
from evenflow.placement.memory.tables import Tables
from evenflow.placement.settings import PlacementSettings
from evenflow.platform.broker.codec import PROBLEM_LENGTH_MAX, Bad, Encoded, Received
from evenflow.platform.broker.dead_letters import parked
from evenflow.platform.runtime import Runtime

#: Inputs of one batch that may break a reducer before the process gives up.
POISON_MAX: Final = 20
CROSSINGS_MAX: Final = 200
FORGOTTEN_PER_ROUND: Final = 500

Engine = Callable[..., Plan]


@dataclass(slots=True)
class Decided:
    """A round ready to be written."""

    draft: Draft
    planned: Planned
    inputs: Sequence[Input]
    pool: PoolRow
    records: list[Encoded] = field(default_factory=list)
    partitions: list[int | None] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write at all."""
        return self.draft.empty and not self.inputs


class Rounds:
    """Makes rounds from a model, tables and an engine."""

    def __init__(
        self,
        runtime: Runtime,
        settings: PlacementSettings,
        model: Model,
        tables: Tables,
        capacity: Capacity,
        engine: Engine,
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self.model = model
        self.tables = tables
        self.capacity = capacity
        self.explainer = Explainer()
        self._engine = engine
        self._replays = Replays(settings.replay_window_count)

    # --- deciding -----------------------------------------------------------------------------------------------------

    def claim(self, epoch: int, now_ms: int) -> Decided:
        """The first round of a leader: empty, it claims the epoch and meets the fence before anything is decided."""
        draft = self._draft(epoch, now_ms)
        return self._finished(draft, Planned(), ())

    def decide(self, inputs: Sequence[Input], epoch: int, now_ms: int) -> Decided:
        """Decide one round. An input that breaks its reducer is parked; the others are not held up by it."""
        heard = [self._hear(one) for one in inputs]
        self._renew(now_ms)
        poison: dict[int, str] = {}
        while True:
            draft = self._draft(epoch, now_ms)
            broken = self._reduce(draft, inputs, heard, poison)
            if broken is None:
                break
            if len(poison) >= POISON_MAX:
                raise broken
        self._watch(draft)
        planned = planning.plan(draft, self.capacity, self._engine)
        self.explainer.explain(draft, planned)
        watching.forget_old(draft, FORGOTTEN_PER_ROUND)
        return self._finished(draft, planned, inputs)

    def _draft(self, epoch: int, now_ms: int) -> Draft:
        pool = self.model.pool
        return Draft(
            self.model,
            self.tables,
            self._settings,
            epoch=epoch,
            round=pool.round + 1,
            now_ms=now_ms,
            sequence=pool.sequence,
        )

    def _hear(self, one: Input) -> Freshness:
        if isinstance(one.received, Bad):
            return Freshness.FRESH
        retried = any(name == RETRIED for name, _ in one.record.headers)
        return hear(self._replays, one.received, retried=retried)

    def _reduce(
        self, draft: Draft, inputs: Sequence[Input], heard: Sequence[Freshness], poison: dict[int, str]
    ) -> Exception | None:
        """Fold all inputs in. Returns what broke a reducer; the draft is then worth nothing and the input is poison."""
        for index, (one, hearing) in enumerate(zip(inputs, heard, strict=True)):
            received = one.received
            if isinstance(received, Bad):
                draft.parked[_origin(one)] = (received.code, received.problem)
                continue
            if index in poison:
                draft.park(received, "internal", poison[index])
                continue
            try:
                reduce(draft, received, hearing)
            except EvenflowError as error:
                draft.park(received, error.code, error.message[:PROBLEM_LENGTH_MAX])
            except Exception as error:  # noqa: BLE001  a reducer's own mistake must not stop the pool: the input is put aside
                poison[index] = f"{type(error).__name__}: {error}"[:PROBLEM_LENGTH_MAX]
                self._runtime.log.error("input broke its reducer", origin=_origin(one), problem=poison[index])
                return error
        return None

    def _renew(self, now_ms: int) -> None:
        """Bring the engine's books up to date with the tables."""
        tables, capacity, waiting = self.tables, self.capacity, self.model.waiting
        tables.wake(now_ms)
        waiting.wake(now_ms)
        if tables.queues_changed:
            capacity.renew_queues(tables)
            waiting.bump()
        if tables.network_changed:
            capacity.renew_network(tables)
            waiting.bump()
        tables.queues_changed = tables.network_changed = False
        if not tables.dirty_nodes:
            return
        limit = self._settings.start_failures_quarantine or tables.policy.retry.start_failures_quarantine
        for node in tables.dirty_nodes:
            row = self.model.nodes.get(node) or NodeRow(node)
            capacity.renew_node(tables, node, now_ms, row, limit=limit, probe_ms=self._settings.start_probe_ms)
        waiting.bump()

    def _watch(self, draft: Draft) -> None:
        """Level-triggered checks: nodes that changed, tasks whose time has come."""
        dirty, self.tables.dirty_nodes = self.tables.dirty_nodes, {}
        if dirty:  # what waits for a lost node may have somewhere else to go now
            dirty |= {node: None for node in self.tables.lost_nodes if node in self.model.on_node}
        for node in dirty:
            watching.check_node(draft, node, lambda row: self._has_place(draft, row))
        for key in self.model.due(draft.now_ms):
            watching.check_due(draft, key)

    def _has_place(self, draft: Draft, row: TaskRow) -> bool:
        if row.task is None:
            return False
        snapshot = self.capacity.snapshot(self.tables)
        demand = Demand(row.task, row.sequence, row.queued_ms, avoid=row.avoid)
        return could_seat(snapshot, demand, draft.policy, draft.now_ms)

    def take(self, decided: Decided) -> None:
        """Let memory follow a round that is committed, by the same function as in a restore."""
        now_ms = decided.draft.now_ms
        for key, row in decided.draft.rows.items():
            self.model.apply(key, row, now_ms)
            if isinstance(row, NodeRow):
                self.tables.dirty_nodes[row.node] = None
        self.model.apply(f"pool/{decided.pool.pool}", decided.pool, now_ms)

    # --- writing ------------------------------------------------------------------------------------------------------

    def _finished(self, draft: Draft, planned: Planned, inputs: Sequence[Input]) -> Decided:
        pool = self.model.pool
        offsets = dict(pool.offsets)
        for one in inputs:
            offsets[one.place] = one.record.offset + 1
        after = replace(
            pool, epoch=draft.epoch, round=draft.round, sequence=draft.sequence, time_ms=draft.now_ms, offsets=offsets
        )
        decided = Decided(draft, planned, inputs, after)
        if not decided.empty or draft.epoch != pool.epoch:
            self._encode(decided)
        return decided

    def _encode(self, decided: Decided) -> None:
        draft, pool = decided.draft, decided.pool
        writer = Writer(pool.pool, draft.epoch, draft.round, draft.now_ms, self._runtime.wire)
        records = [writer.encode(said) for said in draft.said]
        records += [writer.encode(said) for said in draft.desired.values()]
        if records or draft.epoch != self.model.pool.epoch:
            records.append(writer.encode(self._round_record(decided)))
        records += self._dead_letters(decided)
        rows = [writer.encode_row(key, row) for key, row in draft.rows.items()]
        rows.append(writer.encode_row(f"pool/{pool.pool}", pool))
        decided.records = records + rows
        decided.partitions = [None] * len(records) + [0] * len(rows)

    def _dead_letters(self, decided: Decided) -> list[Encoded]:
        draft = decided.draft
        if not draft.parked:
            return []
        letters = []
        for one in decided.inputs:
            problem = draft.parked.get(_origin(one))
            if problem is not None:
                letter = parked(
                    one.record, code=problem[0], problem=problem[1], service=self._runtime.name, now_ms=draft.now_ms
                )
                letters.append(cut(letter))
        return letters

    def _round_record(self, decided: Decided) -> Said:
        draft, counts = decided.draft, decided.draft.counts
        before = self.model.pool.offsets
        body: dict[str, Any] = {
            "pool": decided.pool.pool,
            "epoch": draft.epoch,
            "round": draft.round,
            "policy_hash": self.tables.policy_hash,
            "inputs_hash": inputs_hash(decided.inputs),
            "offsets": {place: offset for place, offset in decided.pool.offsets.items() if before.get(place) != offset},
            "considered_count": counts.considered,
            "assigned_count": counts.assigned,
            "waiting_count": max(0, len(self.model.waiting) + len(draft.fresh) - counts.assigned),
            "rejected_count": counts.rejected,
            "ended_count": counts.ended,
            "stage_us": decided.planned.stage_us,
            "crossings": draft.crossings[:CROSSINGS_MAX],
        }
        return Said(ROUNDS, EventType.ROUND_COMPLETED, decided.pool.pool, to_json(body))


def inputs_hash(inputs: Sequence[Input]) -> str:
    """A hash of which records a round took in."""
    digest = hashlib.blake2b(digest_size=16)
    for one in inputs:
        digest.update(b"%s/%d;" % (one.place.encode(), one.record.offset))
    return digest.hexdigest()


def _origin(one: Input) -> str:
    if isinstance(one.received, Received):
        return one.received.origin
    record = one.record
    return f"{record.topic}/{record.partition}/{record.offset}"
