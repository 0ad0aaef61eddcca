"""Subscribing: FastStream with the product's one way of reading, retrying and acknowledging.

Handlers take one parameter, the received event (or a list of them). A record's header, body, key, version and handler
errors all end in the same place: applied, or parked. The acknowledgement policy is NACK_ON_ERROR: what comes out of the
retries (a store that stays away, a process that must end) is never committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from faststream import AckPolicy
from faststream.kafka import KafkaBroker
from faststream.kafka.message import KafkaMessage

from evenflow.core.errors import Ended, Unavailable
from evenflow.events.streams import Stream
from evenflow.platform.broker.codec import Bad, Received, decode
from evenflow.platform.broker.dead_letters import DeadLetters
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.broker.ports import Record
from evenflow.platform.broker.subscriptions.lean import LeanRunner
from evenflow.platform.broker.subscriptions.subscription import BatchHandler, Handle, Subscription, group_of
from evenflow.platform.cancelling import asked_for
from evenflow.platform.runtime import Runtime

Handler = Callable[[Received], Awaitable[None]]

HEARTBEAT_MS_MAX: Final = 3_000


class Inlet:
    """The subscriptions of one service."""

    def __init__(self, runtime: Runtime, outlet: Outlet, ended: Callable[[BaseException], None]) -> None:
        self._runtime = runtime
        self._ended = ended
        self._subscriptions: list[Subscription] = []
        self._runner: LeanRunner | FastStreamRunner | None = None
        self.dead_letters = DeadLetters(runtime, outlet)

    def on(self, stream: Stream) -> Callable[[Handler], Handler]:
        """One event at a time, in order within each key."""

        def register(handler: Handler) -> Handler:
            async def single(events: list[Received]) -> None:
                await handler(events[0])

            self._subscriptions.append(Subscription(stream, single))
            return handler

        return register

    def on_batch(self, stream: Stream, *, max_records: int = 500) -> Callable[[BatchHandler], BatchHandler]:
        """Lists of events of several partitions, in order within each; for high rates. Handlers must be idempotent."""

        def register(handler: BatchHandler) -> BatchHandler:
            self._subscriptions.append(Subscription(stream, handler, max_records=max_records))
            return handler

        return register

    @property
    def groups(self) -> list[str]:
        """The consumer groups of all subscriptions."""
        return [group_of(self._runtime.name, one.stream) for one in self._subscriptions]

    async def start(self) -> None:
        """Join the groups and begin."""
        if self._subscriptions:
            self._runner = LeanRunner(self._runtime) if self._runtime.lean else FastStreamRunner(self._runtime)
            await self._runner.start(self._subscriptions, self._handle)

    async def stop(self) -> None:
        """Let handlers finish within a bound and leave the groups."""
        if self._runner is not None:
            await self._runner.stop()

    async def _handle(
        self, received: Sequence[Received | Bad], records: Sequence[Record], handler: BatchHandler
    ) -> None:
        try:
            await self.dead_letters.handle(received, records, handler)
        except Ended as error:
            self._ended(error)
            raise
        except asyncio.CancelledError as error:
            if asked_for():
                raise
            raise Unavailable("a client cancelled the handler's call") from error


class FastStreamRunner:
    """Runs subscriptions on FastStream's broker."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._broker: KafkaBroker = runtime.transport.broker(client_id=f"{runtime.name}-{runtime.instance}")

    async def start(self, subscriptions: Sequence[Subscription], handle: Handle) -> None:
        """Register and start."""
        for subscription in subscriptions:
            self._subscribe(subscription, handle)
        await self._broker.start()

    async def stop(self) -> None:
        """Stop the broker; it waits for handlers within its own bound."""
        await self._broker.stop()

    def _subscribe(self, subscription: Subscription, handle: Handle) -> None:
        stream, batch = subscription.stream, subscription.batch

        async def parse(record: Any, original: Callable[[Any], Awaitable[KafkaMessage]]) -> KafkaMessage:
            bare = tuple(_bare(one) for one in record) if batch else _bare(record)
            message = await original(bare)
            message.raw_message = record
            return message

        async def read(message: KafkaMessage) -> Any:
            raw: Any = message.raw_message
            return [decode(one, stream) for one in raw] if batch else decode(raw, stream)

        async def take(received: Any) -> None:  # FastStream makes a model of a declared type
            message: Any = self._broker.context.get_local("message", None)
            raw = message.raw_message
            if batch:
                await handle(received, list(raw), subscription.handler)
            else:
                await handle([received], [raw], subscription.handler)

        options: dict[str, Any] = {"batch": True, "max_records": subscription.max_records} if batch else {}
        self._broker.subscriber(
            stream.name,
            group_id=group_of(self._runtime.name, stream),
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            ack_policy=AckPolicy.NACK_ON_ERROR,
            session_timeout_ms=self._runtime.group_session_ms,
            heartbeat_interval_ms=min(HEARTBEAT_MS_MAX, self._runtime.group_session_ms // 3),
            no_reply=True,
            parser=parse,
            decoder=read,
            title=f"{self._runtime.name}:{stream.name}",
            **options,
        )(take)


@dataclass(frozen=True, slots=True)
class _Bare:
    """A record without headers, for FastStream's own parser, which can't read every header."""

    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    offset: int
    timestamp: int
    topic: str
    partition: int


def _bare(record: Any) -> _Bare:
    identity = f"{record.topic}/{record.partition}/{record.offset}".encode()
    headers = (("correlation_id", identity),)
    return _Bare(record.value, headers, record.offset, record.timestamp, record.topic, record.partition)
