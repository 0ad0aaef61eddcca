"""Writing many records and waiting for all of them, on any log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from aiokafka.errors import InvalidProducerEpoch, ProducerFenced
from aiokafka.structs import RecordMetadata

from evenflow.platform.broker.codec import Encoded
from evenflow.platform.broker.ports import Producer


@runtime_checkable
class SendsTogether(Protocol):
    """A producer that takes many records at once: the embedded log's, which saves a future for each."""

    async def send_together(
        self, records: Sequence[Encoded], partitions: Sequence[int | None] | None = None
    ) -> list[int]:
        """Write all; their offsets."""


async def send_all(
    producer: Producer, records: Sequence[Encoded], partitions: Sequence[int | None] | None = None
) -> list[int]:
    """Write all records, in order within each key; returns their offsets once the log has them.

    `partitions` names a record's partition, None = by its key. Raises the first error; some of the others may be
    written then. A fence is raised before other errors: what is sent after it fails otherwise.
    """
    if isinstance(producer, SendsTogether):
        return await producer.send_together(records, partitions)
    pending: list[asyncio.Future[RecordMetadata]] = []
    try:
        for one, partition in zip(records, partitions or [None] * len(records), strict=True):
            sent = producer.send(one.topic, value=one.value, key=one.key, headers=one.headers, partition=partition)
            pending.append(await sent)
        # One after the other: they are answered together, and a callback for each would cost more.
        return [(await one).offset for one in pending]
    except Exception:
        for result in await asyncio.gather(*pending, return_exceptions=True):
            if isinstance(result, ProducerFenced | InvalidProducerEpoch):
                raise result from None
        raise
