"""What a simulated member does, when, and what the agent says of it."""

from __future__ import annotations

import pytest

from evenflow.agent.executors.machine import StartFault
from evenflow.agent.executors.simulated import SimulatedExecutor
from evenflow.core.lifecycle.attempt import Wish
from evenflow.core.lifecycle.causes import Cause
from evenflow.events import streams


def test_a_member_starts_in_half_a_second_works_and_frees_its_place(play):
    """Proves the ordinary life: each receipt at its moment, figures exact to the millisecond."""

    async def main(world):
        await world.run()
        await world.desire(world.desired(specification={"run": {"work_s": 60}}))
        await world.at(100)

    world = play(main)
    assert [kind for _, kind in world.receipts()] == ["accepted", "staged", "started", "succeeded", "reclaimed"]
    times = {kind: at for at, kind in world.receipts()}
    assert times["started"] - times["staged"] == pytest.approx(0.5)
    assert times["succeeded"] - times["started"] == pytest.approx(60)
    assert times["reclaimed"] - times["succeeded"] == pytest.approx(0.5)
    outcome = world.body("reclaimed").outcome
    assert (outcome.ended_as, outcome.run_ms, outcome.start_ms, outcome.stop_ms) == ("succeeded", 60_000, 500, 500)
    assert world.log.lines == []


def _figures(world, task="t1"):
    outcome = world.body("reclaimed", task).outcome
    return outcome.ended_as, outcome.cause, outcome.run_ms, outcome.progress_ms


def test_a_member_that_fails_says_its_exit_code_and_when(play):
    """Proves fail_at_s by the attempt's own run time."""

    async def main(world):
        await world.run()
        await world.desire(world.desired(specification={"run": {"work_s": 60, "fail_at_s": 30, "exit_code": 9}}))
        await world.at(60)

    world = play(main)
    assert _figures(world) == ("failed", Cause.USER_ERROR, 30_000, 30_000)
    assert world.body("failed").outcome.exit_code == 9


def test_a_member_that_outgrows_its_memory_is_killed_for_it(play):
    """Proves the memory peak against what the member holds."""
    run = {"work_s": 60, "memory": {"at_s": 20, "bytes": "2GiB"}}

    async def main(world):
        await world.run()
        await world.desire(world.desired(specification={"run": run}))
        await world.at(60)

    assert _figures(play(main)) == ("failed", Cause.OUT_OF_MEMORY, 20_000, 20_000)


def test_work_runs_at_the_speed_of_the_device(play):
    """Proves that a slower model takes longer for the same work: progress is work, run time is time."""

    async def main(world):
        await world.run()
        world.machine.speed_ppm = lambda devices, workload: 500_000
        await world.desire(world.desired(specification={"run": {"work_s": 60, "progress_every_s": 40}}))
        await world.at(200)

    world = play(main)
    assert _figures(world) == ("succeeded", None, 120_000, 60_000)
    ticks = [(body.run_ms, body.progress_ms) for _, kind, body in world.said() if kind == "attempt.progressed"]
    assert ticks == [(40_000, 20_000), (80_000, 40_000)]


def test_a_start_that_fails_is_told_apart_from_work_that_fails(play):
    """Proves start faults: so many times, then starts are ordinary again."""

    async def main(world):
        await world.run()
        world.machine.start_faults.append(StartFault(fails_after_ms=1_000, left=1))
        await world.desire(world.desired())
        await world.at(5)
        await world.undesire()
        await world.desire(world.desired(attempt=2))
        await world.at(80)

    world = play(main)
    failed = world.body("failed").outcome
    assert (failed.cause, failed.run_ms) == (Cause.START_FAILED, 0)
    kinds = [kind for _, kind in world.receipts()]
    assert kinds == [
        *("accepted", "staged", "failed", "reclaimed"),
        *("accepted", "staged", "started", "succeeded", "reclaimed"),
    ]


def test_a_member_never_ready_ends_at_its_ready_timeout(play):
    """Proves that waiting for readiness is bounded by the task's own time."""

    async def main(world):
        await world.run()
        spec = {"run": {"work_s": 10, "ready_after_s": "never"}, "ready_timeout_s": 20}
        await world.desire(world.desired(specification=spec))
        await world.at(60)

    world = play(main)
    assert world.body("failed").outcome.cause is Cause.READY_TIMEOUT
    times = {kind: at for at, kind in world.receipts()}
    assert times["failed"] - times["staged"] == pytest.approx(20.5, abs=0.6)


def test_a_hanging_start_is_given_up(play):
    """Proves that a start that hangs is the node's failure, not the task's."""

    async def main(world):
        world.settings = world.settings.model_copy(update={"start_timeout_ms": 30_000})
        await world.run()
        world.machine.start_faults.append(StartFault(task="t1", hangs=True))
        await world.desire(world.desired())
        await world.at(60)

    assert play(main).body("failed").outcome.cause is Cause.START_FAILED


def test_a_stop_takes_its_time_but_not_more_than_the_grace(play):
    """Proves stop durations, and that run time ends when the stop was wished."""

    async def main(world):
        await world.run()
        world.machine.stop_times_ms["t1"] = 20_000
        await world.desire(world.desired())
        await world.at(10)
        await world.desire(world.desired(wish=Wish.STOP, stop_grace_ms=4_000, cause=Cause.CANCELLED))
        await world.at(60)

    world = play(main)
    times = {kind: at for at, kind in world.receipts()}
    assert times["stopped"] == pytest.approx(14, abs=0.01)
    assert times["reclaimed"] == pytest.approx(14, abs=0.01)
    outcome = world.body("reclaimed").outcome
    assert (outcome.ended_as, outcome.cause, outcome.stop_ms) == ("stopped", Cause.CANCELLED, 4_000)
    assert outcome.run_ms == pytest.approx(9_500, abs=20)


def test_a_slow_natural_end_holds_the_place_until_it_is_empty(play):
    """Proves that capacity returns at proven free, later than success."""

    async def main(world):
        await world.run()
        world.machine.stop_times_ms["default/t1"] = 20_000
        await world.desire(world.desired())
        await world.at(100)

    outcome = play(main).body("reclaimed").outcome
    assert (outcome.ended_as, outcome.stop_ms) == ("succeeded", 20_000)


def test_a_stopped_member_that_can_resume_finishes_when_the_rest_fits(play):
    """Proves that work nearly done is not thrown away: success within the grace beats the stop."""

    async def main(world):
        await world.run()
        spec = {"run": {"work_s": 60}, "checkpoint": {"every_s": 600}}
        await world.desire(world.desired(specification=spec))
        await world.at(55)
        await world.desire(world.desired(wish=Wish.STOP, cause=Cause.DRAINED))
        await world.at(100)

    assert [kind for _, kind in play(main).receipts()][-2:] == ["succeeded", "reclaimed"]


def test_a_stopped_member_saves_once_when_a_save_fits(play):
    """Proves the last save: progress at the stop is kept, and the manifest is complete."""

    async def main(world):
        await world.run()
        spec = {"run": {"work_s": 600}, "checkpoint": {"every_s": 500, "cost_s": 2, "size": "4GB", "parts": 4}}
        await world.desire(world.desired(specification=spec))
        await world.at(100)
        await world.desire(world.desired(wish=Wish.STOP, cause=Cause.PREEMPTED))
        await world.at(200)
        world.paths = await world.objects.paths("checkpoints/default/t1/")

    world = play(main)
    assert [kind for _, kind in world.receipts()][-3:] == ["checkpointed", "stopped", "reclaimed"]
    saved = world.body("checkpointed")
    assert saved.progress_ms == pytest.approx(99_500, abs=20)
    assert (saved.checkpoint, saved.size_bytes, saved.site) == (1, 4 * 10**9, "east")
    assert world.body("stopped").outcome.progress_ms == saved.progress_ms
    names = [path.rpartition("/")[2] for path in world.paths]
    assert names == ["manifest.json", "part-1", "part-2", "part-3", "part-4"]


def test_a_cancelled_member_does_not_save(play):
    """Proves that nothing is kept of work that nobody wants any more."""

    async def main(world):
        await world.run()
        spec = {"run": {"work_s": 600}, "checkpoint": {"every_s": 500}}
        await world.desire(world.desired(specification=spec))
        await world.at(100)
        await world.desire(world.desired(wish=Wish.STOP, cause=Cause.CANCELLED))
        await world.at(200)

    assert "checkpointed" not in [kind for _, kind in play(main).receipts()]


def test_a_broken_device_ends_what_runs_on_it_and_the_heartbeat_says_so_at_once(play):
    """Proves that the cause is the device's and that inventory need not wait for the next heartbeat."""

    async def main(world):
        await world.run()
        await world.desire(world.desired())
        await world.at(20.5)
        world.machine.break_device(0)
        await world.at(22)

    world = play(main)
    assert _figures(world)[:2] == ("failed", Cause.DEVICE_BROKEN)
    states = {at: list(body.device_states) for at, _, body in world.said(streams.TELEMETRY)[1:]}
    assert states[20.5] == ["broken", "ok"]


def test_a_leftover_holds_the_device_until_it_is_gone(play):
    """Proves that free means proven free: first a receipt with leftover, later one without, and no new work between."""

    async def main(world):
        await world.run()
        await world.desire(world.desired(specification={"run": {"work_s": 10}}))
        await world.at(5)
        world.machine.leave_leftover(0)
        await world.at(20)
        world.states = world.machine.device_states()
        await world.desire(world.desired("t2"))
        await world.at(30)
        world.machine.repair_device(0)
        await world.at(40)

    world = play(main)
    reclaimed = [body.leftover for _, kind, body in world.said() if kind == "attempt.reclaimed" and body.task == "t1"]
    assert reclaimed == [True, False]
    assert world.states[0] == "held"
    assert [kind for _, kind in world.receipts("t2")] == ["refused", "reclaimed"]
    assert "device 0 is held" in world.body("refused", "t2").reason


def test_raw_readings_replace_what_the_agent_works_out(play):
    """Proves that telemetry set from outside goes up as it is, and that silent sensors still beat."""

    async def main(world):
        await world.run()
        await world.at(11)
        world.machine.raw_readings = {"cpu_used_milli": 63_000}
        await world.at(21)
        world.machine.silent = True
        await world.at(31)

    beats = [body for _, kind, body in play(main).said(streams.TELEMETRY) if kind == "node.heartbeat"]
    assert [beat.cpu_used_milli for beat in beats] == [0, 63_000, 0]
    assert [len(beat.device_states) for beat in beats] == [2, 2, 0]


def test_a_start_that_fails_says_how_long_it_was_tried(play):
    """R64: the line of a failed start has its time, whether it failed by itself or hung until it was given up."""

    async def main(world):
        world.machine.start_faults.append(StartFault(task="t1", fails_after_ms=30_000))
        world.machine.start_faults.append(StartFault(task="t2", hangs=True))
        world.settings = world.settings.model_copy(update={"start_timeout_ms": 40_000})
        await world.run()
        await world.desire(world.desired(milli=500))
        await world.at(100)
        await world.desire(world.desired("t2", milli=500))
        await world.at(200)

    world = play(main)
    outcome = world.body("failed").outcome
    assert (outcome.cause, outcome.start_ms) == (Cause.START_FAILED, 30_000)
    assert world.body("failed", "t2").outcome.start_ms == pytest.approx(40_500, abs=10)


def test_a_cancelled_start_says_how_long_it_was_tried(play):
    """Proves the figure for a start that was stopped in the middle."""

    async def main(world):
        world.machine.start_faults.append(StartFault(task="t1", takes_ms=30_000))
        await world.run()
        await world.desire(world.desired())
        await world.at(10)
        await world.desire(world.desired(wish=Wish.STOP, cause=Cause.CANCELLED))
        await world.at(60)

    outcome = play(main).body("reclaimed").outcome
    assert outcome.run_ms == 0
    assert 9_000 < outcome.start_ms < 10_600


def test_a_dataset_that_is_not_here_is_missed_before_the_start(play):
    """R61: the catalogue is told, nothing starts, and the end is no fault of the task."""

    async def main(world):
        world.machine._has_copy = lambda dataset, site: dataset != "d"
        await world.run()
        run = {"run": {"work_s": 60}, "data": [{"dataset": "d"}]}
        await world.desire(world.desired(specification=run))
        await world.at(30)

    world = play(main)
    assert [kind for _, kind in world.receipts()] == ["accepted", "failed", "reclaimed"]
    assert world.body("failed").outcome.cause is Cause.LINK_LOST
    failed = next(body for _, kind, body in world.said(streams.TRANSFERS) if kind == "transfer.failed")
    assert (failed.missing, failed.from_site, failed.counted_bytes) == (True, "east", 0)


def test_a_member_is_told_how_many_there_are(play):
    """Peers name every member of the gang, itself included."""
    told = []

    async def main(world):
        agent = await world.run()
        del agent
        start = SimulatedExecutor.start

        async def noted(self, launch):
            told.append(launch.members)
            return await start(self, launch)

        SimulatedExecutor.start = noted
        try:
            await world.desire(world.desired(milli=500, peers=("n1", "n2", "n3")))
            await world.desire(world.desired("t2", milli=500))
            await world.at(5)
        finally:
            SimulatedExecutor.start = start

    play(main)
    assert sorted(told) == [1, 3]
