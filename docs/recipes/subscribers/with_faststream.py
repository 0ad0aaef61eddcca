"""Every decision and every charge, with FastStream: python with_faststream.py HOST:PORT."""

import asyncio
import sys

from faststream import AckPolicy, FastStream
from faststream.kafka import KafkaBroker, KafkaMessage

STREAMS = ("evenflow.assignments.v1", "evenflow.billing.v1")
broker = KafkaBroker(sys.argv[1], graceful_timeout=5)


@broker.subscriber(
    *STREAMS, group_id="books-of-faststream", isolation_level="read_committed", auto_offset_reset="earliest",
    ack_policy=AckPolicy.NACK_ON_ERROR,
)  # fmt: skip
async def on_fact(message: KafkaMessage) -> None:
    """At least once: an error brings the record back."""
    body = await message.decode()
    print(message.headers["ce_type"], message.raw_message.key.decode(), body.get("queue"), flush=True)


asyncio.run(FastStream(broker).run())
