"""The one shape of a running service: tables followed, events handled, steps taken, one way to start, stop and end.

A service's `main.build(runtime, settings)` puts one together; the supervisor, the simulator and the command line run
it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evenflow.core.errors import Ended
from evenflow.events.streams import Stream
from evenflow.platform.asgi import Asgi
from evenflow.platform.broker.codec import Received
from evenflow.platform.broker.dead_letters import retriable
from evenflow.platform.broker.follower import Follower
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.broker.subscriptions.inlet import Inlet
from evenflow.platform.broker.subscriptions.seat import Seat
from evenflow.platform.broker.transactions import LOST
from evenflow.platform.cancelling import CANCELLED, asked_for, watched
from evenflow.platform.observability.signals import STEP, STEPS
from evenflow.platform.runtime import Runtime
from evenflow.platform.supervisor import Supervised


class Service(Supervised, Protocol):
    """What a host needs of any service or agent: to run it, and to name it."""

    name: str


Measure = Callable[[], Awaitable[None]]


class Part(Protocol):
    """Something of a service's own that runs beside its handlers."""

    async def start(self) -> None: ...
    async def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Step:
    """Periodic work: `call` is awaited every `period_ms`, first after one period."""

    name: str
    period_ms: int
    call: Callable[[], Awaitable[None]]


class EventService:
    """A service made of followers, subscriptions, parts and steps.

    Order at start: outlet, followers (caught up), `restore`, subscriptions, parts, steps. `app` is served by the host
    if set. With `work_alone` a copy is a standby after its followers, and goes on when no other copy works.
    `measures` are awaited before the host hands out its figures: for levels that nobody needs in between.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.name = runtime.name
        self.runtime = runtime
        self.outlet = Outlet(runtime)
        self.inlet = Inlet(runtime, self.outlet, self.end)
        self.followers: list[Follower] = []
        self.steps: list[Step] = []
        self.parts: list[Part] = []
        self.restore: Callable[[], Awaitable[None]] | None = None
        self.measures: list[Measure] = []
        self.more_groups: list[str] = []
        self.app: Asgi | None = None
        self.ready = False
        self._seat: Seat | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._ended: asyncio.Future[None] | None = None

    def follow(
        self,
        streams: Sequence[Stream],
        apply: Callable[[Received], None],
        *,
        pace: Callable[[], Awaitable[None]] | None = None,
        past: Sequence[Stream] = (),
    ) -> Follower:
        """Hold a table of whole streams; restored before anything is handled, but for one with a `pace` of its own.

        Of the streams in `past` what expired is read from the archive first.
        """
        follower = Follower(self.runtime, streams, apply, self.end, pace, past)
        self.followers.append(follower)
        return follower

    def work_alone(self, session_timeout_ms: int) -> None:
        """Let one copy work at a time: for a service that draws conclusions from all that it hears.

        The others follow along and take over when it ends, or says nothing for `session_timeout_ms`.
        """
        self._seat = Seat(self.runtime, "seat", session_timeout_ms, self._seat_lost)

    @property
    def groups(self) -> list[str]:
        """The consumer groups by which this service reads, for displays of how far they are behind."""
        return [*self.inlet.groups, *self.more_groups]

    @property
    def alone(self) -> bool | None:
        """Whether this copy works while others stand by; None for a service of which every copy works."""
        return None if self._seat is None else self._seat.held.is_set() and not self._seat.lost

    def _seat_lost(self) -> None:
        self.end(Ended(f"another copy of {self.name} works now", exit_code=LOST))

    async def start(self) -> None:
        """Connect, follow, begin: at once, or when the seat is ours."""
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        await self.outlet.start()
        for follower in self.followers:
            await follower.start()
        if self._seat is None:
            await self._begin()
        else:
            await self._seat.start()
            self._tasks = [self._watched(self._begin_when_seated(self._seat), "seat")]
        self.ready = True
        self.runtime.log.info("service started", service=self.name, instance=self.runtime.instance)

    async def _begin(self) -> None:
        if self.restore is not None:
            await self.restore()
        await self.inlet.start()
        for part in self.parts:
            await part.start()
        self._tasks += [self._watched(self._repeat(step), f"step {step.name}") for step in self.steps]

    def _watched(self, work: Coroutine[Any, Any, None], part: str) -> asyncio.Task[None]:
        return watched(asyncio.get_running_loop().create_task(work, name=f"{self.name}'s {part}"), self.end)

    async def _begin_when_seated(self, seat: Seat) -> None:
        try:
            await seat.held.wait()
            await self._begin()
        except Exception as error:  # noqa: BLE001  it comes out where the service is waited for
            self.end(error)

    async def stop(self) -> None:
        """Finish what is in hand and leave. All are stopped, whatever one of them raises; the first error comes out."""
        self.ready = False
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        stops = [part.stop for part in reversed(self.parts)]
        stops += [self.inlet.stop, *(follower.stop for follower in self.followers), self.outlet.stop]
        stops += [] if self._seat is None else [self._seat.leave]
        failure: Exception | None = None
        for stop in stops:
            try:
                await stop()
            except asyncio.CancelledError as error:
                if asked_for():
                    raise
                failure = failure or Ended(f"{self.name}: a client cancelled itself: {error!r}", exit_code=CANCELLED)
            except Exception as error:  # noqa: BLE001  it comes out once the others have let go
                failure = failure or error
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)
        if failure is not None:
            raise failure

    async def wait(self) -> None:
        """Return when stopped; raise what ended the service otherwise."""
        if self._ended is not None:
            await asyncio.shield(self._ended)

    def end(self, error: BaseException) -> None:
        """Say that the service can't go on: whoever waits for it gets the error."""
        if self._ended is not None and not self._ended.done():
            self._ended.set_exception(error)

    async def _repeat(self, step: Step) -> None:
        clock, metrics = self.runtime.clock, self.runtime.metrics
        while True:
            await clock.sleep(step.period_ms / 1000)
            began_ms = clock.monotonic_ms()
            outcome = "done"
            try:
                await step.call()
            except Ended as error:
                self.end(error)
                return
            except Exception as error:  # noqa: BLE001  one failed step must not end the service; the next one tries again
                level = self.runtime.log.warning if retriable(error) else self.runtime.log.error
                level("step failed", step=step.name, problem=f"{type(error).__name__}: {error}")
                outcome = "failed"
            metrics.of(STEPS).record(1, step=step.name, outcome=outcome)
            metrics.of(STEP).record(clock.monotonic_ms() - began_ms, step=step.name)
