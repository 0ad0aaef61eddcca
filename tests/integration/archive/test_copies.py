"""The archive's copies on a real Kafka: committed records alone, each once by its offset, on over a restart."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from aiokafka import AIOKafkaProducer

from evenflow.events import streams
from evenflow.hosting.archiving.copies import LogCopies
from evenflow.platform.broker.codec import Fact, encode
from evenflow.platform.broker.embedded.archive import read_archive
from evenflow.platform.broker.factory import make_transport
from evenflow.platform.clock import RandomIds, SystemClock
from evenflow.platform.observability.logs import make_log
from evenflow.platform.stores.memory import MemoryObjects
from evenflow.testkit.examples import examples
from evenflow.testkit.servers.addresses import Addresses

pytestmark = pytest.mark.servers
CLOCK = SystemClock()


async def tell(servers: str, *queues: str, commit: bool) -> None:
    """A charge for each queue, in one transaction."""
    producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=f"test-{uuid.uuid4().hex}")
    await producer.start()
    await producer.begin_transaction()
    for queue in queues:
        body = examples()["charge.recorded"].model_copy(update={"queue": queue})
        one = encode(Fact(streams.BILLING, body), source="test", now_ms=CLOCK.now_ms(), new_id=queue)
        await producer.send_and_wait(one.topic, one.value, key=one.key, headers=one.headers)
    await (producer.commit_transaction() if commit else producer.abort_transaction())
    await producer.stop()


async def kept(objects: MemoryObjects, *queues: str) -> list[str]:
    """Keys of those queues in the archive, as often as they stand there."""
    found = []
    for partition in range(streams.BILLING.partitions):
        found += [(row.key or b"").decode() async for row in read_archive(objects, streams.BILLING.name, partition)]
    return sorted(key for key in found if key in queues)


async def test_what_is_committed_is_copied_and_what_was_given_up_is_not(servers: Addresses) -> None:
    """Proves that an archive holds what counts, whatever a fenced writer left on the log, and misses nothing later."""
    url = servers.urls["kafka"]
    brokers = url.removeprefix("kafka://")
    transport = make_transport(url, clock=CLOCK, ids=RandomIds(CLOCK))
    await transport.provision(streams.topics())
    names = [f"{name}-{uuid.uuid4().hex[:8]}" for name in ("given-up", "first", "second", "while-away")]
    objects, log = MemoryObjects(), make_log(service="test", instance="", clock=CLOCK, level="error")
    await tell(brokers, names[0], commit=False)
    await tell(brokers, *names[1:3], commit=True)
    for wanted in (names[1:3], names[1:]):
        copies = LogCopies(transport, objects, CLOCK, log, 0.2)
        await copies.start()
        async with asyncio.timeout(60):
            while len(await kept(objects, *names)) < len(wanted):
                await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        await copies.stop()
        assert await kept(objects, *names) == sorted(wanted)
        if wanted == names[1:3]:
            await tell(brokers, names[3], commit=True)
