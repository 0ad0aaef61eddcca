"""The simulation's lean way of running subscriptions: what a handler sees, what is parked and what is committed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from aiokafka import TopicPartition

from evenflow.core.errors import FieldRefused, Unavailable
from evenflow.events import streams
from evenflow.events.contracts.console import NodeCordonRequested
from evenflow.platform.broker.codec import Fact, Received
from evenflow.platform.service import EventService
from evenflow.testkit.pool import Pool, run

NODES = tuple(f"n{number}" for number in range(12))

Outcome = tuple[list[str], list[bytes | None], dict[TopicPartition, int]]


def outcome(*, lean: bool, batch: bool) -> Outcome:
    """(keys handled, values parked, what is left to read) of good, unreadable, refused and failing records."""
    seen: list[str] = []
    found: list[Outcome] = []

    async def story(pool: Pool) -> None:
        host = EventService(replace(pool.runtime("listener"), lean=lean))
        failing: dict[str, list[Exception]] = {
            "n3": [Unavailable("away"), Unavailable("away")],
            "n5": [FieldRefused("node", "is not wanted")] * 2,
        }

        async def take(events: list[Received]) -> None:
            for event in events:
                if errors := failing.get(event.key):
                    raise errors.pop(0)
            seen.extend(event.key for event in events)

        async def take_one(event: Received) -> None:
            await take([event])

        if batch:
            host.inlet.on_batch(streams.REQUESTS)(take)
        else:
            host.inlet.on(streams.REQUESTS)(take_one)
        await host.start()
        for node in NODES:
            await pool.publish(Fact(streams.REQUESTS, NodeCordonRequested(node=node), id=node))
            await pool.pass_s(2)
        await pool.publish_raw(streams.REQUESTS, b"n1", b"\xff", [("ce_id", b"x")])
        await pool.pass_s(5)
        letters = sorted(record.value or b"" for record in await pool.dead_letters(streams.REQUESTS))
        lag = await host.runtime.transport.lag(f"evenflow.listener.{streams.REQUESTS.name}")
        found.append((seen, list(letters), {partition: count for partition, count in lag.items() if count}))
        await host.stop()

    run(story)
    return found[0]


@pytest.mark.parametrize("batch", [False, True])
def test_both_ways_of_running_a_subscription_end_the_same(batch: bool) -> None:
    """Handled in the same order, the same letters parked, nothing left to read: what is proved on one holds on both."""
    lean = outcome(lean=True, batch=batch)
    assert lean == outcome(lean=False, batch=batch)
    assert lean[0] == [node for node in NODES if node != "n5"]
    assert len(lean[1]) == 2
    assert lean[2] == {}
