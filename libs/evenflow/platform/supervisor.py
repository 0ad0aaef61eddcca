"""Runs the services of one process, restarts each that ends, and stops them in reverse order within a bound.

A service that ends takes nothing with it: the log is the truth, so its successor goes on from there. Pauses between
restarts grow to a bound and start again after a quiet while. All waiting goes through the injected clock.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from evenflow.core.errors import Ended, Refused
from evenflow.platform.clock import Clock

EXITS_KEPT: Final = 100
EXIT_DONE: Final = 0
EXIT_ERROR: Final = 1
CANCEL_S: Final = 1.0


class Supervised(Protocol):
    """One incarnation of a service; a restart makes another."""

    async def start(self) -> None:
        """Return when it serves. Refused means that it can't ever, as with wrong settings."""

    async def wait(self) -> None:
        """Return or raise when it has ended by itself; Ended carries the exit code."""

    async def stop(self) -> None:
        """Finish what is under way and let go of everything. Called once for each start, whatever came of it."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the supervisor waits for what. Seconds."""

    pause_min_s: float = 0.2
    pause_max_s: float = 10.0
    quiet_s: float = 60.0
    stop_s: float = 15.0
    start_s: float = 60.0


DEFAULT_PATIENCE: Final = Patience()


@dataclass(frozen=True, slots=True)
class Exit:
    """One end of one service."""

    service: str
    code: int
    reason: str
    at_ms: int


@dataclass(slots=True)
class _Kept:
    """One place in the list: what makes its service, and the task that keeps it running."""

    name: str
    make: Callable[[], Supervised]
    serves: asyncio.Event = field(default_factory=asyncio.Event)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Supervisor:
    """Add services in the order in which they depend on each other, start, wait, stop.

    `exits` keeps the last hundred ends, for a status page and for tests. With `ended_is_final` a service that says
    Ended is not started again: its process ends with that code, and whoever runs processes starts another.
    """

    def __init__(
        self, clock: Clock, log: Any, patience: Patience = DEFAULT_PATIENCE, *, ended_is_final: bool = False
    ) -> None:
        self._clock = clock
        self._log = log
        self._patience = patience
        self._kept: list[_Kept] = []
        self._stopping = False
        self._over = asyncio.Event()
        self._ended_is_final = ended_is_final
        self._final: Refused | Ended | None = None
        self.exits: deque[Exit] = deque(maxlen=EXITS_KEPT)

    def add(self, name: str, make: Callable[[], Supervised]) -> None:
        """Run what `make` returns, a fresh object for each start. ValueError for a name used twice."""
        if any(kept.name == name for kept in self._kept):
            raise ValueError(f"a service named {name} is added already")
        self._kept.append(_Kept(name, make))

    async def start(self) -> None:
        """Start all in order, each after the one before serves.

        An error at start is tried again after a pause, since a server may not be up yet. Refused is final, and Ended
        where it was said to be: what was started is stopped and the error raised.
        """
        for kept in self._kept:
            kept.task = asyncio.create_task(self._keep(kept), name=f"supervise {kept.name}")
            await self._done_before(kept.task, kept.serves.wait())
            if self._final is not None:
                await self.stop()
                raise self._final
            if self._stopping:
                return

    async def wait(self) -> None:
        """Return when all were stopped; raise Refused when one refuses to start again, or a final Ended."""
        await self._over.wait()
        if self._final is not None:
            raise self._final

    async def stop(self) -> None:
        """Stop all in reverse order, each within `stop_s`, then cut off. A second call waits for nothing."""
        self._stopping = True
        for kept in reversed(self._kept):
            kept.stopping.set()
            task, kept.task = kept.task, None
            if task is not None and not await self._done_before(
                task, self._clock.sleep(self._patience.stop_s + 3 * CANCEL_S)
            ):
                await self._cancel(task)
        self._over.set()

    async def run(self, until: asyncio.Event) -> None:
        """Start, serve until the event is set, stop. Raises what `start` and `wait` do."""
        await self.start()
        try:
            over = asyncio.create_task(self.wait())
            if await self._done_before(over, until.wait()):
                over.result()
            over.cancel()
        finally:
            await self.stop()

    async def _keep(self, kept: _Kept) -> None:
        """Run one service over and over until all are told to stop."""
        pause_s = self._patience.pause_min_s
        while not kept.stopping.is_set():
            began_ms = self._clock.monotonic_ms()
            ended = await self._live(kept)
            if ended is None:
                return
            self.exits.append(ended)
            if self._final is not None:
                event = "service ended for good" if isinstance(self._final, Ended) else "service refused to start"
                self._log.error(event, service_name=kept.name, exit_code=ended.code, reason=ended.reason)
                self._over.set()
                return
            if self._clock.monotonic_ms() - began_ms >= self._patience.quiet_s * 1000:
                pause_s = self._patience.pause_min_s
            self._log.warning(
                "service ended", service_name=kept.name, exit_code=ended.code, reason=ended.reason, restart_in_s=pause_s
            )
            pause = asyncio.create_task(self._clock.sleep(pause_s))
            if not await self._done_before(pause, kept.stopping.wait()):
                await self._cancel(pause)
            pause_s = min(pause_s * 2, self._patience.pause_max_s)

    async def _live(self, kept: _Kept) -> Exit | None:
        """One life: how it ended, or None when it was stopped on request."""
        try:
            service = kept.make()
        except Exception as error:  # noqa: BLE001  whatever one service raises, the others go on
            self._final = self._finally(error)
            return self._exit(kept, error)
        work: asyncio.Task[None] = asyncio.create_task(service.start(), name=f"start {kept.name}")
        try:
            if not await self._done_before(work, kept.stopping.wait(), self._clock.sleep(self._patience.start_s)):
                late = TimeoutError(f"did not start within {self._patience.start_s} s")
                return None if kept.stopping.is_set() else self._exit(kept, late)
            failure = _failure(work)
            if failure is not None:
                self._final = self._finally(failure)
                return self._exit(kept, failure)
            self._log.info("service serves", service_name=kept.name)
            kept.serves.set()
            work = asyncio.create_task(service.wait(), name=f"wait {kept.name}")
            if not await self._done_before(work, kept.stopping.wait()):
                return None
            failure = _failure(work)
            self._final = failure if self._ended_is_final and isinstance(failure, Ended) else None
            return self._exit(kept, failure)
        finally:
            await self._cancel(work)
            await self._let_go(kept, service)

    async def _let_go(self, kept: _Kept, service: Supervised) -> None:
        """The service's own stop, bounded; its errors are logged and go no further."""
        task = asyncio.create_task(service.stop(), name=f"stop {kept.name}")
        try:
            if not await self._done_before(task, self._clock.sleep(self._patience.stop_s)):
                self._log.error("service cut off", service_name=kept.name, stop_s=self._patience.stop_s)
                return
            error = _failure(task)
            if error is not None:
                self._log.error("service stopped badly", service_name=kept.name, reason=_reason(error))
        finally:
            await self._cancel(task)

    async def _done_before(self, work: asyncio.Task[Any], *ends: Coroutine[Any, Any, Any]) -> bool:
        """Wait for the work or for the first of the ends, which are cancelled; True when the work is done."""
        waiting = [asyncio.create_task(end) for end in ends]
        try:
            await asyncio.wait((work, *waiting), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        return work.done()

    async def _cancel(self, task: asyncio.Task[Any]) -> None:
        """Cancel what is not done; one that clings on is left behind after a second."""
        if not task.done():
            task.cancel()
            await self._done_before(task, self._clock.sleep(CANCEL_S))
        if task.done():
            _failure(task)

    def _finally(self, failure: BaseException) -> Refused | Ended | None:
        """What a failed start leaves no way back from."""
        if isinstance(failure, Refused):
            return failure
        return failure if self._ended_is_final and isinstance(failure, Ended) else None

    def _exit(self, kept: _Kept, error: BaseException | None) -> Exit:
        code = error.exit_code if isinstance(error, Ended) else EXIT_DONE if error is None else EXIT_ERROR
        return Exit(kept.name, code, "ended by itself" if error is None else _reason(error), self._clock.now_ms())


def _failure(task: asyncio.Task[Any]) -> BaseException | None:
    """What a finished task raised; being cancelled from inside counts as a failure."""
    return asyncio.CancelledError("cancelled from inside") if task.cancelled() else task.exception()


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
