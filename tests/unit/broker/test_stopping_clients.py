"""Stopping a Kafka producer ends, whatever its sender does with the cancellation that it is sent."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, KafkaTimeoutError, ProducerFenced

from evenflow.platform.broker import kafka
from evenflow.platform.broker.kafka import OwnProducer


@pytest.fixture
async def producer() -> OwnProducer:
    """Never started, so that its stop is the only thing that happens."""
    made = OwnProducer(bootstrap_servers="127.0.0.1:1")
    await AIOKafkaProducer.stop(made)
    return made


async def swallows(_: AIOKafkaProducer) -> None:
    """A sender that asks on and on, deaf to being cancelled."""
    for _turn in range(1_000):
        try:
            await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            continue
        if asyncio.get_running_loop().time() > swallows.until:  # type: ignore[attr-defined]  # set by the test
            return


async def cancels_itself(_: AIOKafkaProducer) -> None:
    inner = asyncio.ensure_future(asyncio.sleep(10))
    inner.cancel()
    await inner


async def refused(_: AIOKafkaProducer) -> None:
    raise ProducerFenced


async def test_a_sender_that_swallows_its_cancellation_holds_nobody_up(
    producer: OwnProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the stop itself nor a time limit around it."""
    swallows.until = asyncio.get_running_loop().time() + 0.5  # type: ignore[attr-defined]  # so that the loop can close
    monkeypatch.setattr(AIOKafkaProducer, "stop", swallows)
    monkeypatch.setattr(kafka, "STOP_LIMIT_S", 0.1)
    with pytest.raises(KafkaTimeoutError, match="did not stop"):
        await producer.stop()
    monkeypatch.setattr(kafka, "STOP_LIMIT_S", 60)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await producer.stop()
    await asyncio.sleep(0.6)


async def test_what_the_client_says_at_its_stop_comes_out(
    producer: OwnProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fence is how a leader learns that another leads; a cancellation of the client's own is an error."""
    monkeypatch.setattr(AIOKafkaProducer, "stop", refused)
    with pytest.raises(ProducerFenced):
        await producer.stop()
    monkeypatch.setattr(AIOKafkaProducer, "stop", cancels_itself)
    with pytest.raises(KafkaError, match="cancelled a task of its own"):
        await producer.stop()
