"""The agent dies anywhere and comes back: nothing starts twice, no receipt is lost, none is told twice."""

from __future__ import annotations

import pytest

from evenflow.core.lifecycle.attempt import Wish
from evenflow.core.lifecycle.causes import Cause
from evenflow.events import streams

LIFE = ["accepted", "staged", "started", "checkpointed", "succeeded", "reclaimed"]
SPEC = {"run": {"work_s": 20}, "checkpoint": {"every_s": 15, "parts": 2}}


def _starts(world) -> list[str]:
    """Count real starts on the machine by watching what is put there."""
    begun: list[str] = []
    terms = world.machine.start_terms

    def counted(task: str, member: int):
        begun.append(task)
        return terms(task, member)

    world.machine.start_terms = counted
    return begun


def _stamps(world) -> list[tuple[int, str, str]]:
    """Sequence, id and type of every receipt on the log."""
    return [
        (one.envelope.stamp.sequence, one.envelope.id, one.envelope.type)
        for one in world.seen
        if one.topic == streams.RUNS.name
    ]


def _fail_points(play) -> list[str]:
    reached: list[str] = []

    async def note(name: str) -> None:
        reached.append(name)

    async def main(world):
        await world.run(note)
        await world.desire(world.desired(specification=SPEC))
        await world.at(60)

    play(main)
    return reached


def test_a_kill_at_any_fail_point_loses_and_repeats_nothing(play):
    """Proves, for each of the agent's own fail points, that the life of a member comes out whole with one start."""
    reached = _fail_points(play)
    assert {name.removeprefix("agent.") for name in reached} >= {
        *("before-outbox", "after-outbox", "before-start", "after-start", "before-publish", "after-publish"),
        *("after-acknowledge", "before-object", "after-object"),
    }
    for number in range(len(reached)):

        async def main(world, number=number):
            begun = _starts(world)
            count = 0

            async def die(_: str) -> None:
                nonlocal count
                count += 1
                if count == number + 1:
                    world.kill()
                    await world.clock.sleep(0)  # the dead never come back from here

            await world.run(die)
            await world.desire(world.desired(specification=SPEC))
            first = world.process
            while not first.dead:
                await world.clock.sleep(1)
            await world.clock.sleep(5)
            await world.run()
            await world.at(90)
            assert begun == ["default/t1"], reached[number]

        world = play(main)
        stated = dict.fromkeys((sequence, kind.removeprefix("attempt.")) for sequence, _, kind in _stamps(world))
        kinds = [kind for _, kind in stated]
        half_written = [kind for kind in LIFE if kind != "checkpointed"]  # a save cut in the middle is no save
        assert kinds in (LIFE, half_written), (number, reached[number])
        sequences = [sequence for sequence, _, _ in _stamps(world)]
        assert sorted(sequences) == sequences, reached[number]


def test_a_record_sent_again_is_the_same_to_the_byte(play):
    """Proves that a lost answer leads to identical records: same id, sequence, bytes and signature."""

    async def main(world):
        await world.run()
        await world.at(1)
        world.lose_answers = 3
        await world.desire(world.desired(specification={"run": {"work_s": 5}}))
        await world.at(60)

    world = play(main)
    runs = [one for one in world.seen if one.topic == streams.RUNS.name]
    by_sequence: dict[int, list[tuple[str, bytes, str]]] = {}
    for one in runs:
        row = (one.envelope.id, one.value, one.envelope.stamp.signature)
        by_sequence.setdefault(one.envelope.stamp.sequence, []).append(row)
    assert len(runs) > len(by_sequence) == 5
    assert all(len(set(rows)) == 1 for rows in by_sequence.values())


def test_receipts_made_while_cut_off_arrive_afterwards_in_order(play):
    """Proves the outbox: work goes on without the gateway, and everything is told at the return."""

    async def main(world):
        await world.run()
        await world.desire(world.desired(specification=SPEC))
        await world.at(5)
        world.cut = True
        await world.at(100)
        assert [kind for _, kind in world.receipts()] == LIFE[:3]
        world.cut = False
        await world.at(107)

    assert [kind for _, kind in play(main).receipts()] == LIFE


def test_a_restarted_agent_adopts_what_lives(play):
    """Proves adoption: the work of the first incarnation counts, to the millisecond."""

    async def main(world):
        begun = _starts(world)
        await world.run()
        await world.desire(world.desired(specification={"run": {"work_s": 100}}))
        await world.at(30)
        world.kill()
        await world.at(150)
        await world.run()
        await world.at(160)
        assert begun == ["default/t1"]

    world = play(main)
    outcome = world.body("reclaimed").outcome
    assert (outcome.ended_as, outcome.run_ms) == ("succeeded", 100_000)
    assert len([kind for _, kind in world.receipts() if kind == "started"]) == 1


def test_a_machine_that_boots_anew_loses_its_processes_as_the_node(play):
    """Proves that a reboot is told as the node's loss, which costs the task no failure, and nothing starts again."""

    async def main(world):
        begun = _starts(world)
        await world.run()
        await world.desire(world.desired(specification={"run": {"work_s": 100}}))
        await world.at(30)
        world.kill()
        world.machine.boot_anew()
        await world.at(40)
        await world.run()
        await world.at(60)
        assert begun == ["default/t1"]

    world = play(main)
    failed = world.body("failed").outcome
    assert (failed.cause, failed.ended_as) == (Cause.NODE_LOST, "failed")
    assert [kind for _, kind in world.receipts()][-2:] == ["failed", "reclaimed"]


def test_a_stop_that_was_wished_while_the_agent_was_away_is_carried_out(play):
    """Proves that the whole set is reconciled at the return."""

    async def main(world):
        await world.run()
        await world.desire(world.desired(specification={"run": {"work_s": 100}}))
        await world.at(30)
        world.kill()
        await world.desire(world.desired(wish=Wish.RECLAIM, cause=Cause.NODE_LOST))
        await world.at(50)
        await world.run()
        await world.at(60)

    world = play(main)
    assert [kind for _, kind in world.receipts()] == ["accepted", "staged", "started", "reclaimed"]
    assert world.body("reclaimed").outcome.ended_as == "stopped"


def test_what_nobody_desires_any_more_stops(play):
    """Proves that a tombstone ends what runs, and that a reclaimed member is forgotten with it."""

    async def main(world):
        await world.run()
        await world.desire(world.desired(specification={"run": {"work_s": 100}}))
        await world.at(30)
        await world.undesire()
        await world.at(60)
        assert world.disk.members() == []
        assert world.machine.processes() == {}

    assert [kind for _, kind in play(main).receipts()][-2:] == ["stopped", "reclaimed"]


def test_lower_attempts_and_epochs_are_refused_once(play):
    """Proves that wishes which would go back are refused with their reason, and only told once."""

    async def main(world):
        await world.run()
        await world.desire(world.desired(attempt=2, epoch=5))
        await world.at(5)
        await world.desire(world.desired(attempt=1, epoch=5), world.desired(attempt=2, epoch=4))
        await world.at(10)
        await world.desire(world.desired("t2", device=1))
        await world.at(20)

    world = play(main)
    refused = [(body.attempt, body.reason) for _, kind, body in world.said() if kind == "attempt.refused"]
    assert sorted(refused) == [
        (1, "attempt 1 is below 2, which was applied here"),
        (2, "epoch 4 is below 5, which was applied here"),
    ]
    assert [kind for _, kind in world.receipts("t2")] == ["accepted", "staged", "started"]


def test_a_wish_to_end_what_never_was_here_is_answered_and_never_started(play):
    """Proves that capacity booked for a command that never arrived returns, and that the attempt stays closed."""

    async def main(world):
        await world.run()
        await world.desire(world.desired(wish=Wish.STOP, cause=Cause.CANCELLED))
        await world.at(5)
        await world.desire(world.desired(wish=Wish.RUN))
        await world.at(10)

    assert [kind for _, kind in play(main).receipts()] == ["stopped", "reclaimed"]


def test_a_newer_attempt_waits_until_the_older_one_is_gone(play):
    """Proves that one slot never holds two living attempts."""

    async def main(world):
        await world.run()
        world.machine.stop_times_ms["t1"] = 5_000
        await world.desire(world.desired())
        await world.at(10)
        await world.desire(world.desired(attempt=2, device=1))
        await world.at(30)

    world = play(main)
    rows = [(at, body.attempt, kind) for at, kind, body in world.said()]
    gone = next(at for at, attempt, kind in rows if (attempt, kind) == (1, "attempt.reclaimed"))
    begun = next(at for at, attempt, kind in rows if (attempt, kind) == (2, "attempt.accepted"))
    assert begun >= gone == pytest.approx(15, abs=0.1)


def test_a_revoked_node_ends_everything_and_its_agent(play):
    """Proves that a node taken out for good runs nothing and says nothing any more."""
    from evenflow.core.errors import Ended
    from evenflow.core.lifecycle.node import Administration, Health, Reach
    from evenflow.events.contracts.inventory import NodeChanged
    from evenflow.platform.broker.codec import Fact

    async def main(world):
        agent = await world.run()
        await world.desire(world.desired())
        await world.at(20)
        status = NodeChanged(
            node="n1", revision=2, document={}, session="s", reach=Reach.OK, administration=Administration.OPEN,
            health=Health.OK, revoked=True,
        )  # fmt: skip
        await world.outlet.publish(Fact(streams.NODES, status, id="revoked"))
        with pytest.raises(Ended, match="revoked"):
            await agent.wait()
        assert world.machine.processes() == {}

    play(main)


def test_contact_that_comes_back_is_noticed_at_once_by_what_hangs(play):
    """Proves that a poll which hangs since the cut is made anew with the first heartbeat that gets through."""

    async def main(world):
        await world.run()
        await world.desire(world.desired(specification={"run": {"work_s": 300}}))
        await world.at(50)
        world.hang = True
        await world.at(90)
        world.hang = False
        await world.desire(world.desired(wish=Wish.RECLAIM, cause=Cause.NODE_LOST))
        await world.at(200)

    world = play(main)
    reclaimed = next(at for at, kind in world.receipts() if kind == "reclaimed")
    assert 90 < reclaimed < 100
    beats = [at for at, kind, _ in world.said(streams.TELEMETRY) if kind == "node.heartbeat"]
    assert min(at for at in beats if at > 90) < 93.6
