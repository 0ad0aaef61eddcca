"""The placement service: a standby until the seat is ours, then a leader until something ends it."""

from __future__ import annotations

import asyncio

from evenflow.core.errors import Ended
from evenflow.placement.inputs import lag_group
from evenflow.placement.leading import Leader
from evenflow.placement.rounds import Engine
from evenflow.placement.settings import PlacementSettings
from evenflow.platform.asgi import Asgi
from evenflow.platform.broker.subscriptions.seat import Seat
from evenflow.platform.broker.transactions import STOPPED, UNKNOWN
from evenflow.platform.cancelling import asked_for
from evenflow.platform.runtime import Runtime
from evenflow.platform.service import Measure

STOP_LIMIT_S = 15.0


class PlacementService:
    """One process of a pool's decider. `leader` is there from the moment it takes over; `leading` once rounds go."""

    def __init__(self, runtime: Runtime, settings: PlacementSettings, engine: Engine) -> None:
        self.name = runtime.name
        self.runtime = runtime
        self.settings = settings
        self.app: Asgi | None = None
        self.ready = False
        self.leader: Leader | None = None
        self._engine = engine
        self._seat = Seat(runtime, f"{settings.pool}-leader", settings.session_timeout_ms, self._interrupt)
        self._stop = asyncio.Event()
        self._run: asyncio.Task[None] | None = None
        self._ended: asyncio.Future[None] | None = None

    @property
    def leading(self) -> bool:
        """Whether this process decides now."""
        return self.leader is not None and self.leader.leading

    @property
    def groups(self) -> list[str]:
        """The group that shows how far the rounds have read."""
        return [lag_group(self.runtime.name, self.settings.pool)]

    @property
    def measures(self) -> list[Measure]:
        """What is looked at only when somebody asks."""
        return [] if self.leader is None else [self.leader.measure]

    @property
    def alone(self) -> bool:
        """The same, as of every service of which one copy works."""
        return self.leading

    async def start(self) -> None:
        """Join as a standby; taking over goes on in the background."""
        loop = asyncio.get_running_loop()
        self._ended = loop.create_future()
        await self._seat.start()
        self._run = loop.create_task(self._lead_when_seated())
        self.ready = True
        self.runtime.log.info("service started", service=self.name, instance=self.runtime.instance)

    async def stop(self) -> None:
        """Finish the round in hand, leave the seat."""
        self.ready = False
        self._stop.set()
        self._interrupt(stopping=True)
        if self._run is not None:
            await asyncio.wait([self._run], timeout=STOP_LIMIT_S)
            self._run.cancel()
            await asyncio.gather(self._run, return_exceptions=True)

    async def wait(self) -> None:
        """Return when stopped; raise Ended otherwise."""
        if self._ended is not None:
            await asyncio.shield(self._ended)

    def _interrupt(self, *, stopping: bool = False) -> None:
        if self.leader is not None:
            self.leader.interrupt(stopping=stopping)

    async def _lead_when_seated(self) -> None:
        """Wait for the seat, lead, leave the seat whatever happened, and say how it ended."""
        ended: Ended | None = None
        try:
            await self._seated_or_stopped()
            if not self._stop.is_set():
                self.leader = Leader(self.runtime, self.settings, self._engine, self._seat)
                await self.leader.lead()
        except Ended as error:
            ended = error
        except asyncio.CancelledError as error:
            if asked_for():
                raise
            ended = Ended("a client cancelled the leader", exit_code=UNKNOWN)
            ended.__cause__ = error
        except Exception as error:  # noqa: BLE001  whatever it was: this process can't know its state any more
            ended = Ended(f"{type(error).__name__}: {error}", exit_code=UNKNOWN)
            ended.__cause__ = error
        await self._leave()
        self._finish(ended)

    async def _leave(self) -> None:
        """Leave the seat. Whatever the client does at its end: whoever waits for this service must hear of it."""
        try:
            await self._seat.leave()
        except asyncio.CancelledError:
            if asked_for():
                raise
            self.runtime.log.warning("seat not left in order", problem="the client cancelled itself")
        except Exception as error:  # noqa: BLE001  the log finds out by the session
            self.runtime.log.warning("seat not left in order", problem=f"{type(error).__name__}: {error}")

    async def _seated_or_stopped(self) -> None:
        loop = asyncio.get_running_loop()
        waits = [loop.create_task(self._seat.held.wait()), loop.create_task(self._stop.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _finish(self, ended: Ended | None) -> None:
        code = ended.exit_code if ended is not None else STOPPED
        why = ended.message if ended is not None else "stopped as a standby"
        self.ready = False
        self.runtime.log.info("service ended", service=self.name, exit_code=code, why=why)
        if self._ended is None or self._ended.done():
            return
        if ended is None or code == STOPPED:
            self._ended.set_result(None)
        else:
            self._ended.set_exception(ended)
            self._ended.add_done_callback(lambda future: future.exception())
