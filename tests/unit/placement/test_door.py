"""What comes to the door for tasks: good, bad, used ids, hostile bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evenflow.events.contracts import agent, tasks
from evenflow.events.streams import RUNS, TASKS
from evenflow.platform.broker.codec import Encoded

DEVICE = {"resources": {"devices": {"count": 1}}}


def _raw(pool: Any, value: bytes, *, key: str = "default/t1", headers: dict[str, bytes] | None = None) -> None:
    """A record on tasks with any value."""
    attributes = {
        "ce_type": b"task.submitted",
        "ce_id": b"e1",
        "ce_source": b"test",
        "ce_time": b"2026-01-01T00:00:00Z",
    }
    attributes |= headers or {}
    pool.feed(TASKS, Encoded(TASKS.name, key.encode(), value, list(attributes.items())))


def _parked(pool: Any) -> list[str]:
    return [out.body["x-dlq-error"].decode() for out in pool.said if out.type == "record.parked"]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"resources": {"devices": {"share": -0.5}}}, "resources.devices.share"),
        ({"resources": {"devices": {"share": "nan"}}}, "resources.devices.share"),
        ({"resources": {"cpu": -1}}, "resources.cpu"),
        ({"members": 0}, "members"),
        ({"priority": 50.5}, "priority"),
        ({"queue": "nowhere"}, "queue"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_bad_specification_is_rejected_with_its_field(pool: Any, spec: dict[str, Any], path: str) -> None:
    """R04: rejected at once, nothing counted, the next good task runs."""
    pool.node("n1")
    pool.submit("bad", **spec)
    pool.submit("good", **DEVICE)
    out = pool.turn()
    assert sorted(pool.types(out)) == ["task.assigned", "task.rejected"]
    rejected = pool.last("task.rejected")
    assert (rejected.task, rejected.path) == ("bad", path)
    assert _parked(pool) == []


def test_the_same_submission_again_is_nothing(pool: Any) -> None:
    """A producer's retry: the id is known and the body is the same, whatever the order of its keys."""
    pool.node("n1")
    first = pool.submit("t1", name="x", **DEVICE)
    pool.turn()
    pool.again(first)
    _raw(pool, json.dumps({**DEVICE, "name": "x", "id": "t1"}).encode())
    assert pool.types(pool.turn()) == []


def test_a_used_id_with_another_body_is_refused(pool: Any) -> None:
    """The task it names is untouched, even after its end."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    pool.submit("t1", priority=60, **DEVICE)
    assert pool.types(pool.turn()) == ["submission.refused"]
    pool.reclaim("t1")
    pool.turn()
    pool.submit("t1", priority=60, **DEVICE)
    assert pool.types(pool.turn()) == ["submission.refused"]
    assert pool.state("t1") == "succeeded"


def test_a_bad_submission_twice_is_rejected_once(pool: Any) -> None:
    """One end per task, also for one that never was."""
    first = pool.submit("bad", members=-2)
    pool.again(first)
    pool.turn()
    pool.again(first)
    pool.turn()
    assert pool.count("task.rejected") == 1


def test_an_id_is_made_when_none_is_given(pool: Any) -> None:
    """Two submissions are two tasks; the same record again is the same task; the agent gets the id."""
    pool.node("n1", devices=4)
    first = pool.submit(None, **DEVICE)
    pool.submit(None, **DEVICE)
    pool.again(first)
    pool.turn()
    assert pool.count("task.assigned") == 2
    assigned = pool.last("task.assigned")
    desired = pool.last("attempt.desired")
    assert desired.specification["id"] == assigned.task


@pytest.mark.parametrize(
    "value",
    [
        b"\xff\xfe\x00garbage",
        b"[" * 100_000,
        b'{"id": "t1", "priority": ' + b"9" * 1_000_000 + b"}",
        b"",
        b"not json",
    ],
)
def test_unreadable_bytes_are_parked_and_the_partition_goes_on(pool: Any, value: bytes) -> None:
    """R45: every poison record is a dead letter with its reason; the good ones on both sides run."""
    pool.node("n1", devices=2)
    pool.submit("a", **DEVICE)
    _raw(pool, value)
    pool.submit("b", **DEVICE)
    pool.turn()
    assert len(_parked(pool)) + pool.count("task.rejected") == 1
    assert (pool.state("a"), pool.state("b")) == ("starting", "starting")


def test_a_key_that_is_not_the_tasks_is_parked(pool: Any) -> None:
    """It would break the order of everything about that task."""
    pool.submit("t1", key="default/t2", **DEVICE)
    pool.turn()
    assert len(_parked(pool)) == 1
    assert "key-mismatch" in _parked(pool)[0]
    assert "default/t1" not in pool.model.tasks


def test_an_unknown_major_is_parked_and_an_unknown_type_passed_over(pool: Any) -> None:
    """Guessing is worse than waiting; what is not ours is counted and left."""
    _raw(pool, b'{"id": "t1"}', headers={"ce_dataschema": b"urn:evenflow:task.submitted:9"})
    _raw(pool, b"{}", headers={"ce_type": b"task.dreamt"})
    pool.turn()
    assert [line.split(":")[0] for line in _parked(pool)] == ["unknown-major"]


def test_a_full_queue_rejects(pool: Any) -> None:
    """waiting_limit counts those that came in the same round."""
    pool.document("queue", "q", {"id": "q", "waiting_limit": 2})
    for index in range(3):
        pool.submit(f"t{index}", queue="q", **DEVICE)
    pool.turn()
    rejected = pool.last("task.rejected")
    assert (rejected.task, rejected.reason.reason) == ("t2", "waiting-limit")


def test_the_default_queue_always_exists(pool: Any) -> None:
    """Without any document."""
    pool.submit("t1")
    pool.turn()
    assert pool.state("t1") == "queued"


def test_an_unsigned_receipt_is_parked(pool: Any) -> None:
    """A receipt without its node's stamp did not come through a gateway."""
    pool.node("n1")
    pool.submit("t1", **DEVICE)
    pool.turn()
    body = agent.AttemptSucceeded(
        tenant="default", task="t1", attempt=1, generation=1, member=0, epoch=1, node="n1", at_ms=1,
        outcome=agent.Outcome(ended_as="succeeded"),
    )  # fmt: skip
    pool.tell(RUNS, body)
    pool.turn()
    assert pool.state("t1") == "starting"
    assert len(_parked(pool)) == 1


def test_a_change_in_the_round_of_its_submission_is_the_same_task(pool: Any) -> None:
    """Found: what was said twice of one waiting task made it two, and both were placed."""
    pool.node("n1")
    pool.node("n2")
    pool.submit("a", **DEVICE)
    for priority in (80, 90):
        pool.tell(TASKS, tasks.TaskChangeRequested(task="a", change={"priority": priority}))
    pool.turn()
    assert pool.count("task.assigned") == 1
    assert pool.count("task.changed") == 2


def test_priority_can_be_changed_and_nothing_else(pool: Any) -> None:
    """The changed task goes first; a refused change names its field."""
    pool.submit("a", **DEVICE)
    pool.submit("b", **DEVICE)
    pool.turn()
    pool.tell(TASKS, tasks.TaskChangeRequested(task="b", change={"priority": 90}))
    pool.tell(TASKS, tasks.TaskChangeRequested(task="a", change={"members": 2}))
    pool.tell(TASKS, tasks.TaskChangeRequested(task="c", change={"priority": 2}))
    pool.turn()
    assert pool.count("task.changed") == 1
    assert pool.count("task.change-refused") == 2
    pool.take_over()
    pool.node("n1")
    pool.turn()
    assert (pool.state("a"), pool.state("b")) == ("queued", "starting")


def test_a_gang_too_large_for_one_record_is_rejected(pool: Any) -> None:
    """Its assignment would not fit into the log: said at the door, not found in a round."""
    pool.submit("g", members=10_000, **DEVICE)
    pool.turn()
    assert pool.last("task.rejected").path == "members"


def test_a_specification_too_large_for_its_row_is_rejected(pool: Any) -> None:
    """State and desired state carry it: it must leave room in a record."""
    _raw(pool, json.dumps({"id": "t1", "env": {"A": "x" * 600_000}}).encode())
    pool.turn()
    assert pool.count("task.rejected") == 1
    assert pool.state("t1") == "rejected"


def test_an_input_that_breaks_its_reducer_is_parked(pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake of ours in one record never stops the pool."""
    from evenflow.placement.deciding import submissions

    honest = submissions.body_digest

    def broken(document: Any) -> str:
        if document["id"] == "evil":
            raise ZeroDivisionError
        return honest(document)

    monkeypatch.setattr(submissions, "body_digest", broken)
    pool.node("n1")
    pool.submit("evil", **DEVICE)
    pool.submit("good", **DEVICE)
    pool.turn()
    assert pool.state("good") == "starting"
    assert "default/evil" not in pool.model.tasks
    assert _parked(pool)[0].startswith("internal: ZeroDivisionError")


def test_a_dead_letter_of_the_largest_record_is_cut_to_fit(pool: Any) -> None:
    """Otherwise the one bad record would fail the round that parks it, for ever."""
    _raw(pool, b"x" * 1_048_000)
    pool.turn()
    letter = next(out for out in pool.said if out.type == "record.parked")
    assert int(letter.body["x-dlq-cut"]) == 1_048_000
