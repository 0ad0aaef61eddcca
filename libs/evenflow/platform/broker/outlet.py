"""Publishing facts: encoded once, sent idempotently, bounded in time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final

from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    InvalidTimestampError,
    KafkaError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumber,
    TopicAuthorizationFailedError,
)

from evenflow.core.errors import Ended, Unavailable
from evenflow.platform.broker.codec import Encoded, Fact, encode
from evenflow.platform.broker.ports import Producer
from evenflow.platform.broker.sending import send_all
from evenflow.platform.observability.signals import PUBLISHED, PUBLISHING, UNCONFIRMED
from evenflow.platform.runtime import Runtime

PUBLISH_TIMEOUT_S: Final = 10.0
CHUNK: Final = 500
BACKLOG_MAX: Final = 50_000
BACKLOG_EXIT: Final = 7

#: What the log will never take, whoever asks and whenever: the record itself is wrong.
_OF_THE_RECORD: Final = (MessageSizeTooLargeError, InvalidTimestampError)
_WAYS_OUT: Final[dict[type[KafkaError], str]] = {
    MessageSizeTooLargeError: "it is over the topic's max.message.bytes: make what it describes smaller",
    InvalidTimestampError: "it is stamped too far from the broker's clock: set both clocks right",
}
#: A missing permission is a fault of the surroundings: no record is to blame, and an administrator mends it meanwhile.
_PERMISSIONS: Final = (TopicAuthorizationFailedError, ClusterAuthorizationFailedError)


def _refused_writer(error: BaseException, records: Sequence[Encoded]) -> Unavailable:
    """What to say when the log lets nobody of this name write there."""
    names = ", ".join(sorted({record.topic for record in records}))
    return Unavailable(
        f"the log does not let this user write ({error}; to be written: {names[:300]}): evenflow acls says who may, an "
        "administrator adds it with evenflow acls apply; this goes on then"
    )


class Outlet:
    """The one way a service writes outside a transaction.

    A time-out means unknown: the record may be there. Ids are stable, so sending the same fact again does no harm.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._producer = self._new_producer()
        self._backlog: list[Encoded] = []
        self._turn = asyncio.Lock()
        self._published = runtime.metrics.of(PUBLISHED)
        self._publishing = runtime.metrics.of(PUBLISHING)
        self._unconfirmed = runtime.metrics.of(UNCONFIRMED)

    def _new_producer(self) -> Producer:
        runtime = self._runtime
        return runtime.transport.producer(client_id=f"{runtime.name}-{runtime.instance}")

    async def start(self) -> None:
        """Connect."""
        await self._producer.start()

    async def stop(self) -> None:
        """Send what is buffered and disconnect."""
        await self._producer.stop()

    def encoded(self, fact: Fact) -> Encoded:
        """A fact as this service would send it."""
        runtime = self._runtime
        new_id = "" if fact.id or fact.cause is not None else runtime.ids.new_id()
        record = encode(fact, source=runtime.name, now_ms=runtime.clock.now_ms(), new_id=new_id, wire=runtime.wire)
        return record if fact.seal is None else fact.seal(record)

    async def publish(self, *facts: Fact) -> None:
        """Write all facts; returns when the log has them.

        What the log does not confirm stays first in line: the caller's state has already moved on, so a retry that
        finds nothing more to say still sends it. Raises Unavailable until all before and in this call is confirmed.
        A fact that the log will never take is dropped, so that it does not stand in the way of those behind it; the
        error comes out once the others are written.
        """
        if not facts and not self._backlog:
            return
        self._backlog += [self.encoded(fact) for fact in facts]
        self._unconfirmed.record(len(self._backlog))
        if len(self._backlog) > BACKLOG_MAX:
            raise Ended(f"{len(self._backlog)} facts wait for the log", exit_code=BACKLOG_EXIT)
        async with self._turn:
            one_by_one = 0
            refusal: KafkaError | None = None
            while self._backlog:
                chunk = self._backlog[: 1 if one_by_one else CHUNK]
                try:
                    await self.send(chunk)
                except _OF_THE_RECORD as error:
                    if len(chunk) > 1:
                        one_by_one = len(chunk)
                        continue
                    refusal = error
                    way_out = _WAYS_OUT.get(type(error), "")
                    self._runtime.log.error(
                        "fact never written", topic=chunk[0].topic, problem=str(error), way_out=way_out
                    )
                del self._backlog[: len(chunk)]
                one_by_one = max(0, one_by_one - 1)
            self._unconfirmed.record(0)
            if refusal is not None:
                raise refusal

    async def send(self, records: Sequence[Encoded]) -> None:
        """Write encoded records, in order within each key.

        Raises Unavailable when it is worth trying again, and what the log says of a record that it will never take.
        """
        point, clock = self._runtime.point, self._runtime.clock
        began_ms = clock.monotonic_ms()
        await point(f"{self._runtime.name}.before-publish")
        try:
            async with asyncio.timeout(PUBLISH_TIMEOUT_S):
                await send_all(self._producer, records)
        except (TimeoutError, KafkaError) as error:
            if isinstance(error, (*_OF_THE_RECORD, *_PERMISSIONS, OutOfOrderSequenceNumber)):
                await self._begin_anew()
            if isinstance(error, _PERMISSIONS):
                raise _refused_writer(error, records) from error
            if isinstance(error, OutOfOrderSequenceNumber):
                raise Unavailable(f"the log refused an earlier record than these {len(records)}") from error
            if isinstance(error, KafkaError) and not (error.retriable or isinstance(error, KafkaTimeoutError)):
                raise  # the client calls its time-out final; it says no more than any other
            raise Unavailable(f"the log did not confirm {len(records)} records: {error or 'timed out'}") from error
        took_ms = clock.monotonic_ms() - began_ms
        self._publishing.record(took_ms)
        for topic, count in Counter(record.topic for record in records).items():
            self._published.record(count, topic=topic)
        if self._runtime.tracing.on:
            self._runtime.tracing.published(records, took_ms)
        await point(f"{self._runtime.name}.after-publish")

    async def _begin_anew(self) -> None:
        """Take another producer.

        The number of a refused record is missing in its partition, so the log refuses whatever this producer sends
        there from now on.
        """
        fresh, old = self._new_producer(), self._producer
        try:
            async with asyncio.timeout(PUBLISH_TIMEOUT_S):
                await fresh.start()
                self._producer = fresh
                await old.stop()
        except (TimeoutError, KafkaError, OSError) as error:
            self._runtime.log.warning("producer not renewed", problem=f"{type(error).__name__}: {error}")
