"""Checkpoint as others see it: only whole checkpoints of living attempts may be resumed from."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.core.checkpointing.manifest import Manifest, folder, part_of, write_manifest
from evenflow.core.errors import Unavailable
from evenflow.events import streams
from evenflow.events.contracts.agent import AttemptCheckpointed, AttemptReclaimed, AttemptStarted, Outcome
from evenflow.events.contracts.checkpoint import CheckpointDamaged, CheckpointPruned, CheckpointVerified
from evenflow.events.contracts.placement import AttemptUse, TaskAssigned, TaskEnded, TaskRequeued
from evenflow.platform.broker.codec import Fact
from evenflow.testkit.pool import Pool, run

PARTS = {"part-0": b"abc", "part-1": b"defg"}


async def written(pool: Pool, number: int, generation: int = 1) -> str:
    """A whole checkpoint in the store; its manifest's path."""
    where = folder("default", "t", generation, number)
    for name, data in PARTS.items():
        await pool.objects.put(where + name, data)
    parts = tuple(part_of(name, data) for name, data in PARTS.items())
    manifest = Manifest("default", "t", generation, generation, number, number * 60_000, 7, parts)
    await pool.objects.put(f"{where}manifest.json", write_manifest(manifest))
    return f"{where}manifest.json"


def receipt(number: int, manifest: str, attempt: int = 1) -> Fact:
    body = AttemptCheckpointed(
        tenant="default",
        task="t",
        attempt=attempt,
        generation=attempt,
        member=0,
        epoch=1,
        node="n1",
        at_ms=0,
        checkpoint=number,
        progress_ms=number * 60_000,
        run_ms=number * 60_000,
        manifest=manifest,
        size_bytes=7,
        site="east",
    )
    return Fact(streams.RUNS, body)


def assigned(attempt: int = 1, submitted_ms: int = 0) -> Fact:
    fields: dict[str, Any] = {"queue": "q", "pool": "p", "epoch": 1, "round": 1, "wait_ms": 0}
    fields |= {"submitted_ms": submitted_ms, "saves": True}
    body = TaskAssigned(tenant="default", task="t", attempt=attempt, generation=attempt, members=(), **fields)
    return Fact(streams.ASSIGNMENTS, body, id=f"assigned-{attempt}")


def lost(attempt: int = 1, end: str = "lost") -> Fact:
    use = AttemptUse(attempt=attempt, generation=attempt, end=end)
    body = TaskRequeued(tenant="default", task="t", queue="q", epoch=1, use=use, failure_count=0)
    return Fact(streams.ASSIGNMENTS, body)


def ended() -> Fact:
    body = TaskEnded(tenant="default", task="t", queue="q", epoch=1, end="succeeded", attempt=1, submitted_ms=0)
    return Fact(streams.ASSIGNMENTS, body)


def test_a_whole_checkpoint_is_verified_once_however_often_it_is_announced() -> None:
    """Redelivery of the receipt publishes nothing new."""

    async def story(pool: Pool) -> None:
        await pool.start("checkpoint")
        manifest = await written(pool, 1)
        await pool.publish(assigned(), receipt(1, manifest), receipt(1, manifest))
        facts = await pool.bodies(streams.CHECKPOINTS)
        assert [(f.TYPE, f.checkpoint, f.progress_ms) for f in facts] == [("checkpoint.verified", 1, 60_000)]

    run(story)


@pytest.mark.parametrize("harm", ["part missing", "part cut", "part altered", "manifest missing", "manifest garbage"])
def test_a_damaged_checkpoint_is_never_verified(harm: str) -> None:
    """R53: whatever is missing or altered, the checkpoint is said to be damaged and an alert says why."""

    async def story(pool: Pool) -> None:
        await pool.start("checkpoint")
        manifest = await written(pool, 1)
        part = manifest.replace("manifest.json", "part-1")
        match harm:
            case "part missing":
                await pool.objects.delete(part)
            case "part cut":
                await pool.objects.put(part, b"de")
            case "part altered":
                await pool.objects.put(part, b"DEFG")
            case "manifest missing":
                await pool.objects.delete(manifest)
            case _:
                await pool.objects.put(manifest, b"{")
        await pool.publish(assigned(), receipt(1, manifest))
        assert [f.TYPE for f in await pool.bodies(streams.CHECKPOINTS)] == ["checkpoint.damaged"]
        assert len(await pool.bodies(streams.ALERTS)) == 1

    run(story)


@pytest.mark.parametrize(
    "elsewhere", ["secrets/manifest.json", "checkpoints/default/other/g000001/c000001/manifest.json"]
)
def test_a_receipt_can_make_the_service_neither_read_nor_delete_anything_else(elsewhere: str) -> None:
    """A manifest outside of its own folder is damage; when that is pruned, what it named is still there."""

    async def story(pool: Pool) -> None:
        await pool.start("checkpoint")
        await pool.objects.put(elsewhere, b"{}")
        await pool.publish(assigned(), receipt(1, elsewhere))
        facts = await pool.bodies(streams.CHECKPOINTS, CheckpointDamaged)
        assert "not where this checkpoint is kept" in facts[0].problem
        await pool.publish(ended())
        await pool.pass_s(11)
        assert len(await pool.bodies(streams.CHECKPOINTS, CheckpointPruned)) == 1
        assert await pool.objects.paths("") == [elsewhere]

    run(story)


def test_a_manifest_that_tells_of_another_checkpoint_is_damage() -> None:
    """A copy of an older checkpoint under a newer name does not count as the newer one."""

    async def story(pool: Pool) -> None:
        await pool.start("checkpoint")
        older = await written(pool, 1)
        newer = await written(pool, 2)
        await pool.objects.put(newer, await pool.objects.get(older))
        await pool.publish(assigned(), receipt(2, newer))
        facts = await pool.bodies(streams.CHECKPOINTS, CheckpointDamaged)
        assert [f.problem for f in facts] == ["the manifest is that of another checkpoint"]

    run(story)


def test_the_receipt_of_a_pruned_checkpoint_that_comes_again_is_no_damage() -> None:
    """An old receipt may follow the removal of its checkpoint: nothing is said, no alert is raised."""

    async def story(pool: Pool) -> None:
        await pool.start("checkpoint", kept_count=1)
        first = await written(pool, 1)
        await pool.publish(assigned(), receipt(1, first), receipt(2, await written(pool, 2)))
        await pool.pass_s(11)
        assert [f.checkpoint for f in await pool.bodies(streams.CHECKPOINTS, CheckpointPruned)] == [1]
        await pool.publish(receipt(1, first))
        assert await pool.bodies(streams.CHECKPOINTS, CheckpointDamaged) == []
        assert await pool.bodies(streams.ALERTS) == []

    run(story)


def test_what_was_pruned_before_the_store_went_away_is_said() -> None:
    """The facts of a step that broke off are published; the rest follows when the store is back."""

    async def story(pool: Pool) -> None:
        await pool.start("checkpoint", kept_count=1)
        for number in (1, 2, 3):
            await pool.publish(assigned(), receipt(number, await written(pool, number)))
        remove, removed = pool.objects.delete, []

        async def once(path: str) -> bool:
            if len(removed) == 1 and path.endswith("manifest.json"):
                raise Unavailable("the store is away")
            removed.extend([path] if path.endswith("manifest.json") else [])
            return await remove(path)

        pool.objects.delete = once
        await pool.pass_s(11)
        assert len(await pool.bodies(streams.CHECKPOINTS, CheckpointPruned)) == 1
        pool.objects.delete = remove
        await pool.pass_s(11)
        assert sorted(f.checkpoint for f in await pool.bodies(streams.CHECKPOINTS, CheckpointPruned)) == [1, 2]

    run(story)


def test_what_an_ended_attempt_still_writes_counts_for_nothing() -> None:
    """R57: after an attempt was given up its later checkpoints are ignored, also after a restart."""

    async def story(pool: Pool) -> None:
        await pool.start("checkpoint")
        first = await written(pool, 1)
        late = await written(pool, 2)
        await pool.publish(assigned(), receipt(1, first))
        await pool.publish(lost())
        await pool.publish(receipt(2, late))
        await pool.stop("checkpoint")
        await pool.start("checkpoint")
        await pool.publish(receipt(3, late))
        assert [f.checkpoint for f in await pool.bodies(streams.CHECKPOINTS, CheckpointVerified)] == [1]

    run(story)


def test_damage_found_when_resuming_takes_a_checkpoint_out() -> None:
    """An agent that could not read a verified checkpoint says so, and it is published as damaged."""

    async def story(pool: Pool) -> None:
        await pool.start("checkpoint")
        manifest = await written(pool, 1)
        await pool.publish(assigned(), receipt(1, manifest))
        fields: dict[str, Any] = {"tenant": "default", "task": "t", "generation": 2, "member": 0, "epoch": 1}
        body = AttemptStarted(attempt=2, at_ms=0, node="n", damaged=(manifest,), **fields)
        await pool.publish(Fact(streams.RUNS, body))
        assert [f.TYPE for f in await pool.bodies(streams.CHECKPOINTS)] == ["checkpoint.verified", "checkpoint.damaged"]

    run(story)


def test_only_the_newest_are_kept_and_none_after_the_end() -> None:
    """Older ones are pruned while the task lives, everything when it ended, and the store is empty then."""

    async def story(pool: Pool) -> None:
        await pool.start("checkpoint", kept_count=2)
        for number in (1, 2, 3):
            await pool.publish(assigned(), receipt(number, await written(pool, number)))
        await pool.pass_s(11)
        assert [f.checkpoint for f in await pool.bodies(streams.CHECKPOINTS, CheckpointPruned)] == [1]
        await pool.publish(ended())
        await pool.pass_s(11)
        assert sorted(f.checkpoint for f in await pool.bodies(streams.CHECKPOINTS, CheckpointPruned)) == [1, 2, 3]
        assert await pool.objects.paths("checkpoints/") == []

    run(story)


def test_what_is_verified_after_the_end_is_removed_too() -> None:
    """A receipt that comes late, after its task's end was read, leaves nothing; a new life keeps its own."""

    async def story(pool: Pool) -> None:
        await pool.start("checkpoint")
        await pool.publish(assigned())
        await pool.pass_s(1)
        await pool.publish(ended())
        await pool.pass_s(1)
        await pool.publish(receipt(1, await written(pool, 1)))
        await pool.pass_s(11)
        assert await pool.objects.paths("checkpoints/") == []
        await pool.publish(assigned(2, 5), receipt(1, await written(pool, 1, generation=2), attempt=2))
        await pool.pass_s(21)
        assert await pool.objects.paths("checkpoints/") != []

    run(story)


def test_an_assignment_told_again_after_the_end_opens_nothing() -> None:
    """Found: a repeated record made an ended task look alive, whose checkpoints then stayed for ever."""

    async def story(pool: Pool) -> None:
        await pool.start("checkpoint")
        await pool.publish(assigned(), receipt(1, await written(pool, 1)))
        await pool.publish(ended(), assigned())
        await pool.pass_s(11)
        assert await pool.objects.paths("checkpoints/") == []

    run(story)


async def _half(pool: Pool, number: int, generation: int = 1) -> str:
    """Two parts of a checkpoint whose writer was cut off."""
    where = folder("default", "t", generation, number)
    for name, data in PARTS.items():
        await pool.objects.put(where + name, data)
    return where


def test_halves_that_a_lost_attempt_left_behind_are_swept_and_good_ones_kept() -> None:
    """R53: what was never announced is cleaned up; what was verified stays to be resumed from."""

    async def story(pool: Pool) -> None:
        await pool.start("checkpoint")
        first = await written(pool, 1)
        await pool.publish(assigned(), receipt(1, first))
        await _half(pool, 2)
        await pool.pass_s(11)
        assert len(await pool.objects.paths("")) == 5
        await pool.publish(lost())
        await pool.pass_s(11)
        assert [path for path in await pool.objects.paths("") if not path.startswith(first[: first.rindex("/")])] == []
        assert len(await pool.objects.paths("")) == 3

    run(story)


@pytest.mark.parametrize("end", ["lost", "cancelled", "failed"])
def test_what_an_attempt_cut_short_wrote_later_is_swept_when_its_writer_is_proven_gone(end: str) -> None:
    """R57: a cut-off process goes on writing; its reclaim receipt is the moment to look again."""

    async def story(pool: Pool) -> None:
        await pool.start("checkpoint")
        await pool.publish(assigned(), lost(end=end))
        await pool.pass_s(11)
        await _half(pool, 7)
        await pool.pass_s(11)
        assert len(await pool.objects.paths("")) == 2
        outcome = Outcome(ended_as="stopped")
        gone = AttemptReclaimed(
            tenant="default", task="t", attempt=1, generation=1, member=0, epoch=1, node="n1", at_ms=0, queue="q",
            site="east", leftover=False, outcome=outcome,
        )  # fmt: skip
        await pool.publish(Fact(streams.RUNS, gone))
        await pool.pass_s(11)
        assert await pool.objects.paths("") == []

    run(story)


def test_sweeping_goes_on_when_the_store_is_back() -> None:
    """A store that is away costs nothing but time."""

    async def story(pool: Pool) -> None:
        await pool.start("checkpoint")
        await _half(pool, 1)
        paths = pool.objects.paths

        async def away(_prefix: str) -> list[str]:
            raise Unavailable("the store is away")

        pool.objects.paths = away
        await pool.publish(assigned(), lost())
        await pool.pass_s(11)
        pool.objects.paths = paths
        assert len(await pool.objects.paths("")) == 2
        await pool.pass_s(11)
        assert await pool.objects.paths("") == []

    run(story)


@pytest.mark.parametrize("saved", [True, False], ids=["a checkpoint", "half a checkpoint"])
def test_a_removal_counts_when_a_look_finds_nothing(saved: bool) -> None:
    """A store that answers and does not do it leaves nothing behind for good."""

    async def story(pool: Pool) -> None:
        await pool.start("checkpoint")
        await pool.publish(assigned())
        await (pool.publish(receipt(1, await written(pool, 1))) if saved else _half(pool, 1))
        delete, swallowed = pool.objects.delete, []

        async def kept(path: str) -> None:
            swallowed.append(path)

        pool.objects.delete = kept
        await pool.publish(ended() if saved else lost())
        await pool.pass_s(11)
        assert swallowed
        assert await pool.objects.paths("") != []
        pool.objects.delete = delete
        await pool.pass_s(21)
        assert await pool.objects.paths("") == []

    run(story)
