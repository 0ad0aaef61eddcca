"""A placement process says how it ended, whatever the client does while the seat is left."""

from __future__ import annotations

import asyncio
import random

import pytest
import structlog

from evenflow.core.errors import Ended
from evenflow.events import streams
from evenflow.placement.main import build
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.platform.broker.subscriptions.seat import Seat
from evenflow.platform.clock import RandomIds, SystemClock
from evenflow.platform.runtime import Runtime
from evenflow.platform.stores.memory import MemoryDocuments, MemoryLiveLoad, MemoryObjects


async def cancels_itself(_: Seat) -> None:
    """What a client does that waits for a task of its own which it cancelled."""
    inner = asyncio.ensure_future(asyncio.sleep(10))
    inner.cancel()
    await inner


async def breaks(_: Seat) -> None:
    raise AssertionError("no coordinator")


@pytest.mark.parametrize("leave", [cancels_itself, breaks])
async def test_the_end_is_told_although_the_seat_is_not_left_in_order(
    leave: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would neither lead nor end, for ever, and its standby would never be started again."""
    clock = SystemClock()
    ids = RandomIds(clock)
    log = EmbeddedLog(clock=clock)
    log.provision(streams.topics())
    runtime = Runtime(
        name="placement",
        instance="1",
        clock=clock,
        ids=ids,
        random=random.Random(1),
        transport=EmbeddedTransport(log, clock=clock, ids=ids),
        documents=MemoryDocuments(),
        live=MemoryLiveLoad(),
        objects=MemoryObjects(),
        log=structlog.get_logger(wrapper_class=structlog.make_filtering_bound_logger(50)),
    )
    service = build(runtime)
    await service.start()
    async with asyncio.timeout(10):
        while not service.leading:
            await asyncio.sleep(0.01)
        left = Seat.leave
        monkeypatch.setattr(Seat, "leave", leave)
        service._seat.lost = True
        service._interrupt()
        with pytest.raises(Ended, match="the seat was lost"):
            await service.wait()
    await left(service._seat)
    log.close()
