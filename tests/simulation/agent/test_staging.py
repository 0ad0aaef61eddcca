"""What is brought before a start: data over links, and the newest checkpoint that proves whole."""

from __future__ import annotations

import pytest

from evenflow.agent.ports import Sample, TransferBroken
from evenflow.core.checkpointing.manifest import Manifest, folder, part_of, write_manifest
from evenflow.core.lifecycle.attempt import Wish
from evenflow.core.lifecycle.causes import Cause
from evenflow.events import streams
from evenflow.events.contracts.checkpoint import ResumePoint
from evenflow.events.contracts.inventory import NodeProbeRequested, TaskCheckpointRequested
from evenflow.events.contracts.placement import Staging
from evenflow.platform.broker.codec import Fact

GB = 10**9


def _data(*, keep_copy: bool = True, reads: int = 1, size: int = GB) -> Staging:
    return Staging(dataset="d", from_site="west", bytes=size, reads=reads, keep_copy=keep_copy)


async def _checkpoint(world, number: int, progress_ms: int, *, damage: int | None = None) -> ResumePoint:
    place = folder("default", "t1", 1, number)
    data = [f"part {index} of {number}".encode() for index in range(2)]
    parts = tuple(part_of(f"part-{index + 1}", one) for index, one in enumerate(data))
    for index, one in enumerate(data):
        await world.objects.put(f"{place}part-{index + 1}", b"other bytes" if index == damage else one)
    manifest = Manifest("default", "t1", 1, 1, number, progress_ms, 2 * GB, parts)
    await world.objects.put(f"{place}manifest.json", write_manifest(manifest))
    return ResumePoint(
        checkpoint=number, generation=1, progress_ms=progress_ms, manifest=f"{place}manifest.json",
        size_bytes=2 * GB, site="east",
    )  # fmt: skip


def test_a_dataset_is_brought_once_when_a_copy_is_kept(play):
    """Proves counted bytes, duration at the link's speed, and that starting waits for the data."""

    async def main(world):
        await world.run()
        await world.desire(world.desired(staging=(_data(reads=3),), specification={"run": {"work_s": 5}}))
        await world.at(20)

    world = play(main)
    told = world.said(streams.TRANSFERS)
    assert [kind for _, kind, _ in told] == ["transfer.planned", "transfer.finished"]
    assert (told[1][2].counted_bytes, told[1][2].took_ms, told[1][2].keep_copy) == (GB, 800, True)
    staged = world.body("staged")
    assert (staged.bytes, staged.took_ms) == (GB, 800)


def test_every_read_crosses_when_no_copy_is_kept(play):
    """Proves that reads are counted one by one without a copy."""

    async def main(world):
        await world.run()
        await world.desire(world.desired(staging=(_data(keep_copy=False, reads=3),)))
        await world.at(20)

    assert play(main).said(streams.TRANSFERS)[1][2].counted_bytes == 3 * GB


def test_data_of_the_own_site_is_not_moved(play):
    """Proves that local data costs nothing and is not told as a transfer."""

    async def main(world):
        await world.run()
        await world.desire(world.desired(staging=(_data().model_copy(update={"from_site": "east"}),)))
        await world.at(20)

    world = play(main)
    assert world.said(streams.TRANSFERS) == []
    assert world.body("staged").bytes == 0


def test_a_broken_link_is_tried_again_where_it_broke(play):
    """Proves that bytes which arrived are not paid twice, and that a link which stays broken is the link's fault."""

    def carry(breaks: int):
        left = [breaks]

        async def over(what, from_site, to_site, size, counted):
            if left[0]:
                left[0] -= 1
                counted(size // 2)
                raise TransferBroken("the link is down")
            counted(size)

        return over

    def story(breaks: int):
        async def main(world):
            world.machine._carry = carry(breaks)
            await world.run()
            await world.desire(world.desired(staging=(_data(),)))
            await world.at(30)

        return main

    told = play(story(1)).said(streams.TRANSFERS)
    assert (told[-1][1], told[-1][2].counted_bytes) == ("transfer.finished", GB)
    world = play(story(9))
    told = world.said(streams.TRANSFERS)
    arrived = GB // 2 + GB // 4 + GB // 8
    assert (told[-1][1], told[-1][2].counted_bytes, told[-1][2].missing) == ("transfer.failed", arrived, False)
    assert world.body("failed").outcome.cause is Cause.LINK_LOST


def test_a_copy_that_is_not_there_is_said_at_once(play):
    """Proves that a missing source is not tried again and costs the task no failure."""

    async def gone(what, from_site, to_site, size, counted):
        raise TransferBroken("west has no such dataset", missing=True)

    async def main(world):
        world.machine._carry = gone
        await world.run()
        await world.desire(world.desired(staging=(_data(),)))
        await world.at(30)

    world = play(main)
    assert [body.missing for _, kind, body in world.said(streams.TRANSFERS) if kind == "transfer.failed"] == [True]
    assert world.body("failed").outcome.cause is Cause.LINK_LOST


def test_a_stop_during_staging_tells_what_came_so_far(play):
    """Proves that a transfer given up is told with its counted bytes, and that nothing ever started."""

    async def main(world):
        await world.run()
        await world.desire(world.desired(staging=(_data(size=100 * GB),)))
        await world.at(50)
        await world.desire(world.desired(wish=Wish.STOP, cause=Cause.CANCELLED))
        await world.at(60)
        assert world.machine.processes() == {}

    world = play(main)
    failed = world.said(streams.TRANSFERS)[-1]
    assert (failed[1], failed[2].counted_bytes) == ("transfer.failed", 50 * GB)
    assert [kind for _, kind in world.receipts()] == ["accepted", "stopped", "reclaimed"]


def test_the_newest_whole_checkpoint_is_resumed_and_damaged_ones_are_named(play):
    """Proves digests are looked at again: the newest is passed over, the next is taken, and both facts are told."""

    async def main(world):
        older = await _checkpoint(world, 1, 60_000)
        newer = await _checkpoint(world, 2, 120_000, damage=1)
        await world.run()
        spec = {"run": {"work_s": 100}, "checkpoint": {"every_s": 1000}}
        await world.desire(world.desired(attempt=2, resume=(newer, older), specification=spec))
        await world.at(60)

    world = play(main)
    started = world.body("started")
    assert (started.resumed_progress_ms, started.resumed_generation, started.resumed_checkpoint) == (60_000, 1, 1)
    assert started.damaged == ("checkpoints/default/t1/g000001/c000002/manifest.json",)
    assert world.body("succeeded").outcome.run_ms == 40_000


def test_without_any_whole_checkpoint_work_begins_anew(play):
    """Proves that damage never fails a task."""

    async def main(world):
        only = await _checkpoint(world, 1, 60_000, damage=0)
        await world.run()
        await world.desire(world.desired(attempt=2, resume=(only,), specification={"run": {"work_s": 70}}))
        await world.at(90)

    world = play(main)
    assert world.body("started").resumed_progress_ms == 0
    assert len(world.body("started").damaged) == 1
    assert world.body("succeeded").outcome.run_ms == 70_000


def test_a_store_that_is_away_is_not_taken_for_damage(play):
    """Proves that progress is not thrown away because the store could not be reached."""

    async def main(world):
        only = await _checkpoint(world, 1, 60_000)
        world.objects.faults.down()
        await world.run()
        await world.desire(world.desired(attempt=2, resume=(only,), specification={"run": {"work_s": 70}}))
        await world.at(90)

    world = play(main)
    assert world.body("failed").outcome.cause is Cause.LINK_LOST


def test_a_checkpoint_is_asked_for_and_written_now(play):
    """Proves the one-off request, that it is served once, and that numbers go on above those resumed from."""

    async def main(world):
        resume = await _checkpoint(world, 7, 10_000)
        await world.run()
        spec = {"run": {"work_s": 300}, "checkpoint": {"every_s": 200, "size": "1GB"}}
        await world.desire(world.desired(attempt=2, resume=(resume,), specification=spec))
        await world.at(50)
        ask = TaskCheckpointRequested(node="n1", request="r1", tenant="default", task="t1", attempt=2)
        await world.outlet.publish(Fact(streams.NODE_REQUESTS, ask, id="r1"))
        await world.at(60)

    world = play(main)
    saved = [(at, body.checkpoint) for at, kind, body in world.said() if kind == "attempt.checkpointed"]
    assert saved == [(pytest.approx(50, abs=0.1), 8)]


def test_a_probe_is_answered_with_a_sample(play):
    """Proves that the node's own machine measures and the sample names the request."""

    async def probe(from_site, to_site, size):
        return Sample(reachable=True, round_trip_us=30_000, bandwidth_bits=GB, sent_bytes=size)

    async def main(world):
        world.machine._probe = probe
        await world.run()
        await world.at(1)
        ask = NodeProbeRequested(node="n1", request="p1", to_site="west", bytes=1000)
        await world.outlet.publish(Fact(streams.NODE_REQUESTS, ask, id="p1"))
        await world.at(5)

    samples = [body for _, _, body in play(main).said(streams.PROBES)]
    assert [(s.from_site, s.to_site, s.request, s.round_trip_us) for s in samples] == [("east", "west", "p1", 30_000)]
