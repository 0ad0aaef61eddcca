"""The way between a client and a server that the faults cut and slow down."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from evenflow.platform.clock import SystemClock
from evenflow.testkit.processes.relay import Relay
from evenflow.testkit.servers.process import LOOPBACK, free_ports

SILENCE_S = 0.2


@pytest.fixture
async def ports() -> AsyncIterator[tuple[int, int]]:
    """A free port, and one on which a server sends back what it is sent."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(1_024):
            writer.write(chunk)
            await writer.drain()
        writer.close()

    port, behind = free_ports(2)
    server = await asyncio.start_server(echo, LOOPBACK, behind)
    yield port, behind
    server.close()


async def test_what_is_sent_while_the_way_is_cut_arrives_in_order_when_it_is_healed(ports: tuple[int, int]) -> None:
    """Neither an open connection nor a new one is refused or reset meanwhile."""
    async with Relay(*ports, SystemClock()) as way:
        reader, writer = await asyncio.open_connection(LOOPBACK, ports[0])
        writer.write(b"1")
        assert await reader.readexactly(1) == b"1"
        way.cut()
        writer.write(b"2")
        other, another = await asyncio.open_connection(LOOPBACK, ports[0])
        another.write(b"a")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), SILENCE_S)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(other.read(1), SILENCE_S)
        writer.write(b"3")
        way.heal()
        assert await asyncio.wait_for(reader.readexactly(2), 5) == b"23"
        assert await asyncio.wait_for(other.readexactly(1), 5) == b"a"
        writer.close()
        another.close()


async def test_a_slow_way_takes_its_time_in_each_direction(ports: tuple[int, int]) -> None:
    """There and back."""
    async with Relay(*ports, SystemClock()) as way:
        way.slow(50)
        reader, writer = await asyncio.open_connection(LOOPBACK, ports[0])
        began = time.monotonic()
        writer.write(b"1")
        assert await reader.readexactly(1) == b"1"
        assert time.monotonic() - began >= 0.1
        writer.close()


async def test_a_server_that_is_away_is_seen_as_away() -> None:
    """The client's connection is closed, not left in silence."""
    async with Relay(*free_ports(2), SystemClock()) as way:
        reader, writer = await asyncio.open_connection(LOOPBACK, way.port)
        assert await asyncio.wait_for(reader.read(1), 5) == b""
        writer.close()
