"""Waiting tasks to the engine and its plan back into the draft: assignments, rejections, refusals."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evenflow.core.lifecycle.attempt import Wish
from evenflow.core.lifecycle.causes import Cause
from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.reasons import Blocker, Reason
from evenflow.core.lifecycle.task import TaskState
from evenflow.core.placement.engine import could_seat
from evenflow.core.placement.plan import Crossing, Demand, Eviction, Placement, Plan, Wait
from evenflow.placement.deciding import endings
from evenflow.placement.deciding.draft import Draft, place_document
from evenflow.placement.memory.capacity import Capacity
from evenflow.placement.memory.neighbours import Neighbours
from evenflow.placement.memory.rows import AttemptRow, MemberRow, TaskRow

#: A start waits this many times the expected transfer for its data before it counts as not ready.
_STAGING_PATIENCE: Final = 4
#: Members asked for in one round at most: each placed one is a record, and a round is one transaction.
ROUND_MEMBERS_MAX: Final = 8_192

Engine = Callable[..., Plan]


@dataclass(slots=True)
class Planned:
    """What came of a plan. `more`: somebody was left out and wants another round at once; `waits`: by task key."""

    more: bool = False
    wake_ms: int | None = None
    waits: dict[str, Wait] = dataclasses.field(default_factory=dict)
    known: list[TaskRow] = dataclasses.field(default_factory=list)
    stage_us: dict[str, int] = dataclasses.field(default_factory=dict)


def plan(draft: Draft, capacity: Capacity, engine: Engine) -> Planned:
    """Try to place what waits. Leaves everything to the next round when capacity came back in this one."""
    if draft.frees:
        return Planned(more=bool(draft.fresh) or len(draft.model.waiting) > 0)
    waiting = draft.model.waiting
    keys, more, news = waiting.select(draft.settings.round_demands_max, draft.changed, draft.tables.strict_queues)
    known: list[TaskRow] = []
    rows = [draft.model.tasks[key] for key in keys]
    for row in draft.fresh.values():
        if row.state is not TaskState.QUEUED or row.not_before_ms > draft.now_ms or row.emptying:
            continue
        group = waiting.find(row)
        if group is not None and waiting.refused(group):
            known.append(row)
        else:
            rows.append(row)
            news = True
    if not news:
        return Planned(more=more, known=known)
    demands, deferred = _demands(draft, capacity, _bounded(rows))
    draft.counts.considered = len(demands)
    result = _ask(draft, capacity, engine, demands)
    out = Planned(
        more or deferred or len(demands) < len(rows), result.wake_ms, known=known, stage_us=dict(result.stage_us)
    )
    for placement in result.placements:
        _assign(draft, placement)
    for eviction in result.evictions:
        _evict(draft, eviction)
    for rejection in result.rejections:
        _reject(draft, rejection.demand, rejection.blocker)
    _refuse(draft, result.waits, demands, out)
    return out


def _bounded(rows: list[TaskRow]) -> list[TaskRow]:
    """As many as one transaction bears when all are placed; the first one whatever its size."""
    members = 0
    for index, row in enumerate(rows):
        members += row.task.members if row.task is not None else 1
        if index and members > ROUND_MEMBERS_MAX:
            return rows[:index]
    return rows


def _ask(draft: Draft, capacity: Capacity, engine: Engine, demands: Sequence[Demand]) -> Plan:
    """Ask the engine. A demand that breaks it goes on waiting, with a line in the log, and holds nobody up."""
    snapshot, queues = capacity.snapshot(draft.tables), capacity.queues.snapshot()
    try:
        return engine(snapshot, queues, demands, draft.policy, draft.now_ms)
    except Exception as whole:
        sound, broken = [], []
        for demand in demands:
            try:
                engine(snapshot, queues, [demand], draft.policy, draft.now_ms)
            except Exception as error:  # noqa: BLE001  as above
                draft.note("engine broke on a demand", task=demand.task.key, problem=f"{type(error).__name__}: {error}")
                broken.append(Wait(demand, (Blocker(Reason.INVALID, "engine", type(error).__name__),), 0))
            else:
                sound.append(demand)
        if not broken:
            raise AssertionError("the engine breaks on demands together but on none alone") from whole
        plan_of_rest = engine(snapshot, queues, sound, draft.policy, draft.now_ms)
        return dataclasses.replace(plan_of_rest, waits=(*plan_of_rest.waits, *broken))


def _demands(draft: Draft, capacity: Capacity, rows: Sequence[TaskRow]) -> tuple[list[Demand], bool]:
    """What the engine is asked. Of tasks that must not meet only the first goes in; the others take the next round."""
    neighbours = Neighbours(draft.model.neighbours, draft.model.tasks)
    demands: list[Demand] = []
    deferred = False
    for row in rows:
        task = row.task
        if task is None:
            raise AssertionError(f"{row.key} waits without a specification")
        if neighbours.conflicts(task):
            deferred = True
            continue
        neighbours.take(task)
        newest = row.checkpoints[0] if row.checkpoints else None
        demand = Demand(
            task=task,
            sequence=row.sequence,
            queued_ms=row.queued_ms,
            not_before_ms=row.not_before_ms,
            avoid=row.avoid,
            apart_nodes=neighbours.apart_nodes(task),
            progress_ms=newest["progress_ms"] if newest else 0,
            resume_site=newest["site"] if newest else None,
            resume_bytes=newest["size_bytes"] if newest else 0,
        )
        demands.append(_with_somewhere_to_go(draft, capacity, demand))
    return demands, deferred


def _with_somewhere_to_go(draft: Draft, capacity: Capacity, demand: Demand) -> Demand:
    """Give up what the task could do without when nothing else could hold it, however empty.

    First the avoiding of nodes where a start failed. Then, for a gang, the reckoning of where its save is best read:
    what is reckoned with one destination keeps the gang within one site, and it may have begun wider than any is.
    """
    spread = demand.task.members > 1 and demand.resume_bytes > 0
    if not demand.avoid and not spread:
        return demand
    anywhere = dataclasses.replace(demand, resume_bytes=0, resume_site=None) if spread else demand
    snapshot = capacity.snapshot(draft.tables)
    ways = (demand, dataclasses.replace(demand, avoid=()), anywhere, dataclasses.replace(anywhere, avoid=()))
    fitting = (way for way in ways if could_seat(snapshot, way, draft.policy, draft.now_ms))
    return next(fitting, demand)


def _refuse(draft: Draft, waits: Sequence[Wait], demands: Sequence[Demand], out: Planned) -> None:
    """Remember which classes do not fit now, and which fitted whole."""
    waiting = draft.model.waiting
    refused: dict[int, None] = {}
    for wait in waits:
        row = draft.task(wait.demand.task.key)
        if row is None:
            continue
        out.waits[row.key] = wait
        group = waiting.group_of(row.key) or waiting.group(row)
        refused[id(group)] = None
        if wait.crossing is not None:
            draft.crossings.append(crossing_document(wait.crossing))
        if not waiting.refused(group):
            waiting.refuse(group, wait.blockers, never_fits=wait.never_fits)
    for demand in demands:
        group_of = waiting.group_of(demand.task.key)
        if group_of is not None and id(group_of) not in refused:
            group_of.refused_before = False


def _evict(draft: Draft, eviction: Eviction) -> None:
    """Ask a running task to give its place up; it goes back to its queue and no failure is counted."""
    row = draft.task(eviction.task_key)
    if row is None or row.current is None or row.current.cause is not None:
        return
    row = draft.change(eviction.task_key)
    draft.say(EventType.TASK_PREEMPTED, row, {"attempt": row.attempt, "by": eviction.for_task_key})
    endings.stop_attempt(draft, row, Cause.PREEMPTED, eviction.reason)


def _reject(draft: Draft, demand: Demand, blocker: Any) -> None:
    row = draft.change(demand.task.key)
    detail = dataclasses.asdict(blocker)
    needed, available = blocker.needed, blocker.available
    problem = f"{blocker.reason} {blocker.dimension}: needs {needed}, there is {available}"
    draft.say(EventType.TASK_REJECTED, row, {"reason": detail, "path": blocker.dimension, "problem": problem})
    endings.close(draft, row, TaskState.REJECTED)
    draft.counts.rejected += 1


def _assign(draft: Draft, placement: Placement) -> None:
    """Give a task its places: one more attempt, desired state for every member."""
    demand = placement.demand
    row = draft.change(demand.task.key)
    number = row.attempt + 1
    members = [
        MemberRow(
            place.member, place.node, place.site, place.devices, place.cpu_milli, place.memory_bytes, place.disk_bytes,
            place.price_per_hour_micro, place.cpu_price_per_hour_micro, place.device_memory_bytes,
        )
        for place in placement.places
    ]  # fmt: skip
    crossing = crossing_document(placement.crossing) if placement.crossing is not None else None
    patience_ms = crossing["transfer_in_ms"] * _STAGING_PATIENCE if crossing is not None else 0
    attempt = AttemptRow(
        number=number,
        epoch=draft.epoch,
        assigned_ms=draft.now_ms,
        wait_ms=0 if any(hold.counted for hold in row.holds) else max(0, draft.now_ms - row.queued_ms),
        members=members,
        ready_due_ms=draft.now_ms + patience_ms + demand.task.ready_timeout_ms,
        resume=row.checkpoints,
        staging=[_staging(read) for read in placement.reads],
        crossing=crossing,
    )
    row.attempt = number
    row.current = attempt
    row.not_before_ms = 0
    row.reasons = []
    draft.clear_task_alerts(row, list(row.alerts))
    endings.enter(row, TaskState.STARTING)
    places = [place_document(member) for member in members]
    body: dict[str, Any] = {
        "pool": draft.model.pool.pool,
        "epoch": draft.epoch,
        "round": draft.round,
        "attempt": number,
        "generation": number,
        "members": places,
        "wait_ms": attempt.wait_ms,
        "submitted_ms": row.submitted_ms,
        "estimate_micro": placement.estimate_micro,
    }
    if demand.task.checkpoint is not None:
        body["saves"] = True
    if attempt.resume:
        body["resume"] = attempt.resume
    if attempt.staging:
        body["staging"] = attempt.staging
    if crossing is not None:
        body["crossing"] = crossing
        draft.crossings.append(crossing)
    if placement.refused_crossing is not None:
        draft.crossings.append(crossing_document(placement.refused_crossing))
    draft.say(EventType.TASK_ASSIGNED, row, body)
    for member, place in zip(members, places, strict=True):
        draft.want(row, number, member, Wish.RUN, place=place)
    draft.counts.assigned += 1


def _staging(read: Any) -> dict[str, Any]:
    return {
        "dataset": read.dataset,
        "from_site": read.from_site,
        "bytes": read.bytes,
        "reads": read.reads,
        "keep_copy": read.keep_copy,
        "price_micro": read.price_micro,
    }


def crossing_document(crossing: Crossing) -> dict[str, Any]:
    """The arithmetic of a crossing as events.contracts.placement.CrossingTerms."""
    return dataclasses.asdict(crossing)
