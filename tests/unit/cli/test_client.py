"""The clients over HTTP: what an answer leaves behind."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterator

import httpx
import pytest

from evenflow.agent.clients import http
from evenflow.agent.clients.exchange import HttpRequest
from evenflow.client import api, calls


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No collector within: what is gone was let go."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def answering(kept: list[weakref.ref[httpx.Response]]) -> Callable[[httpx.Request], httpx.Response]:
    """A server whose answers are watched."""

    def answer(_request: httpx.Request) -> httpx.Response:
        response = httpx.Response(200, json={"items": []})
        kept.append(weakref.ref(response))
        return response

    return answer


@pytest.mark.usefixtures("uncollected")
def test_an_answer_that_was_read_is_let_go_at_once() -> None:
    """Found: each answer held itself with its body, megabytes a minute, until the collector looked."""
    kept: list[weakref.ref[httpx.Response]] = []
    with api.Client(transport=httpx.MockTransport(answering(kept))) as client:
        assert client.send(calls.listing("sites")) == []

    async def asynchronous() -> None:
        async with api.AsyncClient(transport=httpx.MockTransport(answering(kept))) as client:
            assert await client.send(calls.listing("sites")) == []

    async def of_an_agent() -> None:
        exchange = http.HttpExchange("http://localhost")
        exchange._client = httpx.AsyncClient(transport=httpx.MockTransport(answering(kept)))
        assert (await exchange(HttpRequest("GET", "/", {}, b""), timeout_ms=1_000)).status == 200
        await exchange.close()

    asyncio.run(asynchronous())
    asyncio.run(of_an_agent())
    assert [one() for one in kept] == [None, None, None]
