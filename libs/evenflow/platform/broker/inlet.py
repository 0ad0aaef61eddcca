"""Subscribing: FastStream decorators with the product's one way of reading, retrying and acknowledging.

Handlers take one parameter, the received event (or a list of them). A record's header, body, key, version and handler
errors all end in the same place: applied, or parked. The acknowledgement policy is NACK_ON_ERROR: what comes out of the
retries (a store that stays away, a process that must end) is never committed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from faststream import AckPolicy
from faststream.kafka import KafkaBroker
from faststream.kafka.message import KafkaMessage

from evenflow.core.errors import Ended
from evenflow.events.streams import Stream
from evenflow.platform.broker.codec import Bad, Received, decode
from evenflow.platform.broker.dead_letters import DeadLetters
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.runtime import Runtime

Handler = Callable[[Received], Awaitable[None]]
BatchHandler = Callable[[list[Received]], Awaitable[None]]


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


class Inlet:
    """The subscriptions of one service."""

    def __init__(self, runtime: Runtime, outlet: Outlet, ended: Callable[[BaseException], None]) -> None:
        self._runtime = runtime
        self._ended = ended
        self.dead_letters = DeadLetters(runtime, outlet)
        self.broker: KafkaBroker = runtime.transport.broker(client_id=f"{runtime.name}-{runtime.instance}")

    def on(self, stream: Stream) -> Callable[[Handler], Handler]:
        """One event at a time, in order within each key."""

        def register(handler: Handler) -> Handler:
            async def handle(received: Any) -> None:  # FastStream makes a model of a declared type
                async def single(events: list[Received]) -> None:
                    await handler(events[0])

                record = self._raw()
                await self._guarded([received], [record], single)

            self._subscribe(stream, handle, batch=False, max_records=None)
            return handler

        return register

    def on_batch(self, stream: Stream, *, max_records: int = 500) -> Callable[[BatchHandler], BatchHandler]:
        """Lists of events of several partitions, in order within each; for high rates. Handlers must be idempotent."""

        def register(handler: BatchHandler) -> BatchHandler:
            async def handle(received: Any) -> None:
                await self._guarded(received, list(self._raw()), handler)

            self._subscribe(stream, handle, batch=True, max_records=max_records)
            return handler

        return register

    def _raw(self) -> Any:
        message = self.broker.context.get_local("message", None)
        return message.raw_message

    async def _guarded(self, received: list[Received | Bad], records: list[Any], handler: BatchHandler) -> None:
        try:
            await self.dead_letters.handle(received, records, handler)
        except Ended as error:
            self._ended(error)
            raise

    def _subscribe(
        self,
        stream: Stream,
        handle: Callable[..., Awaitable[None]],
        *,
        batch: bool,
        max_records: int | None,
    ) -> None:
        async def parse(record: Any, original: Callable[[Any], Awaitable[KafkaMessage]]) -> KafkaMessage:
            bare = tuple(_bare(one) for one in record) if batch else _bare(record)
            message = await original(bare)
            message.raw_message = record
            return message

        async def read(message: KafkaMessage) -> Any:
            raw: Any = message.raw_message
            return [decode(one, stream) for one in raw] if batch else decode(raw, stream)

        options: dict[str, Any] = {"batch": True, "max_records": max_records} if batch else {}
        self.broker.subscriber(
            stream.name,
            group_id=f"evenflow.{self._runtime.name}.{stream.name}",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            ack_policy=AckPolicy.NACK_ON_ERROR,
            no_reply=True,
            parser=parse,
            decoder=read,
            title=f"{self._runtime.name}:{stream.name}",
            **options,
        )(handle)
