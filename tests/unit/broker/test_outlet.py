"""Publishing outside of transactions: what the log did not confirm stays first in line, and nothing blocks the line."""

from __future__ import annotations

import pytest
from aiokafka.errors import KafkaTimeoutError, MessageSizeTooLargeError

from evenflow.core.errors import Ended, Unavailable
from evenflow.events import streams
from evenflow.events.contracts.console import DocumentPublished, NodeCordonRequested
from evenflow.platform.broker.codec import Fact
from evenflow.platform.broker.outlet import BACKLOG_MAX, Outlet
from evenflow.testkit.pool import Pool, run


def cordon(number: int) -> Fact:
    return Fact(streams.REQUESTS, NodeCordonRequested(node=f"n{number}"), id=f"f{number}")


async def seen(pool: Pool) -> list[str]:
    return sorted([fact.envelope.id for fact in await pool.facts(streams.REQUESTS)])


def test_what_the_log_did_not_confirm_is_sent_before_anything_new() -> None:
    """The caller's state has moved on, so a retry with nothing to say still writes what waited, and all of it once."""

    async def story(pool: Pool) -> None:
        outlet = Outlet(pool.runtime("writer"))
        await outlet.start()
        send, away = outlet._producer.send_together, [True]

        async def sometimes(*given: object, **more: object) -> object:
            if away[0]:
                raise KafkaTimeoutError
            return await send(*given, **more)

        outlet._producer.send_together = sometimes
        with pytest.raises(Unavailable, match="did not confirm 2 records"):
            await outlet.publish(cordon(1), cordon(2))
        with pytest.raises(Unavailable, match="did not confirm 3 records"):
            await outlet.publish(cordon(3))
        assert await seen(pool) == []
        away[0] = False
        await outlet.publish()
        assert await seen(pool) == ["f1", "f2", "f3"]
        await outlet.publish(cordon(4))
        assert await seen(pool) == ["f1", "f2", "f3", "f4"]

    run(story)


def test_a_fact_that_the_log_will_never_take_does_not_stand_in_the_way() -> None:
    """It is told to its caller and dropped; those beside it and those after it are written."""

    async def story(pool: Pool) -> None:
        outlet = Outlet(pool.runtime("writer"))
        await outlet.start()
        huge = DocumentPublished(kind="site", name="x", version=1, document={"city": "x" * streams.MESSAGE_BYTES_MAX})
        with pytest.raises(MessageSizeTooLargeError):
            await outlet.publish(cordon(1), Fact(streams.POLICIES, huge, id="huge"), cordon(2))
        assert set(await seen(pool)) == {"f1", "f2"}
        await outlet.publish(cordon(3))
        assert set(await seen(pool)) == {"f1", "f2", "f3"}
        assert await pool.facts(streams.POLICIES) == []

    run(story)


def test_a_refused_fact_leaves_no_gap_that_stops_those_behind_it() -> None:
    """The log refuses a producer's records after one that it would not take, so the line goes on with another."""

    def paper(version: int, city: str = "") -> Fact:
        body = DocumentPublished(kind="site", name="x", version=version, document={"city": city})
        return Fact(streams.POLICIES, body, key="site/x", id=f"v{version}")

    async def story(pool: Pool) -> None:
        outlet = Outlet(pool.runtime("writer"))
        await outlet.start()
        await outlet.publish(paper(1))
        with pytest.raises(MessageSizeTooLargeError):
            await outlet.publish(paper(2, "x" * streams.MESSAGE_BYTES_MAX), paper(3))
        await outlet.publish(paper(4))
        assert [fact.envelope.id for fact in await pool.facts(streams.POLICIES)] == ["v1", "v3", "v4"]

    run(story)


def test_a_line_that_grows_without_end_ends_the_process() -> None:
    """Memory is bounded: beyond the bound the process ends, and its successor starts from the log."""

    async def story(pool: Pool) -> None:
        outlet = Outlet(pool.runtime("writer"))
        outlet._backlog = [outlet.encoded(cordon(1))] * BACKLOG_MAX
        with pytest.raises(Ended, match="50001 facts wait"):
            await outlet.publish(cordon(2))

    run(story)
