"""Rows and memory are the same thing: whatever happened, replaying the rows gives the same model."""

from __future__ import annotations

import random
from typing import Any

import pytest

from evenflow.core.errors import Ended
from evenflow.events.contracts import agent
from evenflow.events.envelope import derived_id
from evenflow.placement.encoding import row_bytes, row_of
from evenflow.placement.memory.rows import STATE_VERSION, PoolRow, TaskRow

DEVICE = {"resources": {"devices": {"count": 1}}}
NODES = ("n1", "n2", "n3")
CAUSES = ("user-error", "out-of-memory", "start-failed", "unknown")


def _step(pool: Any, chance: random.Random, number: int) -> None:
    """One thing that may happen: to a task that exists, or a new one."""
    tasks = sorted(pool.model.tasks)
    name = chance.choice(tasks).partition("/")[2] if tasks else ""
    row = pool.model.tasks.get(f"default/{name}")
    attempt = row.attempt if row is not None else 0
    match chance.randrange(12):
        case 0 | 1 | 2 | 3:
            spec: dict[str, Any] = {"members": chance.choice((1, 1, 2, 3)), "checkpoint": {"every_s": 5}}
            pool.submit(f"t{number}", max_failures=2, reschedule_on_lost=chance.random() < 0.7, **spec, **DEVICE)
        case 4:
            pool.cancel(name or "x")
        case 5:
            state = {"reach": chance.choice(("ok", "ok", "suspect", "lost"))}
            if chance.random() < 0.2:
                state = {"administration": "draining"}
            pool.node(chance.choice(NODES), 4, **state)
        case 6 if attempt and row is not None and row.current is not None:
            for member in row.current.members:
                pool.receipt(
                    agent.AttemptStarted, name, attempt=attempt, member=member.member, node=member.node, start_ms=3
                )
        case 7 if attempt:
            pool.verified(name, number, number * 100, generation=chance.randint(1, attempt))
        case 8 | 9 if attempt and row is not None:
            for at, _, member in row.holding():
                ended = chance.choice(("succeeded", "failed", "stopped"))
                cause = chance.choice(CAUSES) if ended == "failed" else None
                pool.reclaim(
                    name, attempt=at, member=member.member, node=member.node, ended_as=ended, cause=cause,
                    run_ms=chance.randrange(100), leftover=chance.random() < 0.2,
                )  # fmt: skip
        case 10:
            pool.now_ms += chance.randrange(20_000)
        case _ if tasks:
            pool.receipt(agent.AttemptAccepted, name, attempt=max(1, attempt), node=chance.choice(NODES))


@pytest.mark.parametrize("seed", range(25))
def test_replayed_rows_give_the_same_model(pool: Any, seed: int) -> None:
    """Random lives with losses, drains, gangs and failures; take-overs between them; capacity never out of range."""
    chance = random.Random(seed)
    for name in NODES:
        pool.node(name, 4)
    for number in range(60):
        _step(pool, chance, number)
        if chance.random() < 0.7:
            pool.turn()
        for name in NODES:
            assert 0 <= pool.free_milli(name) <= 4000
        if number % 20 == 19:
            pool.turn()
            pool.take_over()
    ends = [out.key for out in pool.said if out.type in ("task.ended", "task.rejected")]
    assert len(ends) == len(set(ends))


@pytest.mark.parametrize("seed", range(5))
def test_when_faults_stop_everything_ends_and_all_books_are_zero(pool: Any, seed: int) -> None:
    """After a random past, honest agents bring every task to its end and give everything back."""
    chance = random.Random(100 + seed)
    for name in NODES:
        pool.node(name, 4)
    for number in range(60):
        _step(pool, chance, number)
        pool.turn()
    pool.take_over()
    for name in NODES:
        pool.node(name, 4)
    for _ in range(60):
        pool.after(30)
        live = [(row, hold) for row in list(pool.model.tasks.values()) for hold in row.holding()]
        if not live and all(row.terminal for row in pool.model.tasks.values()):
            break
        for row, (attempt, _, member) in live:
            ended = "succeeded" if str(member.wish) == "run" else "stopped"
            pool.reclaim(row.id, attempt=attempt, member=member.member, node=member.node, ended_as=ended, run_ms=1)
    assert all(row.terminal for row in pool.model.tasks.values())
    assert [pool.free_milli(name) for name in NODES] == [4000] * 3
    assert pool.used_milli() == 0
    assert pool.model.live_count == 0
    assert pool.model.on_node == {}


def test_a_task_row_reads_back_as_it_was(pool: Any) -> None:
    """With its attempt, its checkpoints and the author's own bytes, priority changed meanwhile."""
    pool.node("n1")
    pool.submit("t1", name="näme \u2028", priority=7, **DEVICE)
    pool.turn()
    pool.started("t1")
    pool.verified("t1", 1, 5)
    pool.turn()
    row = pool.model.tasks["default/t1"]
    row.priority = 8
    again = row_of("task/default/t1", row_bytes(row))
    assert isinstance(again, TaskRow)
    assert again.task is not None
    assert again.task.priority == 8
    again.task = row.task
    assert again == row


def test_an_older_build_never_leads_over_newer_state(pool: Any) -> None:
    """The row's version says so, and the process ends instead of guessing."""
    newer = row_bytes(PoolRow("default")).replace(
        b'"state_version":%d' % STATE_VERSION, b'"state_version":%d' % (STATE_VERSION + 1)
    )
    with pytest.raises(Ended, match="run the newer") as ended:
        row_of("pool/default", newer)
    assert ended.value.exit_code == 6


def test_a_row_that_can_not_be_read_ends_the_process(pool: Any) -> None:
    """Leading over a hole would decide twice."""
    with pytest.raises(Ended, match="can't be read"):
        row_of("task/default/t1", b'{"state_version":1,"row":{"tenant":1}}')


def test_a_new_leader_goes_on_where_the_old_one_was(pool: Any) -> None:
    """Pauses, deadlines, reasons and the order of arrival are all in the rows."""
    pool.node("n1")
    pool.submit("t1", deadline_s=100, **DEVICE)
    pool.submit("t2", **DEVICE)
    pool.turn()
    pool.take_over()
    assert pool.types(pool.turn()) == []
    pool.receipt(agent.AttemptFailed, "t1", epoch=1, outcome=pool.outcome("failed", cause="user-error"))
    pool.turn()
    pool.take_over()
    pool.reclaim("t1", ended_as="failed")
    pool.after(4)
    assert pool.state("t2") == "starting"
    pool.after(97)
    assert pool.last("task.ended").cause == "deadline"


def test_ids_of_facts_come_from_pool_epoch_round_type_and_key(pool: Any) -> None:
    """The same round written by anybody carries the same ids; the rule is the envelope's own."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    out = pool.turn()
    assigned = next(one for one in out if one.type == "task.assigned")
    body = assigned.body
    assert assigned.id == derived_id("default", body.epoch, body.round, "task.assigned", "default/t1")
