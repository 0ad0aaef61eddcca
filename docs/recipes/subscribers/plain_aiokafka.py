"""Every decision and every charge, with plain aiokafka: python plain_aiokafka.py HOST:PORT."""

import asyncio
import json
import sys

from aiokafka import AIOKafkaConsumer

STREAMS = ("evenflow.assignments.v1", "evenflow.billing.v1")


async def follow(servers: str) -> None:
    """At least once: a record counts as handled when its offset is committed, behind the handling."""
    reader = AIOKafkaConsumer(
        *STREAMS, bootstrap_servers=servers, group_id="books-of-aiokafka", isolation_level="read_committed",
        auto_offset_reset="earliest", enable_auto_commit=False,
    )  # fmt: skip
    async with reader:
        while True:
            for records in (await reader.getmany(timeout_ms=1_000)).values():
                for record in records:
                    event = dict(record.headers)["ce_type"].decode()
                    print(event, record.key.decode(), json.loads(record.value).get("queue"), flush=True)
            await reader.commit()


asyncio.run(follow(sys.argv[1]))
