"""The shape of a running service: its steps go on, and stopping it lets go of everything."""

from __future__ import annotations

import pytest

from evenflow.core.errors import Ended, Unavailable
from evenflow.events import streams
from evenflow.platform.service import EventService, Step
from evenflow.testkit.pool import Pool, run


class Part:
    """Notes what is done to it; raises at its stop if told to."""

    def __init__(self, name: str, notes: list[str], failure: Exception | None = None) -> None:
        self._name = name
        self._notes = notes
        self._failure = failure

    async def start(self) -> None:
        self._notes.append(f"{self._name} starts")

    async def stop(self) -> None:
        self._notes.append(f"{self._name} stops")
        if self._failure is not None:
            raise self._failure


def test_a_part_that_stops_badly_keeps_nobody_from_stopping() -> None:
    """Parts stop in reverse order, then tables and the way out; the first error comes out at the end."""

    async def story(pool: Pool) -> None:
        notes: list[str] = []
        host = EventService(pool.runtime("host"))
        host.parts += [Part("first", notes), Part("second", notes, RuntimeError("clings on"))]
        host.follow([streams.NODES], lambda _: None)
        await host.start()
        with pytest.raises(RuntimeError, match="clings on"):
            await host.stop()
        assert notes == ["first starts", "second starts", "second stops", "first stops"]
        assert host.outlet._producer._closed
        await host.wait()

    run(story)


def test_a_step_that_fails_is_tried_again_and_one_that_ends_the_process_does() -> None:
    """An error costs one period; Ended reaches whoever waits for the service."""

    async def story(pool: Pool) -> None:
        errors: list[Exception | None] = [Unavailable("away"), ValueError("odd"), None, Ended("over", exit_code=9)]
        done: list[int] = []

        async def step() -> None:
            done.append(pool.clock.monotonic_ms())
            if (error := errors[len(done) - 1]) is not None:
                raise error

        host = EventService(pool.runtime("host"))
        host.steps = [Step("work", 1_000, step)]
        began_ms = pool.clock.monotonic_ms()
        await host.start()
        with pytest.raises(Ended, match="over"):
            await host.wait()
        assert [at_ms - began_ms for at_ms in done] == [1_000, 2_000, 3_000, 4_000]
        await host.stop()

    run(story)


def test_one_copy_works_alone_and_the_next_begins_when_it_has_stopped() -> None:
    """The standby follows along and begins nothing; who lost the seat says so to whoever waits for it."""

    async def story(pool: Pool) -> None:
        notes: list[str] = []

        def copy(name: str) -> EventService:
            host = EventService(pool.runtime("host"))
            host.parts.append(Part(name, notes))
            host.work_alone(session_timeout_ms=6_000)
            return host

        first, second = copy("first"), copy("second")
        await first.start()
        await second.start()
        await pool.pass_s(30)
        assert (notes, first.ready, second.ready) == (["first starts"], True, True)
        await first.stop()
        await pool.pass_s(5)
        assert notes == ["first starts", "first stops", "second starts"]
        await second.stop()

    run(story)


def test_a_copy_that_stood_still_past_its_session_ends_and_the_standby_works() -> None:
    """Whoever lost the seat can't know what happened since: its process ends and starts anew as a standby."""

    async def story(pool: Pool) -> None:
        notes: list[str] = []
        runtimes = [pool.runtime("host"), pool.runtime("host")]
        hosts = [EventService(runtime) for runtime in runtimes]
        for index, host in enumerate(hosts):
            host.parts.append(Part(str(index), notes))
            host.work_alone(session_timeout_ms=6_000)
            await host.start()
        await pool.pass_s(5)
        runtimes[0].transport.lost_contact()
        await pool.pass_s(7)
        assert notes == ["0 starts", "1 starts"]
        runtimes[0].transport.regained()
        with pytest.raises(Ended, match="another copy of host works now"):
            await hosts[0].wait()
        for host in hosts:
            await host.stop()

    run(story)
