"""The rules of `deliver` on the way from the gateway to an agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

from evenflow.agent.clients.exchange import HttpRequest, HttpResponse
from evenflow.events import streams
from evenflow.sim.stage import DeliveryRule
from evenflow.sim.world.paths.downlink import Downlink


def poll() -> HttpRequest:
    return HttpRequest("GET", "/v1/nodes/n1/desired?instance=a&revision=3", {}, b"")


def answer(*keys: str) -> HttpResponse:
    items = [{"key": key, "desired": {}} for key in keys]
    return HttpResponse(200, json.dumps({"instance": "a", "revision": 5, "items": items, "requests": []}).encode())


def keys_of(response: HttpResponse) -> list[str]:
    return [item["key"] for item in json.loads(response.body)["items"]]


def test_what_changes_places_within_one_answer_arrives_with_it() -> None:
    """The two of them are released while the answer is made: it takes them along, nothing answers before it."""
    later: list[Callable[[], None]] = []
    downlink = Downlink(lambda: 0, lambda _after_ms, act: later.append(act))
    downlink.add(DeliveryRule(streams.DISPATCH.name, {}, "reorder", times=2, ends_ms=None, copies=1, after_ms=None))
    loop = asyncio.new_event_loop()
    try:
        future: asyncio.Future[HttpResponse] = loop.create_future()
        request = poll()
        downlink.asked("n1", request, future)
        arrived = downlink.answered("n1", request, answer("x", "y", "z"))
        assert keys_of(arrived) == ["z", "y", "x"]
        assert not future.done()
    finally:
        loop.close()
