"""The operations door, and waiting for servers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from evenflow.core.errors import Conflict, Unavailable
from evenflow.hosting import composition
from evenflow.hosting.operations.door import OperationsDoor
from evenflow.hosting.operations.measures import Measures
from evenflow.hosting.operations.reaching import PAUSE_MAX_S, SAY_AGAIN_MS, Reaching
from evenflow.hosting.surroundings import HostSettings, Surroundings
from evenflow.platform.observability.logs import make_log


class State:
    """A process as the door sees it."""

    def __init__(self, services: dict[str, str], waits: dict[str, str]) -> None:
        self._services, self._waits = services, waits

    def services(self) -> dict[str, str]:
        return self._services

    def waits_for(self) -> dict[str, str]:
        return self._waits

    async def measure(self) -> None:
        pass


class Hand:
    """A clock that goes on by what is slept."""

    def __init__(self) -> None:
        self.at_ms = 0
        self.slept: list[float] = []

    def now_ms(self) -> int:
        return self.at_ms

    def monotonic_ms(self) -> int:
        return self.at_ms

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at_ms += round(seconds * 1_000)
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("services", "waits", "status"),
    [
        ({"placement": "standby"}, {}, 200),
        ({"placement": "leading"}, {}, 200),
        ({"placement": "starting"}, {}, 503),
        ({"placement": "serving"}, {"log": "no Kafka"}, 503),
        ({}, {}, 503),
    ],
)
async def test_ready_is_200_only_while_everything_serves(
    services: dict[str, str], waits: dict[str, str], status: int
) -> None:
    """A standby is ready: it is what takes over. /health answers in any case."""
    door = OperationsDoor(State(services, waits), Measures("placement"), {"service": "placement"})
    async with httpx.AsyncClient(transport=httpx.ASGITransport(door), base_url="http://door") as client:  # type: ignore[arg-type]  # httpx has a narrower form
        ready = await client.get("/ready")
        assert (ready.status_code, ready.json()["waits_for"]) == (status, waits)
        assert (await client.get("/health")).json() == {"service": "placement", "health": "alive"}
        assert (await client.post("/ready")).status_code == 405
        assert (await client.get("/secrets")).status_code == 404
        assert "process_resident_memory_bytes" in (await client.get("/metrics")).text


async def test_it_waits_with_growing_pauses_and_says_what_for_once_in_a_while() -> None:
    """One server comes after two minutes, the other at once; the same problem is said every half minute."""
    lines: list[str] = []
    clock = Hand()
    reaching = Reaching(clock, make_log(service="billing", instance="b", clock=clock, write=lines.append))
    there_at_ms = 120_000

    async def late() -> None:
        if clock.at_ms < there_at_ms:
            raise Unavailable("no Kafka at nowhere")

    async def at_once() -> None: ...

    work = asyncio.create_task(reaching.all({"log": late, "objects": at_once}))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert reaching.waits_for == {"log": "no Kafka at nowhere"}
    await work
    assert reaching.waits_for == {}
    assert clock.slept[:6] == [0.2, 0.4, 0.8, 1.6, 3.2, PAUSE_MAX_S]
    said = [json.loads(line) for line in lines]
    assert [row["event"] for row in said[:-1]] == ["waiting for a server"] * (1 + there_at_ms // (SAY_AGAIN_MS + 5_000))
    assert (said[-1]["event"], said[-1]["server"]) == ("server reached", "log")


async def test_what_can_never_be_reached_ends_the_wait() -> None:
    """A topic with other partitions does not go away by itself, so the other servers are not waited for."""
    clock = Hand()
    reaching = Reaching(clock, make_log(service="billing", instance="b", clock=clock, write=lambda _: None))

    async def other() -> None:
        raise Conflict("topic evenflow.tasks.v1 has 3 partitions")

    async def never() -> None:
        raise Unavailable("away")

    with pytest.raises(Conflict, match="3 partitions"):
        await reaching.all({"log": other, "live": never})


async def test_what_is_broken_in_us_comes_out() -> None:
    """Only what may go away is waited for."""
    clock = Hand()
    reaching = Reaching(clock, make_log(service="billing", instance="b", clock=clock, write=lambda _: None))

    async def wrong() -> Any:
        raise TypeError("a mistake")

    with pytest.raises(TypeError, match="a mistake"):
        await reaching.all({"log": wrong})


async def test_a_service_that_can_not_see_its_levels_keeps_no_figures_back() -> None:
    """Proves that one that raises or hangs costs its own levels only, within a bound, and that the line names it."""
    lines: list[dict[str, Any]] = []
    around = Surroundings(HostSettings(), write=lambda line: lines.append(json.loads(line)))
    pool = composition.Composition(around)
    seen: list[str] = []

    class Running:
        ready = True

        def __init__(self, name: str, *measures: Any) -> None:
            self.name = name
            self.measures = measures

    async def away() -> None:
        raise Unavailable("the log did not answer")

    async def hang() -> None:
        await asyncio.sleep(60)

    async def good() -> None:
        seen.append("good")

    running: list[Any] = [Running("billing", away, good), Running("console", hang), Running("agent")]
    pool.running.update({one.name: one for one in running})
    await asyncio.wait_for(pool.measure(), 2 * composition.MEASURE_LIMIT_S)
    assert seen == ["good"]
    assert [line["service_name"] for line in lines if line["event"] == "levels not taken"] == ["billing", "console"]
    await around.close()
