"""One term of a leader: fence, restore, inputs, tables, an empty round that claims the epoch, then rounds.

The order is what makes it safe (docs/adr has why): ids before the end of the state is read, offsets from the state's
own record, and memory changed after the commit by the same function as in the restore. Every way out is an `Ended`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from evenflow.core.errors import Ended, EvenflowError
from evenflow.placement.images import Images
from evenflow.placement.inputs import Input, Inputs
from evenflow.placement.memory.capacity import Capacity
from evenflow.placement.memory.model import Model
from evenflow.placement.memory.tables import STREAMS, Tables
from evenflow.placement.restoring import restore
from evenflow.placement.rounds import Decided, Engine, Rounds
from evenflow.placement.settings import PlacementSettings
from evenflow.platform.broker.codec import Received
from evenflow.platform.broker.follower import Follower
from evenflow.platform.broker.subscriptions.seat import Seat
from evenflow.platform.broker.transactions import LOST, STOPPED, UNKNOWN, Transactions
from evenflow.platform.observability.signals import (
    ASSIGNED,
    COMMITTING,
    DECIDING,
    LEADING,
    ROUNDS,
    WAITING,
    WAITING_AGE,
)
from evenflow.platform.observability.trace import Attributes
from evenflow.platform.runtime import Runtime

#: Most time to leave the inputs in order.
CLOSE_LIMIT_S: Final = 5.0


class PoolClock:
    """The pool's time: wall clock at the start, then this process's monotonic clock, never before the last leader's."""

    def __init__(self, runtime: Runtime, not_before_ms: int) -> None:
        self._clock = runtime.clock
        self._base_ms = max(runtime.clock.now_ms(), not_before_ms)
        self._started_ms = runtime.clock.monotonic_ms()

    def now_ms(self) -> int:
        """Milliseconds since 1970, as this pool counts them."""
        return self._base_ms + self._clock.monotonic_ms() - self._started_ms


class Leader:
    """Leads one pool until stopped, lost, fenced or worse."""

    def __init__(self, runtime: Runtime, settings: PlacementSettings, engine: Engine, seat: Seat) -> None:
        self._runtime = runtime
        self._settings = settings
        self._seat = seat
        self._wake = asyncio.Event()
        self._failure: BaseException | None = None
        self._stopping = False
        self._again = False
        self._engine_wake_ms: int | None = None
        self._state_end = 0
        self._image_end = -1
        self._image: asyncio.Task[None] | None = None
        self._image_due_ms = 0
        self._shown: asyncio.Task[None] | None = None
        self.tables = Tables(self._wake.set)
        self.capacity = Capacity()
        self.model = Model(settings.pool, self.capacity)
        self.rounds = Rounds(runtime, settings, self.model, self.tables, self.capacity, engine)
        self._images = Images(runtime, settings.pool)
        self._inputs = Inputs(runtime, settings, self._wake.set)
        self._follower = Follower(runtime, STREAMS, self.tables.apply, self._fail)
        self._transactions = Transactions(
            runtime,
            f"evenflow.placement.{settings.pool}",
            round_limit_s=settings.round_limit_ms / 1000,
            fence_limit_s=settings.fence_limit_ms / 1000,
        )
        self._clock = PoolClock(runtime, 0)
        self.epoch = 0
        self.leading = False

    def interrupt(self, *, stopping: bool = False) -> None:
        """Look at once whether to go on: told to stop, or the seat was lost."""
        self._stopping = self._stopping or stopping
        self._wake.set()

    async def lead(self) -> None:
        """Lead. Never returns; raises Ended with the exit code that says why."""
        try:
            await self._take_over()
            while True:
                await self._wait()
                self._check()
                await self._round()
        finally:
            self.leading = False
            self._runtime.metrics.of(LEADING).record(0, pool=self._settings.pool)
            await self._close()

    # --- taking over --------------------------------------------------------------------------------------------------

    async def _take_over(self) -> None:
        runtime, settings = self._runtime, self._settings
        await self._transactions.fence(lambda: not self._seat.lost)
        await runtime.point(f"{runtime.name}.after-fence")
        self._state_end = await restore(runtime, settings, self.model, self._images)
        await runtime.point(f"{runtime.name}.after-restore")
        await self._inputs.start(self.model.pool.offsets, self._fail)
        await self._follower.start()
        self._clock = PoolClock(runtime, self.model.pool.time_ms)
        now_ms = self._clock.now_ms()
        self.model.restored(now_ms)
        self.tables.dirty_nodes.update(dict.fromkeys([*self.tables.nodes, *self.model.on_node]))
        self.rounds.explainer.look_at([row.key for row in self.model.tasks.values() if row.key in self.model.waiting])
        self.epoch = self.model.pool.epoch + 1
        self._check()
        await self._write(self.rounds.claim(self.epoch, now_ms))
        self._image_due_ms = now_ms + settings.snapshot_period_ms
        self._again = True
        self.leading = True
        runtime.metrics.of(LEADING).record(1, pool=settings.pool)
        runtime.log.info("leading", pool=settings.pool, epoch=self.epoch, tasks=len(self.model.tasks))

    # --- rounds -------------------------------------------------------------------------------------------------------

    async def _wait(self) -> None:
        """Until there is something to do; then a moment more, so that a round takes what comes together."""
        settings, clock = self._settings, self._runtime.clock
        if self._again:
            await clock.sleep(0)
            return
        if not self._inputs.waiting_count and not self.tables.dirty_nodes:
            due_ms = self._due_ms()
            alarm = asyncio.get_running_loop().create_task(self._alarm(due_ms))
            try:
                await self._wake.wait()
            finally:
                alarm.cancel()
        if 0 < self._inputs.waiting_count < settings.round_records_max and settings.gather_ms:
            await clock.sleep(settings.gather_ms / 1000)
        else:
            await clock.sleep(0)

    async def _alarm(self, due_ms: int) -> None:
        await self._runtime.clock.sleep(max(0, due_ms - self._clock.now_ms()) / 1000)
        self._wake.set()

    def _due_ms(self) -> int:
        """When time alone gives this leader something to do."""
        now_ms = self._clock.now_ms()
        settings, model = self._settings, self.model
        oldest_ms = model.oldest_end_ms()
        times = [
            now_ms + settings.round_period_ms,
            self._image_due_ms,
            self._engine_wake_ms,
            model.next_due_ms,
            model.waiting.wake_ms,
            self.tables.wake_ms,
            self.rounds.explainer.wake_ms(now_ms),
            oldest_ms + settings.task_id_retention_ms if oldest_ms is not None else None,
        ]
        return min(at for at in times if at is not None)

    def _check(self) -> None:
        if self._failure is not None:
            problem = f"{type(self._failure).__name__}: {self._failure}"
            raise Ended(f"an input can't be read: {problem}", exit_code=UNKNOWN) from self._failure
        if self._stopping:
            raise Ended("stopped", exit_code=STOPPED)
        if self._seat.lost:
            raise Ended("the seat was lost", exit_code=LOST)

    def _fail(self, error: BaseException) -> None:
        self._failure = error
        self._wake.set()

    async def _round(self) -> None:
        self._wake.clear()
        self._again = False
        now_ms = self._clock.now_ms()
        if self._engine_wake_ms is not None and self._engine_wake_ms <= now_ms:
            self._engine_wake_ms = None
            self.model.waiting.bump()
        began_ms = self._runtime.clock.monotonic_ms()
        decided = self.rounds.decide(self._inputs.take(), self.epoch, now_ms)
        decide_ms = self._runtime.clock.monotonic_ms() - began_ms
        version = self.model.waiting.version
        if not decided.empty:
            self._runtime.metrics.of(DECIDING).record(decide_ms, pool=self._settings.pool)
            await self._write(decided)
        planned = decided.planned
        if planned.wake_ms is not None:
            self._engine_wake_ms = min(planned.wake_ms, self._engine_wake_ms or planned.wake_ms)
        changed = self.model.waiting.version != version and len(self.model.waiting) > 0
        self._again = planned.more or changed or self._inputs.waiting_count > 0
        self._image_if_due(now_ms)

    async def _write(self, decided: Decided) -> None:
        """Commit, then let memory follow by the same function as in the restore."""
        draft, tracing, clock = decided.draft, self._runtime.tracing, self._runtime.clock
        began_ms = clock.monotonic_ms()
        about: Attributes = {"evenflow.pool": self._settings.pool, "evenflow.round": draft.round}
        with tracing.span("round", links=_headers(decided.inputs) if tracing.on else (), attributes=about):
            offsets = await self._transactions.write(draft.round, decided.records, decided.partitions)
            commit_ms = clock.monotonic_ms() - began_ms
            tracing.published(decided.records, commit_ms)
            self._state_end = offsets[-1]
            self.rounds.take(decided)
            self._tell(decided, commit_ms)
        for note in draft.notes:
            fields = dict(note)
            self._runtime.log.warning(fields.pop("text"), **fields)
        if self._shown is None or self._shown.done():
            self._shown = asyncio.get_running_loop().create_task(self._inputs.show(decided.pool.offsets))

    def _tell(self, decided: Decided, commit_ms: int) -> None:
        """One line and the figures of a round that is committed."""
        pool, metrics, placed = self._settings.pool, self._runtime.metrics, decided.draft.counts.assigned
        metrics.of(ROUNDS).record(1, pool=pool)
        metrics.of(COMMITTING).record(commit_ms, pool=pool)
        metrics.of(ASSIGNED).record(placed, pool=pool)
        metrics.of(WAITING).record(len(self.model.waiting), pool=pool)
        self._runtime.log.info(
            "round committed",
            pool=pool,
            epoch=self.epoch,
            round=decided.draft.round,
            inputs=len(decided.inputs),
            placed=placed,
            waiting=len(self.model.waiting),
            records=len(decided.records),
            commit_ms=commit_ms,
        )

    async def measure(self) -> None:
        """Figures that are worked out when they are asked for: they take a look at every task that waits."""
        pool, model = self._settings.pool, self.model
        since = min((row.queued_ms for key, row in model.tasks.items() if key in model.waiting), default=None)
        age_ms = 0 if since is None else max(0, self._clock.now_ms() - since)
        self._runtime.metrics.of(WAITING).record(len(model.waiting), pool=pool)
        self._runtime.metrics.of(WAITING_AGE).record(age_ms // 1000, pool=pool)

    # --- images -------------------------------------------------------------------------------------------------------

    def _image_if_due(self, now_ms: int) -> None:
        if now_ms < self._image_due_ms:
            return
        self._image_due_ms = now_ms + self._settings.snapshot_period_ms
        if self._image_end != self._state_end and (self._image is None or self._image.done()):
            self._image = asyncio.get_running_loop().create_task(self._write_image())

    async def _write_image(self) -> None:
        """Write an image of the state; failing to costs nothing but a longer restore."""
        offset, keys = self._state_end, [key for key, _ in self.model.rows()]
        try:
            count = await self._images.write(offset, keys, self.model.row)
        except (EvenflowError, OSError) as error:
            self._runtime.log.warning("no state image written", problem=f"{type(error).__name__}: {error}")
        else:
            self._image_end = offset
            self._runtime.log.debug("state image written", offset=offset, rows=count)

    async def _close(self) -> None:
        tasks = [task for task in (self._image, self._shown) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(CLOSE_LIMIT_S):
                await asyncio.gather(self._inputs.stop(), self._follower.stop(), return_exceptions=True)
        except TimeoutError:
            self._runtime.log.warning("inputs not left in order")
        await self._transactions.close()


def _headers(inputs: Sequence[Input]) -> list[str]:
    """The trace contexts of what a round took in: it follows from all of them, so they are its links."""
    return [one.received.envelope.traceparent for one in inputs if isinstance(one.received, Received)]
