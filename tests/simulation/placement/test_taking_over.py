"""Take-over on the embedded log: zombies, standbys, what a new leader knows."""

from __future__ import annotations

from typing import Any

from evenflow.events.contracts import agent
from evenflow.events.streams import DISPATCH, ROUNDS


async def test_a_submission_becomes_an_assignment_and_a_desired_state(world: Any) -> None:
    """One process, one task, both records committed."""
    first = await world.process()
    await world.node("n1")
    await world.submit("t1")
    assigned = await world.until("task.assigned", 1)
    assert (assigned[0].task, assigned[0].members[0].node, assigned[0].epoch) == ("t1", "n1", 1)
    desired = await world.facts("attempt.desired", DISPATCH)
    assert [(one.task, one.wish) for one in desired] == [("t1", "run")]
    assert first.service.leading


async def test_a_zombie_is_fenced_and_nothing_of_it_is_committed(world: Any) -> None:
    """Stopped between produce and commit; a standby leads; woken, it meets the fence and ends with 3."""
    first = await world.process()
    await first.leads()
    await world.node("n1")
    second = await world.process()
    first.hold_at("placement.before-round-commit")
    await world.submit("t1")
    await first.held()
    await second.leads()
    assigned = await world.until("task.assigned", 1)
    first.go_on()
    assert await first.exit_code() == 3
    assert [(one.task, one.epoch) for one in await world.facts("task.assigned")] == [("t1", 2)]
    assert assigned[0].epoch == 2
    await world.submit("t2")
    await world.until("task.assigned", 2)
    assert second.service.leading


async def test_a_leader_that_stops_leaves_its_seat_at_once(world: Any) -> None:
    """The standby leads within a moment, with the next epoch, and knows what the first one did."""
    first = await world.process(session_timeout_ms=60_000)
    await first.leads()
    second = await world.process(session_timeout_ms=60_000)
    await world.node("n1")
    await world.submit("t1")
    await world.until("task.assigned", 1)
    await first.service.stop()
    assert await first.exit_code() == 0
    await second.leads()
    leader = second.service.leader
    assert leader is not None
    assert leader.epoch == 2
    assert str(leader.model.tasks["default/t1"].state) == "starting"
    await world.receipt(_succeeded("t1"))
    ended = await world.until("task.ended", 1)
    assert (ended[0].end, ended[0].epoch) == ("succeeded", 2)


async def test_restored_rows_equal_memory(world: Any) -> None:
    """Whatever a leader remembers, the next one reads back exactly."""
    first = await world.process()
    await world.node("n1", devices=2)
    for index in range(40):
        await world.submit(f"t{index}")
    await world.until("task.assigned", 20)
    await world.receipt(_succeeded("t0"))
    await world.until("task.ended", 1)
    leader = first.service.leader
    await first.service.stop()
    second = await world.process()
    await second.leads()
    restored = second.service.leader.model
    assert len(restored.tasks) == 40
    before, after = leader.model, restored
    assert [key for key, _ in before.rows()] == [key for key, _ in after.rows()]
    for key, row in before.rows():
        if key.startswith("task/"):
            assert _same(row, after.row(key)), key


async def test_an_image_bounds_the_restore(world: Any) -> None:
    """A leader writes images; the next one starts from one, and is right even when rows were written meanwhile."""
    first = await world.process(snapshot_period_ms=50, round_period_ms=20)
    await world.node("n1")
    for index in range(20):
        await world.submit(f"t{index}")
    await world.until("task.assigned", 20)
    while "placement.after-image" not in first.reached:
        await world.clock.sleep(0.01)
    await world.submit("late")
    await world.until("task.assigned", 21)
    await first.service.stop()
    assert await world.objects.paths("placement/default/")
    second = await world.process()
    await second.leads()
    assert len(second.service.leader.model.tasks) == 21


async def test_a_round_says_from_which_inputs_it_came(world: Any) -> None:
    """Rounds are recorded with epoch, number, offsets and counts; an idle leader writes none."""
    await world.process()
    await world.node("n1")
    await world.submit("t1")
    await world.until("task.assigned", 1)
    rounds = await world.facts("round.completed", ROUNDS)
    assert rounds[0].round == 1
    assert rounds[0].assigned_count == 0
    assert sum(one.assigned_count for one in rounds) == 1
    assert any(place.startswith("evenflow.tasks.v1/") for one in rounds for place in one.offsets)
    await world.clock.sleep(0.1)
    assert len(await world.facts("round.completed", ROUNDS)) == len(rounds)


def _succeeded(task: str) -> agent.AttemptSucceeded:
    outcome = agent.Outcome(ended_as="succeeded", run_ms=10)
    return agent.AttemptSucceeded(
        tenant="default", task=task, attempt=1, generation=1, member=0, epoch=1, node="n1", at_ms=1, outcome=outcome
    )


def _same(before: Any, after: Any) -> bool:
    return bool(before == after)
