"""Who waits, in which order, why, and how often that is said."""

from __future__ import annotations

from typing import Any

DEVICE = {"resources": {"devices": {"count": 1}}}


def _said(pool: Any, task: str) -> list[list[str]]:
    """The reasons said of a task, one list per task.queued."""
    return [
        [str(r.reason) for r in out.body.reasons]
        for out in pool.said
        if out.type == "task.queued" and out.body.task == task
    ]


def test_a_waiting_task_says_why_once(pool: Any) -> None:
    """The same blockers again are not said again, however many rounds go by."""
    pool.node("n1")
    pool.submit("a", **DEVICE)
    pool.submit("b", **DEVICE)
    pool.turn()
    for index in range(5):
        pool.submit(f"more{index}", **DEVICE)
        pool.after(2)
    assert _said(pool, "b") == [["device-count"]]


def test_changed_reasons_are_said_at_most_once_a_period(make_pool: Any) -> None:
    """quota, then device-count, then quota within a second: the last is said when the period is over."""
    pool = make_pool(reasons_period_ms=1_000)
    pool.document("queue", "q", {"id": "q", "limit": {"devices": "0.5"}})
    pool.document("queue", "r", {"id": "r"})
    pool.node("n1")
    pool.submit("other", queue="r", **DEVICE)
    pool.submit("a", queue="q", resources={"devices": {"share": "0.6"}})
    pool.turn()
    assert _said(pool, "a") == [["quota"]]
    pool.document("queue", "q", {"id": "q"})
    pool.turn()
    assert _said(pool, "a") == [["quota"]]
    pool.after(1.1)
    assert _said(pool, "a") == [["quota"], ["device-count"]]


def test_what_no_node_could_hold_is_alerted_once_and_cleared(pool: Any) -> None:
    """It stays queued, since nodes may come; the alert goes when it is placed."""
    pool.submit("t1", **DEVICE)
    pool.turn()
    assert pool.last("alert.raised").name == "task.unsatisfiable"
    pool.after(5)
    assert pool.count("alert.raised") == 1
    pool.node("n1")
    pool.turn()
    assert pool.state("t1") == "starting"
    assert pool.count("alert.cleared") == 1


def test_quota_counts_the_request_and_every_admission_of_the_round(pool: Any) -> None:
    """R01 and R23: met exactly is allowed, a thousandth more is not; two in one round do not both slip in."""
    pool.document("queue", "q", {"id": "q", "limit": {"devices": "0.3"}})
    pool.node("n1")
    for name, share in (("t1", "0.1"), ("t2", "0.2"), ("t3", "0.001")):
        pool.submit(name, queue="q", resources={"devices": {"share": share}})
    pool.turn()
    assert [pool.state(name) for name in ("t1", "t2", "t3")] == ["starting", "starting", "queued"]
    assert pool.used_milli("q") == 300
    assert _said(pool, "t3") == [["quota"]]


def test_gangs_that_do_not_fit_together_never_hold_half(pool: Any) -> None:
    """R09: one of two has everything, the other nothing; it starts when the first is reclaimed."""
    for index in range(4):
        pool.node(f"n{index}")
    pool.submit("g1", members=4, **DEVICE)
    pool.submit("g2", members=4, **DEVICE)
    pool.turn()
    assert (pool.state("g1"), pool.state("g2")) == ("starting", "queued")
    for member in range(4):
        pool.reclaim("g1", member=member)
        pool.turn()
        assert pool.state("g2") == ("starting" if member == 3 else "queued")
    assert pool.used_milli() == 4000


def test_a_class_that_does_not_fit_is_not_asked_again_until_something_changes(pool: Any) -> None:
    """With very many alike waiting, a round asks the engine about a few."""
    asked = []
    honest = pool.rounds._engine

    def counting(snapshot: Any, queues: Any, demands: Any, policy: Any, now_ms: int) -> Any:
        asked.append(len(demands))
        return honest(snapshot, queues, demands, policy, now_ms)

    pool.rounds._engine = counting
    pool.node("n1")
    for index in range(300):
        pool.submit(f"t{index}", **DEVICE)
    pool.turn()
    asked.clear()
    for index in range(20):
        pool.submit(f"late{index}", **DEVICE)
        pool.turn()
    assert sum(asked) == 0
    pool.reclaim("t0")
    pool.turn()
    assert pool.state("t1") == "starting"
    assert sum(asked) <= 20


def test_a_cut_selection_keeps_the_order(pool: Any) -> None:
    """Ten of high priority come before one of low, even where only a few of a class are tried at a time."""
    pool.submit("low", priority=10, **DEVICE)
    for index in range(10):
        pool.submit(f"high{index}", priority=90, **DEVICE)
    pool.turn()
    pool.node("n1", devices=10)
    pool.turn()
    assert pool.state("low") == "queued"
    assert pool.count("task.assigned") == 10


def test_every_waiting_task_is_told_its_reason_however_many(make_pool: Any) -> None:
    """Explaining is bounded per round and goes on until all are told."""
    pool = make_pool(reasons_per_round_max=10)
    for index in range(95):
        pool.submit(f"t{index}", **DEVICE)
    pool.turn()
    for _ in range(12):
        pool.after(0.05)
    assert pool.count("task.queued") == 95
    assert all(out.body.reasons for out in pool.said if out.type == "task.queued")


def test_tasks_that_must_be_apart_never_share_a_node(pool: Any) -> None:
    """Both in one round, either way round, and by label."""
    pool.node("n1", devices=8)
    pool.node("n2", devices=8)
    pool.submit("a", where={"apart_from": ["b"]}, **DEVICE)
    pool.submit("b", **DEVICE)
    pool.submit("c", where={"not_with": {"noisy": "yes"}}, **DEVICE)
    pool.submit("d", labels={"noisy": "yes"}, **DEVICE)
    pool.turn()
    assert pool.node_of("a", 1, 0) != pool.node_of("b", 1, 0)
    assert pool.node_of("c", 1, 0) != pool.node_of("d", 1, 0)


def test_a_reason_names_the_closed_node_not_silence(pool: Any) -> None:
    """A requeued task is explained again even if its blockers are those of before."""
    pool.node("n1")
    pool.submit("a", **DEVICE)
    pool.turn()
    pool.node("n1", reach="lost")
    out = pool.turn()
    assert pool.types(out) == ["task.requeued", "task.queued"]


def test_ended_tasks_are_forgotten_after_their_time_only(make_pool: Any) -> None:
    """A used id is remembered for the retention, then it is free again."""
    pool = make_pool(task_id_retention_ms=60_000)
    pool.submit("t1", **DEVICE)
    pool.cancel("t1")
    pool.turn()
    pool.after(59)
    pool.submit("t1", priority=1, **DEVICE)
    assert pool.types(pool.turn()) == ["submission.refused"]
    pool.after(2)
    assert "default/t1" not in pool.model.tasks
    pool.submit("t1", priority=1, **DEVICE)
    pool.turn()
    assert pool.state("t1") == "queued"
    pool.take_over()


def test_the_number_of_remembered_ends_is_bounded(make_pool: Any) -> None:
    """The oldest go first."""
    pool = make_pool(ended_tasks_max=3)
    for index in range(6):
        pool.submit(f"t{index}", **DEVICE)
        pool.cancel(f"t{index}")
        pool.after(1)
    pool.turn()
    assert sorted(pool.model.tasks) == ["default/t3", "default/t4", "default/t5"]


def test_a_demand_that_breaks_the_engine_holds_nobody_up(pool: Any) -> None:
    """It goes on waiting; the others are placed in the same round."""
    honest = pool.rounds._engine

    def faulty(snapshot: Any, queues: Any, demands: Any, policy: Any, now_ms: int) -> Any:
        if any(demand.task.id == "evil" for demand in demands):
            raise ZeroDivisionError
        return honest(snapshot, queues, demands, policy, now_ms)

    pool.rounds._engine = faulty
    pool.node("n1")
    pool.submit("evil", priority=90, **DEVICE)
    pool.submit("good", **DEVICE)
    pool.turn()
    assert (pool.state("evil"), pool.state("good")) == ("queued", "starting")
    assert _said(pool, "evil") == [["invalid"]]


def test_an_unsatisfiable_task_is_cleared_when_a_node_could_hold_it(pool: Any) -> None:
    """The reason may stay the same; the alert goes all the same."""
    pool.submit("t1", **DEVICE)
    pool.turn()
    assert pool.count("alert.raised") == 1
    pool.node("n1", administration="cordoned")
    pool.after(2)
    assert pool.state("t1") == "queued"
    assert pool.count("alert.cleared") == 1


def test_a_strict_queues_head_is_never_passed(pool: Any) -> None:
    """What stands behind a refused head is not tried without it, rounds later neither."""
    seen = []
    honest = pool.rounds._engine

    def watching(snapshot: Any, queues: Any, demands: Any, policy: Any, now_ms: int) -> Any:
        seen.append([demand.task.id for demand in demands])
        return honest(snapshot, queues, demands, policy, now_ms)

    pool.rounds._engine = watching
    pool.document("queue", "s", {"id": "s", "order": "strict"})
    pool.node("n1")
    pool.submit("head", queue="s", resources={"devices": {"count": 8}})
    pool.turn()
    pool.submit("behind", queue="s", resources={"devices": {"count": 4}})
    pool.turn()
    pool.after(1)
    pool.submit("third", queue="s", resources={"devices": {"count": 2}})
    pool.turn()
    assert all(names[0] == "head" for names in seen)
    assert len(seen) >= 3
