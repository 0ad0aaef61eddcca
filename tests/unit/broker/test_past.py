"""A followed table whose oldest records have expired: the archive first, then the log behind it, each record once."""

from __future__ import annotations

from evenflow.core.errors import Unavailable
from evenflow.events import streams
from evenflow.events.contracts.console import NodeCordonRequested
from evenflow.hosting.archiving.copies import LogCopies
from evenflow.platform.broker.codec import Fact, Received
from evenflow.platform.broker.embedded.archive import ObjectArchive, read_archive
from evenflow.platform.broker.embedded.retention import Retention
from evenflow.platform.service import EventService
from evenflow.testkit.examples import examples
from evenflow.testkit.pool import Pool, run

WEEK_S = 7 * 86_400


def cordon(node: str) -> Fact:
    return Fact(streams.REQUESTS, NodeCordonRequested(node=node))


async def expired(pool: Pool, *nodes: str) -> None:
    """Write, wait until it is too old, and let the log archive and drop it."""
    await pool.publish(*map(cordon, nodes))
    await pool.pass_s(WEEK_S + 1)
    await Retention(pool.log).step()


async def following(pool: Pool, keys: list[str], *, paced: bool) -> EventService:
    async def pace() -> None:
        pass

    def apply(received: Received) -> None:
        keys.append(received.key)

    host = EventService(pool.runtime("reader"))
    host.follow([streams.REQUESTS], apply, pace=pace if paced else None, past=[streams.REQUESTS])
    await host.start()
    await pool.pass_s(1)
    return host


def test_what_expired_is_read_from_the_archive_and_then_the_log_goes_on() -> None:
    """Proves it for a table that is waited for and for one that is read in the background, and once more when told."""

    async def story(pool: Pool) -> None:
        pool.log.hooks.archive = ObjectArchive(pool.objects, lambda _: True)
        await expired(pool, "a", "b")
        await expired(pool, "c")
        await pool.publish(cordon("d"))
        for number, paced in enumerate((False, True)):
            keys: list[str] = []
            host = await following(pool, keys, paced=paced)
            told = ["a", "b", "c", "d", *["e-0"][:number]]
            assert sorted(keys) == told
            assert max(map(keys.index, "abc")) < keys.index("d")
            host.followers[0].read_again()
            await pool.publish(cordon(f"e-{number}"))
            await pool.pass_s(3)
            assert sorted({*keys}) == [*told, f"e-{number}"]
            assert [keys.count(name) for name in told] == [2] * len(told)
            await host.stop()

    run(story)


def test_a_table_waits_for_an_archive_that_is_away() -> None:
    """Proves that a start does not go on with half a table, and that one in the background tries again."""

    async def story(pool: Pool) -> None:
        pool.log.hooks.archive = ObjectArchive(pool.objects, lambda _: True)
        await expired(pool, "a")
        keys: list[str] = []
        paths, pool.objects.paths = pool.objects.paths, away
        try:
            await following(pool, keys, paced=False)
        except Unavailable:
            pass
        else:
            raise AssertionError("it started without its past")
        host = await following(pool, keys, paced=True)
        assert keys == []
        pool.objects.paths = paths
        await pool.pass_s(2)
        assert keys == ["a"]
        await host.stop()

    run(story)


def test_a_damaged_archive_costs_its_records_and_nothing_else() -> None:
    """Proves that what stands on the log is still read, so that a ledger can show where its chain breaks."""

    async def story(pool: Pool) -> None:
        pool.log.hooks.archive = ObjectArchive(pool.objects, lambda _: True)
        await expired(pool, "a")
        for path in await pool.objects.paths("archive/"):
            await pool.objects.put(path, b"something else")
        await pool.publish(cordon("b"))
        keys: list[str] = []
        host = await following(pool, keys, paced=False)
        assert keys == ["b"]
        await host.stop()

    run(story)


def test_what_a_log_would_lose_by_its_age_is_copied_once_and_goes_on_where_it_stopped() -> None:
    """Proves that streams marked for the archive are copied with their offsets, others are not, over a restart."""

    async def story(pool: Pool) -> None:
        charge = examples()["charge.recorded"]
        runtime = pool.runtime("copies")
        kept: list[list[int]] = []
        for number in range(3):
            body = charge.model_copy(update={"number": number + 1, "entry": f"e{number}"})
            await pool.publish(Fact(streams.BILLING, body), cordon("n"))
            copies = LogCopies(runtime.transport, pool.objects, pool.clock, runtime.log, 1.0)
            await copies.start()
            await pool.pass_s(15)
            await copies.stop()
            rows = []
            for one in range(streams.BILLING.partitions):
                rows += [row async for row in read_archive(pool.objects, streams.BILLING.name, one)]
            kept.append([row.offset for row in rows])
        assert kept == [[0], [0, 1], [0, 1, 2]]
        assert len(await pool.objects.paths(f"archive/{streams.BILLING.name}/")) == 3
        assert await pool.objects.paths(f"archive/{streams.REQUESTS.name}/") == []

    run(story)


async def away(_prefix: str) -> list[str]:
    """A store that does not answer."""
    raise Unavailable("the store is away")
