"""Following whole streams: a table is never believed after it stopped, and one bad document does not stop it."""

from __future__ import annotations

import pytest

from evenflow.core.errors import FieldRefused
from evenflow.events import streams
from evenflow.events.contracts.console import NodeCordonRequested
from evenflow.platform.broker.codec import Fact, Received
from evenflow.platform.service import EventService
from evenflow.testkit.pool import Pool, run


def cordon(node: str) -> Fact:
    return Fact(streams.REQUESTS, NodeCordonRequested(node=node))


class Table:
    """Notes keys; raises what a key stands for."""

    def __init__(self, **errors: Exception) -> None:
        self.keys: list[str] = []
        self._errors = errors

    def apply(self, received: Received) -> None:
        if received.key in self._errors:
            raise self._errors[received.key]
        self.keys.append(received.key)


async def following(pool: Pool, table: Table) -> EventService:
    host = EventService(pool.runtime("reader"))
    host.follow([streams.REQUESTS], table.apply)
    await host.start()
    return host


def test_a_document_that_a_table_refuses_is_passed_over_and_counted() -> None:
    """Both while catching up and in the tail: what comes after it is applied."""

    async def story(pool: Pool) -> None:
        table = Table(bad=FieldRefused("id", "is wrong"))
        await pool.publish(cordon("bad"), cordon("n1"))
        host = await following(pool, table)
        assert table.keys == ["n1"]
        await pool.publish(cordon("bad"), cordon("n2"))
        assert table.keys == ["n1", "n2"]
        assert (host.followers[0].unreadable_count, host.followers[0].applied_count) == (2, 2)
        await host.stop()

    run(story)


def test_a_fault_in_a_table_ends_the_service_that_rests_on_it() -> None:
    """A table that stopped in silence would be believed for as long as its process lives."""

    async def story(pool: Pool) -> None:
        host = await following(pool, Table(n1=RuntimeError("a fault of ours")))
        await pool.publish(cordon("n1"))
        with pytest.raises(RuntimeError, match="a fault of ours"):
            await host.wait()
        await host.stop()

    run(story)


def test_a_fault_while_catching_up_comes_out_of_the_start() -> None:
    """A service that can't build its table does not begin to serve."""

    async def story(pool: Pool) -> None:
        await pool.publish(cordon("n1"))
        with pytest.raises(RuntimeError, match="a fault of ours"):
            await following(pool, Table(n1=RuntimeError("a fault of ours")))

    run(story)
