"""The path on Apache Kafka: stands on topics of the bench's own, and the loop of a plain client as the floor.

The plain loop reads submissions in a group and writes, in transactions of two ids in turn, three records for each with
the keys, headers and bodies that placement wrote: what any program could do at best with the same client.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from evenflow.core.errors import Refused, Unavailable
from evenflow.events import streams
from evenflow.hosting.benches.stand import Opening, Stand, file_stand
from evenflow.platform.broker.kafka import BATCH_BYTES_MAX, TRANSACTIONAL_BACKOFF_MS, KafkaTransport
from evenflow.platform.clock import RandomIds, SystemClock

SCHEME: Final = "kafka://"
GROUP: Final = "evenflow-bench-floor"
OUTPUTS: Final = (streams.ASSIGNMENTS, streams.DISPATCH, streams.PLACEMENT_STATE)
ROUND_RECORDS: Final = 500
GONE_S: Final = 30.0
#: Header names, header values and body of one record.
Sample = tuple[list[tuple[str, bytes]], bytes]


def stands_of(profile: str) -> tuple[Opening, str]:
    """How a bench opens its stands, and the Kafka they are on: host:port, or nothing for the file log.

    Raises Refused for an unknown profile, without a Kafka, and for one that holds a pool's topics.
    """
    if profile == "embedded":
        return file_stand, ""
    if profile != "server":
        raise Refused(f"profile {profile[:40]!a} is unknown; known are embedded and server")
    servers = servers_of(os.environ.get("EVENFLOW_HOST_LOG", ""))
    asyncio.run(refuse_used(servers))
    return kafka_stands(servers), servers


def servers_of(log: str) -> str:
    """host:port of a Kafka named by its URL. Raises Refused for any other."""
    if not log.startswith(SCHEME):
        raise Refused(
            "--profile server needs a Kafka in EVENFLOW_HOST_LOG: make up PROFILE=local FRESH=1, then "
            ". .cache/local-servers/environment"
        )
    return log.removeprefix(SCHEME).partition("?")[0]


async def refuse_used(servers: str) -> None:
    """Raise Refused when the cluster has topics of a pool: the bench makes and deletes them."""
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        used = sorted({topic.name for topic in streams.topics()} & set(await admin.list_topics()))
    finally:
        await admin.close()
    if used:
        raise Refused(
            f"the Kafka at {servers} holds a pool's topics ({used[0]} and {len(used) - 1} more), which the bench would "
            "delete; name an empty one, as after make up PROFILE=local FRESH=1"
        )


def kafka_stands(servers: str) -> Opening:
    """Stands whose topics are made anew and deleted afterwards."""

    @asynccontextmanager
    async def opened(seed: int) -> AsyncIterator[Stand]:
        clock = SystemClock()
        ids = RandomIds(clock)
        logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # new topics have no leaders for a moment
        stand = Stand(lambda: KafkaTransport(servers, clock=clock, ids=ids), clock, ids, seed)
        await stand.transport().provision(streams.topics())
        try:
            yield stand
        finally:
            await _delete_topics(servers, clock)

    return opened


async def _delete_topics(servers: str, clock: SystemClock) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        ours = {topic.name for topic in streams.topics()}
        await admin.delete_topics(sorted(ours & set(await admin.list_topics())))
        until_ms = clock.monotonic_ms() + round(GONE_S * 1_000)
        while ours & set(await admin.list_topics()):
            if clock.monotonic_ms() > until_ms:
                raise Unavailable(f"topics are still there {GONE_S:.0f} s after their deletion")
            await clock.sleep(0.1)
    finally:
        await admin.close()


async def samples(servers: str) -> dict[str, Sample]:
    """The newest record of each output that carries a body, by topic, as placement wrote it."""
    reader = AIOKafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False, auto_offset_reset="earliest")
    await reader.start()
    try:
        places = [TopicPartition(topic.name, index) for topic in OUTPUTS for index in range(topic.partitions)]
        reader.assign(places)
        found: dict[str, Sample] = {}
        while len(found) < len(OUTPUTS):
            for place, records in (await reader.getmany(timeout_ms=500, max_records=5_000)).items():
                for record in records:
                    wanted = place.topic != streams.PLACEMENT_STATE.name or (record.key or b"").startswith(b"task/")
                    if record.value and wanted:
                        found[place.topic] = ([(name, value) for name, value in record.headers], record.value)
        return found
    finally:
        await reader.stop()


class PlainLoop:
    """Started and stopped like placement; `written` are what each submission becomes."""

    def __init__(self, servers: str, written: Mapping[str, Sample]) -> None:
        self._servers = servers
        self._written = written
        self._task: asyncio.Task[None] | None = None
        self._clients: list[Any] = []

    async def start(self) -> None:
        """Join the group and begin."""
        consumer = AIOKafkaConsumer(
            streams.TASKS.name, bootstrap_servers=self._servers, group_id=GROUP, enable_auto_commit=False,
            auto_offset_reset="earliest", isolation_level="read_committed",
        )  # fmt: skip
        producers = [
            AIOKafkaProducer(
                bootstrap_servers=self._servers, transactional_id=f"{GROUP}-{number}", acks="all",
                max_batch_size=BATCH_BYTES_MAX, retry_backoff_ms=TRANSACTIONAL_BACKOFF_MS,
            )
            for number in range(2)
        ]  # fmt: skip
        self._clients = [consumer, *producers]
        for client in self._clients:
            await client.start()
        self._task = asyncio.get_running_loop().create_task(self._run(consumer, producers))

    async def stop(self) -> None:
        """End it; what ended it before comes out."""
        if self._task is not None:
            self._task.cancel()
            (ended,) = await asyncio.gather(self._task, return_exceptions=True)
            if isinstance(ended, Exception):
                raise ended
        for client in self._clients:
            await client.stop()

    async def _run(self, consumer: AIOKafkaConsumer, producers: list[AIOKafkaProducer]) -> None:
        turn = 0
        while True:
            batches = await consumer.getmany(timeout_ms=100, max_records=ROUND_RECORDS)
            if not batches:
                continue
            producer = producers[turn]
            turn = 1 - turn
            async with producer.transaction():
                sent = []
                for records in batches.values():
                    for record in records:
                        for topic, (headers, value) in self._written.items():
                            sent.append(await producer.send(topic, value, key=record.key, headers=headers))
                await asyncio.gather(*sent)
                offsets = {place: records[-1].offset + 1 for place, records in batches.items()}
                await producer.send_offsets_to_transaction(offsets, GROUP)
