"""Retry, then park: what happens to a record that can't be handled.

A record that can't be read, and one whose handler refuses it for good, goes to `<topic>.dlq` with its exact bytes, its
origin and the reason. A failing store or server is retried with growing pauses, in place, well below the group's
poll limit. Only a parked or applied record is committed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from evenflow.core.errors import Ended, EvenflowError
from evenflow.events.streams import BY_NAME, dead_letters_of
from evenflow.platform.broker.codec import PROBLEM_LENGTH_MAX, Bad, Encoded, Received
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.broker.ports import Record
from evenflow.platform.observability.logs import unit_of_work
from evenflow.platform.observability.signals import HANDLED, HANDLING
from evenflow.platform.runtime import Runtime

ATTEMPTS_MAX: Final = 6
PAUSE_S: Final = 0.05
PAUSE_S_MAX: Final = 5.0
HEADERS_KEPT_BYTES: Final = 65_536

ORIGIN: Final = "x-dlq-origin"
ERROR: Final = "x-dlq-error"
SERVICE: Final = "x-dlq-service"
AT_MS: Final = "x-dlq-at-ms"
HEADERS: Final = "x-dlq-headers"

T = TypeVar("T")


def parked(record: Record, *, code: str, problem: str, service: str, now_ms: int) -> Encoded:
    """The dead letter of a record: same key and bytes, origin and reason in headers."""
    kept: list[str] = []
    size = 0
    for name, value in record.headers:
        pair = f"{name.encode('utf-8', 'surrogatepass').hex()}={(value or b'').hex() if value is not None else '-'}"
        size += len(pair)
        if size > HEADERS_KEPT_BYTES:
            break
        kept.append(pair)
    headers = [
        ("ce_specversion", b"1.0"),
        ("ce_type", b"record.parked"),
        ("ce_id", f"parked-{record.topic}-{record.partition}-{record.offset}".encode()),
        ("ce_source", service.encode()),
        (ORIGIN, f"{record.topic}/{record.partition}/{record.offset}".encode()),
        (ERROR, f"{code}: {problem}"[:PROBLEM_LENGTH_MAX].encode("utf-8", "replace")),
        (SERVICE, service.encode()),
        (AT_MS, str(now_ms).encode()),
        (HEADERS, ",".join(kept).encode()),
    ]
    return Encoded(dead_letters_of(record.topic), record.key or b"-", record.value, headers)


class DeadLetters:
    """Parks records for one service."""

    def __init__(self, runtime: Runtime, outlet: Outlet) -> None:
        self._runtime = runtime
        self._outlet = outlet
        self.parked_count = 0
        self._handled = runtime.metrics.of(HANDLED)
        self._handling = runtime.metrics.of(HANDLING)

    async def park(self, bad: Bad) -> None:
        """Write the dead letter; raises Unavailable when the log does not confirm it."""
        if bad.record.topic not in BY_NAME:
            return
        runtime = self._runtime
        letter = parked(
            bad.record, code=bad.code, problem=bad.problem, service=runtime.name, now_ms=runtime.clock.now_ms()
        )
        await self._outlet.send([letter])
        self.parked_count += 1
        record = bad.record
        self._handled.record(1, topic=record.topic, outcome="parked")
        origin = f"{record.topic}/{record.partition}/{record.offset}"
        runtime.log.warning("record parked", origin=origin, code=bad.code, problem=bad.problem)

    async def patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call, again after a growing pause while the error is retriable; the last error comes out."""
        pause = PAUSE_S
        for attempt in range(1, ATTEMPTS_MAX + 1):
            try:
                return await call()
            except Ended:
                raise
            except Exception as error:
                if attempt == ATTEMPTS_MAX or not retriable(error):
                    raise
            await self._runtime.clock.sleep(pause * (0.5 + self._runtime.random.random() / 2))
            pause = min(PAUSE_S_MAX, pause * 3)
        raise AssertionError  # the loop returns or raises

    async def handle(
        self,
        received: Sequence[Received | Bad],
        records: Sequence[Record],
        handler: Callable[[list[Received]], Awaitable[None]],
    ) -> None:
        """Give the readable ones to the handler, park the others; if the batch fails for good, find the one that does.

        Retriable errors that outlast the retries come out, so that nothing is committed and the log redelivers.
        """
        for one in received:
            if isinstance(one, Bad):
                await self.patiently(lambda bad=one: self.park(bad))  # type: ignore[misc]  # bound per turn
        good = [one for one in received if isinstance(one, Received)]
        if not good:
            return
        if not self._runtime.tracing.on:
            await self._handle_good(good, records, handler)
            return
        with self._runtime.tracing.handling(records[0].topic, [one.envelope.traceparent for one in good]):
            await self._handle_good(good, records, handler)

    async def _handle_good(
        self,
        good: list[Received],
        records: Sequence[Record],
        handler: Callable[[list[Received]], Awaitable[None]],
    ) -> None:
        runtime, topic = self._runtime, records[0].topic
        began_ms, parked_before = runtime.clock.monotonic_ms(), self.parked_count
        with unit_of_work(runtime.log, runtime.clock, "records handled", topic=topic, records=len(good)):
            try:
                await self._apply(good, records, handler)
            except Exception:
                self._handled.record(len(good), topic=topic, outcome="again")
                raise
        self._handled.record(len(good) - (self.parked_count - parked_before), topic=topic, outcome="applied")
        self._handling.record(runtime.clock.monotonic_ms() - began_ms, topic=topic)

    async def _apply(
        self,
        good: list[Received],
        records: Sequence[Record],
        handler: Callable[[list[Received]], Awaitable[None]],
    ) -> None:
        try:
            await self.patiently(lambda: handler(good))
        except Ended:
            raise
        except Exception as error:
            if retriable(error):
                raise
            await self._one_by_one(good, records, handler)

    async def _one_by_one(
        self,
        good: Sequence[Received],
        records: Sequence[Record],
        handler: Callable[[list[Received]], Awaitable[None]],
    ) -> None:
        by_origin = {f"{r.topic}/{r.partition}/{r.offset}": r for r in records}
        for one in good:
            try:
                await self.patiently(lambda single=one: handler([single]))  # type: ignore[misc]  # bound per turn
            except Ended:
                raise
            except Exception as error:
                if retriable(error):
                    raise
                code = error.code if isinstance(error, EvenflowError) else type(error).__name__
                bad = Bad(by_origin[one.origin], code, str(error))
                await self.patiently(lambda letter=bad: self.park(letter))  # type: ignore[misc]  # bound per turn


def retriable(error: BaseException) -> bool:
    """Whether the same call may succeed later: our tree says so itself, so do the log client's errors and time-outs."""
    return bool(getattr(error, "retriable", isinstance(error, OSError | TimeoutError)))
