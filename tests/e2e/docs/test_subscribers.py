"""The subscriber of docs/recipes that is made with evenflow.client, on the embedded log of its own process."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util

import pytest
from tests.e2e.docs.blocks import ROOT

from evenflow.events import streams
from evenflow.platform.broker.codec import Fact, encode
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.platform.broker.factory import make_log
from evenflow.platform.clock import RandomIds, SystemClock
from evenflow.testkit.examples import examples

CLOCK = SystemClock()


async def tell(transport: EmbeddedTransport, name: str, *, commit: bool) -> None:
    """An assignment in a transaction of its own."""
    body = examples()["task.assigned"].model_copy(update={"task": name})
    one = encode(Fact(streams.ASSIGNMENTS, body), source="test", now_ms=CLOCK.now_ms(), new_id=name)
    producer = transport.producer(client_id=name, transactional_id=name)
    await producer.start()
    await producer.begin_transaction()
    await (await producer.send(one.topic, one.value, key=one.key, headers=one.headers))
    await (producer.commit_transaction() if commit else producer.abort_transaction())
    await producer.stop()


async def test_it_sees_what_is_committed_in_the_same_process(capsys: pytest.CaptureFixture[str]) -> None:
    """Proves that the same twenty lines serve the embedded profile, without a round that was given up."""
    spec = importlib.util.spec_from_file_location("recipe", ROOT / "docs/recipes/subscribers/with_evenflow.py")
    assert spec is not None
    assert spec.loader is not None
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    transport = EmbeddedTransport(make_log("embedded:", clock=CLOCK), clock=CLOCK, ids=RandomIds(CLOCK))
    await transport.provision(streams.topics())
    await tell(transport, "given-up", commit=False)
    await tell(transport, "kept", commit=True)
    following = asyncio.create_task(recipe.follow(transport))
    said = ""
    try:
        async with asyncio.timeout(20):
            while "kept" not in said:
                assert not following.done(), following
                await asyncio.sleep(0.05)
                said += capsys.readouterr().out
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
    assert said == "task.assigned vision/kept research\n"
