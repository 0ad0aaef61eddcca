"""Tasks as the console shows them: states worked out of decisions and receipts, whatever the order of streams."""

from __future__ import annotations

import itertools
import json

import pytest

from evenflow.console.projection.board import Board
from evenflow.console.projection.why import why
from evenflow.console.settings import ConsoleSettings
from evenflow.core.lifecycle.reasons import Reason
from evenflow.events import streams
from evenflow.events.contracts import agent, checkpoint
from evenflow.events.contracts.placement import AttemptDesired, ReasonDetail, SubmissionRefused, TaskRejected

QUOTA = ReasonDetail(reason=Reason.QUOTA, dimension="devices", needed="1", available="0.3", nodes=0)


def receipt(kind, task="t1", attempt=1, member=0, node="n1", **more):
    return kind(
        tenant="default",
        task=task,
        attempt=attempt,
        generation=attempt,
        member=member,
        epoch=1,
        node=node,
        at_ms=1,
        **more,
    )


def state(board, key="default/t1"):
    return str(board.tasks.find(key).state()[0])


def apply(board, tell, stream, *bodies, **more):
    for body in bodies:
        board.apply(tell(stream, body, **more))


def test_a_task_goes_from_queued_to_succeeded(board, tell, facts):
    """Proves the ordinary life: submitted, queued with its reasons, starting, running, succeeded."""
    apply(board, tell, streams.TASKS, facts.submitted(), key="default/t1")
    assert (state(board), board.tasks.find("default/t1").decided) == ("queued", False)
    apply(board, tell, streams.ASSIGNMENTS, facts.queued("t1", QUOTA))
    assert board.task_row(board.tasks.find("default/t1"))["reasons"][0]["reason"] == "quota"
    apply(board, tell, streams.ASSIGNMENTS, facts.assigned())
    assert state(board) == "starting"
    apply(board, tell, streams.RUNS, receipt(agent.AttemptAccepted), receipt(agent.AttemptStarted, start_ms=500))
    assert state(board) == "running"
    apply(board, tell, streams.ASSIGNMENTS, facts.ended())
    assert state(board) == "succeeded"


def test_the_order_of_streams_against_each_other_changes_nothing(tell, facts):
    """Proves that a rebuilt table equals the old one: each stream in its own order, mixed in every way."""
    parts = {
        "decisions": [
            tell(streams.ASSIGNMENTS, facts.queued("t1", QUOTA)),
            tell(streams.ASSIGNMENTS, facts.assigned()),
            tell(streams.ASSIGNMENTS, facts.requeued()),
            tell(streams.ASSIGNMENTS, facts.assigned("t1", facts.place(node="n2"), attempt=2)),
        ],
        "receipts": [
            tell(streams.RUNS, receipt(agent.AttemptStarted)),
            tell(streams.RUNS, receipt(agent.AttemptProgressed, progress_ms=900, run_ms=900)),
            tell(streams.RUNS, receipt(agent.AttemptStarted, attempt=2, node="n2", resumed_progress_ms=600)),
        ],
        "submissions": [tell(streams.TASKS, facts.submitted(name="né"), key="default/t1")],
    }
    shown = []
    for order in itertools.permutations(parts):
        board = Board(ConsoleSettings(), "test")
        for name in order:
            for record in parts[name]:
                board.apply(record)
        shown.append(json.dumps(board.task_status(board.tasks.find("default/t1")), sort_keys=True))
    assert len(set(shown)) == 1
    assert json.loads(shown[0])["state"] == "running"
    assert json.loads(shown[0])["name"] == "né"


def test_a_gang_runs_when_all_its_members_do(board, tell, facts):
    """Proves that one member that is not ready keeps a gang starting."""
    apply(board, tell, streams.ASSIGNMENTS, facts.assigned("t1", facts.place(0), facts.place(1, node="n2")))
    apply(board, tell, streams.RUNS, receipt(agent.AttemptStarted))
    assert state(board) == "starting"
    apply(board, tell, streams.RUNS, receipt(agent.AttemptStarted, member=1, node="n2"))
    assert state(board) == "running"


def test_a_late_running_never_undoes_an_end(board, tell, facts):
    """Proves that terminal states absorb whatever arrives after them."""
    apply(board, tell, streams.ASSIGNMENTS, facts.assigned(), facts.ended())
    apply(board, tell, streams.RUNS, receipt(agent.AttemptStarted))
    apply(board, tell, streams.ASSIGNMENTS, facts.queued("t1", QUOTA), facts.assigned())
    assert state(board) == "succeeded"


def test_a_wish_to_stop_shows_as_stopping(board, tell, facts):
    """Proves that a cancelled or drained task shows that it is on its way out."""
    apply(board, tell, streams.ASSIGNMENTS, facts.assigned())
    apply(board, tell, streams.RUNS, receipt(agent.AttemptStarted))
    desired = AttemptDesired(
        tenant="default", task="t1", queue="research", pool="main", epoch=1, attempt=1, generation=1, wish="stop",
        place=facts.place(),
    )  # fmt: skip
    apply(board, tell, streams.DISPATCH, desired)
    assert state(board) == "stopping"


def test_a_refused_submission_leaves_its_namesake_alone(board, tell, facts):
    """Proves that a used id with another body changes nothing but the task's course."""
    apply(board, tell, streams.ASSIGNMENTS, facts.assigned())
    refused = SubmissionRefused(tenant="default", task="t1", reason=ReasonDetail(reason=Reason.ID_CONFLICT))
    apply(board, tell, streams.ASSIGNMENTS, refused)
    task = board.tasks.find("default/t1")
    assert state(board) == "starting"
    assert [entry.type for entry in task.course.ordered()] == ["task.assigned", "submission.refused"]


def test_a_rejection_names_its_field(board, tell):
    """Proves that a task rejected at placement's door is listed with path and problem."""
    rejected = TaskRejected(
        tenant="default",
        task="t1",
        reason=ReasonDetail(reason=Reason.INVALID),
        path="resources.cpu",
        problem="is negative",
    )
    apply(board, tell, streams.ASSIGNMENTS, rejected)
    row = board.task_row(board.tasks.find("default/t1"))
    assert (row["state"], row["path"], row["message"]) == ("rejected", "resources.cpu", "is negative")


def test_receipts_of_a_task_nobody_submitted_list_nothing(board, tell):
    """Proves that a made-up receipt puts no task on the list."""
    apply(board, tell, streams.RUNS, receipt(agent.AttemptStarted, task="ghost"))
    assert board.tasks.find("default/ghost") is None
    assert list(board.tasks.newest_first(None)) == []


def test_ended_tasks_beyond_the_bound_are_handed_on(tell, facts):
    """Proves that memory is bounded: the oldest ended tasks are overdue, live ones never are."""
    board = Board(ConsoleSettings(ended_task_count_max=10), "test")
    apply(board, tell, streams.ASSIGNMENTS, facts.queued("live"))
    for number in range(15):
        apply(board, tell, streams.ASSIGNMENTS, facts.assigned(f"t{number}"), facts.ended(f"t{number}"))
    overdue = board.tasks.overdue(100)
    assert [task.task for task in overdue] == [f"t{number}" for number in range(5)]
    for task in overdue:
        board.tasks.forget(task)
    assert board.tasks.overdue(100) == []
    assert sorted(task.task for task in board.tasks.newest_first(None)) == sorted(
        ["live", *(f"t{n}" for n in range(5, 15))]
    )


def test_the_list_is_ordered_by_submission_and_paged_without_gaps(board, tell, facts):
    """Proves that pages put together are the whole list, newest first, each task once."""
    for number in range(25):
        apply(board, tell, streams.ASSIGNMENTS, facts.queued(f"t{number:02}", submitted_ms=1000 + number // 3))
    whole = [task.task for task in board.tasks.newest_first(None)]
    pages, before = [], None
    while True:
        page = list(itertools.islice(board.tasks.newest_first(before), 4))
        if not page:
            break
        pages += [task.task for task in page]
        before = board.tasks.place(page[-1])
    assert pages == whole
    assert len(set(whole)) == 25


def test_an_event_never_stands_before_its_cause(board, tell, facts):
    """Proves that events of one millisecond are listed cause first, whatever their topics' names."""
    submission = tell(streams.TASKS, facts.submitted(), key="default/t1")
    decision = tell(streams.ASSIGNMENTS, facts.assigned(), cause=submission)
    started = tell(streams.RUNS, receipt(agent.AttemptStarted), cause=decision)
    import dataclasses

    same = [dataclasses.replace(record, timestamp_ms=5_000) for record in (submission, decision, started)]
    for record in reversed(same):
        board.apply(record)
    assert [entry.type for entry in board.tasks.find("default/t1").course.ordered()] == [
        "task.submitted", "task.assigned", "attempt.started",
    ]  # fmt: skip


def test_only_the_newest_progress_is_kept(board, tell, facts):
    """Proves that a long task's course stays short."""
    apply(board, tell, streams.ASSIGNMENTS, facts.assigned())
    for step in range(500):
        apply(board, tell, streams.RUNS, receipt(agent.AttemptProgressed, progress_ms=step, run_ms=step))
    task = board.tasks.find("default/t1")
    assert [entry.type for entry in task.course.ordered()] == ["task.assigned", "attempt.progressed"]
    assert task.attempt(1).progress_ms == 499


def test_checkpoints_show_their_newest_state(board, tell, facts):
    """Proves that a damaged checkpoint is not shown as verified any more."""
    common = {
        "tenant": "default", "task": "t1", "checkpoint": 1, "attempt": 1, "generation": 1, "progress_ms": 60_000,
        "manifest": "m", "size_bytes": 5, "site": "east",
    }  # fmt: skip
    apply(board, tell, streams.ASSIGNMENTS, facts.assigned())
    apply(board, tell, streams.CHECKPOINTS, checkpoint.CheckpointVerified(**common))
    assert board.task_status(board.tasks.find("default/t1"))["checkpoints"][0]["state"] == "verified"
    apply(board, tell, streams.CHECKPOINTS, checkpoint.CheckpointDamaged(**common, problem="part 3"))
    assert board.task_status(board.tasks.find("default/t1"))["checkpoints"][0]["state"] == "damaged"


def test_why_names_every_blocker_with_its_arithmetic(board, tell, facts):
    """Proves that all reasons come with what was needed, what was there, and a way out; and how old the view is."""
    cpu = ReasonDetail(reason=Reason.CPU, dimension="cpu", needed="8", available="4", nodes=3)
    apply(board, tell, streams.ASSIGNMENTS, facts.queued("t1", QUOTA, cpu))
    task = board.tasks.find("default/t1")
    found = why(board, task, board.as_of_ms + 250)
    assert [row["reason"] for row in found["reasons"]] == ["quota", "cpu"]
    assert all(row["needed"] and row["available"] and row["way_out"] for row in found["reasons"])
    assert (found["position"], found["view"]["age_ms"]) == (3, 250)
    apply(board, tell, streams.ASSIGNMENTS, facts.assigned())
    found = why(board, task, board.as_of_ms)
    assert [row["reason"] for row in found["waited_for"]] == ["quota", "cpu"]
    assert (found["places"][0]["node"], found["round"]) == ("n1", 7)


@pytest.mark.parametrize("key", ["", "x", "/", "a/", "/b", "a/b/c", "ä/\x00"])
def test_a_submission_under_a_strange_key_harms_nothing(board, tell, facts, key):
    """Proves that what anybody may publish can't break the fold."""
    if key:
        apply(board, tell, streams.TASKS, facts.submitted(), key=key)
    assert list(board.tasks.newest_first(None)) == []
