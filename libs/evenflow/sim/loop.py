"""An asyncio event loop on virtual time: no selector, no socket, no thread, no wall clock.

Time moves only when nothing is ready, straight to the next timer. FastStream, anyio and asyncio's own primitives need
nothing but `time`, `call_soon`, `call_at` and futures, so the production services run on it unchanged.

Determinism: timers are ordered by (time, sequence); tasks and futures hash by sequence, so that sets of them iterate
in order of creation; callbacks of different processes that are ready at once are interleaved by a seeded source, the
order within one process is kept.

Two kinds of hang are found instead of slept through: nothing left to run, and a moment that never ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import heapq
import random
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, Final, TypeVar, TypeVarTuple

from evenflow.sim.process import PROCESS, Process
from evenflow.sim.seam import (
    PrivateParts,
    as_running,
    context_of,
    forget_task_state,
    run_handle,
    silence_destroyed_task,
)

#: Callbacks within one moment of virtual time after which the world is said to stand still.
CALLBACKS_PER_MOMENT_MAX: Final = 200_000

#: Rounding guard when seconds become milliseconds: sums of binary fractions may fall just short of the whole.
_HALF_MICROSECOND: Final = 0.0005

_Result = TypeVar("_Result")
_Args = TypeVarTuple("_Args")


class Stuck(RuntimeError):
    """The world cannot go on: nothing left to run, time stands still, or a thread came near."""


class SimTask(asyncio.Task[_Result]):
    """A task hashed by its sequence number; it remembers the context that its coroutine must be closed in."""

    __slots__ = ("context", "sequence")

    def __init__(
        self, coroutine: Coroutine[Any, Any, _Result], *, sequence: int, context: contextvars.Context, **named: Any
    ) -> None:
        self.sequence = sequence
        self.context = context
        super().__init__(coroutine, context=context, **named)

    def __hash__(self) -> int:
        return self.sequence

    def __eq__(self, other: object) -> bool:
        return self is other


class SimFuture(asyncio.Future[Any]):
    """A future hashed by its sequence number."""

    __slots__ = ("sequence",)

    sequence: int

    def __hash__(self) -> int:
        return self.sequence

    def __eq__(self, other: object) -> bool:
        return self is other


class VirtualLoop(PrivateParts):
    """The loop of one world.

    `interleaving` draws the order among processes that are ready at once; without it they run in order of readiness.
    `errors` collects what reached the exception handler. `callback_count` is the number of callbacks run.
    """

    def __init__(self, interleaving: random.Random | None = None) -> None:
        super().__init__()
        self._seconds = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._sequence = 0
        self._moment_began = 0
        self._interleaving = interleaving
        self._generators: dict[int, AsyncGenerator[Any, Any]] = {}
        self._owned: list[SimTask[Any]] = []
        self._graves: list[Process] = []
        self._kill_at: tuple[str, int, Callable[[Process], None]] | None = None
        self.callback_count = 0
        self.errors: list[dict[str, Any]] = []
        self.set_exception_handler(lambda _loop, context: self.errors.append(context))

    # -- time ---------------------------------------------------------------------------------------------------------
    def time(self) -> float:
        """Virtual seconds since the start of the world."""
        return self._seconds

    def time_ms(self) -> int:
        """Virtual milliseconds since the start of the world."""
        return int(self._seconds * 1000 + _HALF_MICROSECOND)

    def call_at(
        self,
        when: float,
        callback: Callable[[*_Args], object],
        *args: *_Args,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run the callback at a virtual time; equal times run in the order they were asked for."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, self._next(), handle))
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[*_Args], object],
        *args: *_Args,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run the callback after `delay` virtual seconds; a negative delay counts as none."""
        return self.call_at(self._seconds + max(0.0, delay), callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer stays in the heap and is skipped when its time comes."""

    # -- tasks and futures --------------------------------------------------------------------------------------------
    def create_task(
        self,
        coro: Coroutine[Any, Any, _Result] | Generator[Any, None, _Result],
        *,
        name: object = None,
        context: contextvars.Context | None = None,
        **named: Any,
    ) -> SimTask[_Result]:
        """A task named by its sequence number; its process, if any, keeps it alive."""
        self._check_open()
        own = contextvars.copy_context() if context is None else context
        sequence = self._next()
        task: SimTask[_Result] = SimTask(
            coro,  # type: ignore[arg-type]  # generators are not used
            sequence=sequence,
            context=own,
            loop=self,
            name=f"task-{sequence}" if name is None else str(name),
            **named,
        )
        process = own.get(PROCESS)
        if process is None:
            self._owned.append(task)
            if len(self._owned) % 256 == 0:
                self._owned = [kept for kept in self._owned if not kept.done()]
        else:
            process.own(task)
        return task

    def create_future(self) -> SimFuture:
        """A future of this loop."""
        future = SimFuture(loop=self)
        self._sequence = future.sequence = self._sequence + 1
        return future

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence

    def _check_open(self) -> None:
        if self.is_closed():
            raise RuntimeError("the world's loop is closed")

    # -- what must not happen here ------------------------------------------------------------------------------------
    def call_soon_threadsafe(
        self, callback: Callable[[*_Args], object], *args: *_Args, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        """Always raises Stuck: only a thread would call this."""
        raise Stuck(f"a thread reached the virtual loop with {function_name(callback)}")

    def run_in_executor(self, executor: Any, func: Callable[[*_Args], Any], *args: *_Args) -> asyncio.Future[Any]:
        """Always raises Stuck, naming the function: virtual time knows no threads."""
        raise Stuck(f"{function_name(func)} was given to a worker thread")

    def _asyncgen_firstiter_hook(self, agen: AsyncGenerator[Any, Any]) -> None:
        """Keep every unfinished asynchronous generator, so that none is finished by the collector."""
        self._generators[self._next()] = agen
        if len(self._generators) % 256 == 0:
            self._generators = {
                number: kept for number, kept in self._generators.items() if getattr(kept, "ag_frame", None) is not None
            }

    def _asyncgen_finalizer_hook(self, agen: AsyncGenerator[Any, Any]) -> None:
        """A generator dropped unfinished is not closed: production code closes its generators itself."""

    # -- processes ----------------------------------------------------------------------------------------------------
    def kill(self, process: Process) -> None:
        """End a process at once: nothing of it runs any more, no `finally`, no `except`."""
        if not process.dead:
            process.dead = True
            process.held.clear()
            self._graves.append(process)

    def pause(self, process: Process) -> None:
        """Hold everything the process would run, in order."""
        process.paused = True

    def resume(self, process: Process) -> None:
        """Let a paused process go on: what was held runs first, late timers together."""
        process.paused = False
        self._ready.extendleft(reversed(process.held))
        process.held.clear()

    def kill_at(self, name: str, callback_number: int, then: Callable[[Process], None]) -> None:
        """Call `then` before the n-th callback (from 1) of the process of that name.

        The callback runs when the process goes on, if `then` paused it, and never otherwise.
        """
        self._kill_at = (name, callback_number, then)

    # -- turning ------------------------------------------------------------------------------------------------------
    def _run_once(self) -> None:
        ready = self._ready
        if not ready and not self._advance():
            return
        if self.callback_count - self._moment_began > CALLBACKS_PER_MOMENT_MAX:
            raise Stuck(
                f"time stands still at {self._seconds:.3f} s: {CALLBACKS_PER_MOMENT_MAX} callbacks in one moment"
            )
        if self._interleaving is not None and len(ready) > 1:
            self._interleave(ready, self._interleaving)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle.cancelled():
                continue
            process = context_of(handle).get(PROCESS)
            if process is None or self._may_run(process, handle):
                self.callback_count += 1
                run_handle(handle)

    def _advance(self) -> bool:
        """Move time to the next timer of a living process; False when the loop is being stopped instead."""
        timers = self._timers
        while timers and (timers[0][2].cancelled() or self._belongs_to_the_dead(timers[0][2])):
            heapq.heappop(timers)
        if not timers:
            if self._stopping:
                return False
            raise Stuck(f"nothing left to run at {self._seconds:.3f} s")
        if timers[0][0] > self._seconds:
            self._seconds = timers[0][0]
            self._moment_began = self.callback_count
        while timers and timers[0][0] <= self._seconds:
            handle = heapq.heappop(timers)[2]
            if not handle.cancelled():
                self._ready.append(handle)
        return True

    @staticmethod
    def _belongs_to_the_dead(handle: asyncio.Handle) -> bool:
        process = context_of(handle).get(PROCESS)
        return process is not None and process.dead

    def _may_run(self, process: Process, handle: asyncio.Handle) -> bool:
        if process.dead:
            return False
        if process.paused:
            process.held.append(handle)
            return False
        process.callback_count += 1
        if self._kill_at is not None and self._kill_at[:2] == (process.name, process.callback_count):
            then = self._kill_at[2]
            self._kill_at = None
            then(process)
            if process.paused and not process.dead:
                process.held.append(handle)
            return False
        if process.doom is not None and process.callback_count >= process.doom[0]:
            _, strike = process.doom
            process.doom = None
            strike()
            return False
        return True

    @staticmethod
    def _interleave(ready: deque[asyncio.Handle], chance: random.Random) -> None:
        """Mix the processes' callbacks by the seed; the order within a process stays."""
        owners = [context_of(handle).get(PROCESS) for handle in ready]
        first = owners[0]
        if all(owner is first for owner in owners):
            return
        by_process: dict[Process | None, deque[asyncio.Handle]] = {}
        for owner, handle in zip(owners, ready, strict=True):
            waiting = by_process.get(owner)
            if waiting is None:
                waiting = by_process[owner] = deque()
            waiting.append(handle)
        ready.clear()
        queues = list(by_process.values())
        while queues:
            index = int(chance.random() * len(queues))
            ready.append(queues[index].popleft())
            if not queues[index]:
                queues.pop(index)

    # -- the end ------------------------------------------------------------------------------------------------------
    def bury(self) -> None:
        """Close what dead processes and the world left behind: in fixed order, each coroutine in its own context.

        Call it once, after the loop has stopped; living processes are to be killed before. Without it abandoned tasks
        would keep their worlds in memory.
        """
        self.set_exception_handler(lambda _loop, _context: None)
        closed: dict[SimTask[Any], None] = {}
        with as_running(self):
            # What a `finally` begins while it is closed is closed as well.
            while left := [task for task in self._pending() if task not in closed]:
                for task in left:
                    closed[task] = None
                    silence_destroyed_task(task)
                    forget_task_state(task)
                    _close(task)
        self._graves.clear()
        self._owned.clear()
        self._generators.clear()
        self._timers.clear()
        self._ready.clear()

    def _pending(self) -> list[SimTask[Any]]:
        tasks = [task for process in self._graves for task in process.tasks] + self._owned
        return [task for task in tasks if not task.done()]


def _close(task: SimTask[Any]) -> None:
    coroutine = task.get_coro()
    if coroutine is None:
        return
    try:
        task.context.run(coroutine.close)
    except BaseException:  # noqa: BLE001, S110  a buried process may not disturb the living, whatever its code does
        pass


def function_name(function: Callable[..., object]) -> str:
    """Module and name of a function, also inside a `partial` and behind `Context.run` (as `asyncio.to_thread` does)."""
    while isinstance(function, functools.partial):
        inner = function.func
        function = function.args[0] if getattr(inner, "__name__", "") == "run" and function.args else inner
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', repr(function))}"
