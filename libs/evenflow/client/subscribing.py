"""Subscribing to the log itself: committed events of whole streams, in order within each key, each at least once.

    async with Subscription("kafka://host:9092", "assignments", group="dashboard") as events:
        async for event in events:
            print(event.envelope.type, event.key)

An event counts as handled when the next one is asked for; after a crash the ones not handled come again. Streams are
named in full or by their middle part. Records that can't be read are passed over and counted; the product's own readers
park them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Final, Self

from aiokafka import TopicPartition

from evenflow.core.errors import FieldRefused
from evenflow.events.streams import BY_NAME
from evenflow.platform.broker.codec import Bad, Received, decode
from evenflow.platform.broker.factory import make_transport
from evenflow.platform.broker.ports import Consumer, Transport
from evenflow.platform.clock import RandomIds, SystemClock
from evenflow.platform.security.access import Access

POLL_MS: Final = 1_000
BATCH: Final = 500

#: A log's URL, or the transport of this process.
Log = str | Transport


class Subscription:
    """A member of a consumer group.

    `access` logs in, as Access("log", "evenflow-subscribers", SecretStr(…), ca_file=Path("ca.pem")).
    """

    def __init__(self, log: Log, *streams: str, group: str, access: Access | None = None) -> None:
        self._topics = [topic_named(name) for name in streams]
        if not self._topics:
            raise FieldRefused("streams", "name at least one stream")
        clock = SystemClock()
        transport = (
            make_transport(log, clock=clock, ids=RandomIds(clock), access=access) if isinstance(log, str) else log
        )
        self._consumer: Consumer = transport.consumer(*self._topics, client_id=group, group_id=group)
        self.unreadable_count = 0

    async def __aenter__(self) -> Self:
        """Join the group; what was opened is closed again when that is refused."""
        try:
            await self._consumer.start()
        except BaseException:
            await self._consumer.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the group."""
        await self._consumer.stop()

    async def __aiter__(self) -> AsyncIterator[Received]:
        """Events, for ever."""
        while True:
            batches = await self._consumer.getmany(timeout_ms=POLL_MS, max_records=BATCH)
            for partition, records in batches.items():
                stream = BY_NAME[partition.topic]
                for record in records:
                    received = decode(record, stream)
                    if isinstance(received, Bad):
                        self.unreadable_count += 1
                    else:
                        yield received
                    await self._done(partition, record.offset + 1)

    async def _done(self, partition: TopicPartition, offset: int) -> None:
        await self._consumer.commit({partition: offset})


def topic_named(name: str) -> str:
    """A stream's topic by its full name or its middle part. Raises FieldRefused."""
    for candidate in (name, f"evenflow.{name}.v1"):
        if candidate in BY_NAME:
            return candidate
    known = ", ".join(topic.split(".")[1] for topic in BY_NAME)
    raise FieldRefused("streams", f"{name[:60]!a} is no stream; known are {known}")
