"""Commits while the log can't write: the client library tries again by itself, and so must this one."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import ConsumerStoppedError, KafkaStorageError

from evenflow.events.streams import TASKS
from evenflow.platform.broker.embedded.clients.consumer import EmbeddedConsumer
from evenflow.testkit.pool import Pool, run

KEY = TopicPartition(TASKS.name, 0)


class Storage:
    """Refuses writes while it is away."""

    def __init__(self, pool: Pool) -> None:
        self.away = False
        self._write = pool.log.storage.write
        pool.log.storage.write = self.write

    def write(self, change):
        if self.away:
            raise KafkaStorageError
        self._write(change)


async def reader(pool: Pool) -> EmbeddedConsumer:
    consumer = pool.runtime("reader").transport.consumer(TASKS.name, client_id="reader", group_id="g")
    await consumer.start()
    await pool.pass_s(1)
    return consumer


def test_a_commit_that_the_log_can_take_later_is_tried_until_it_does() -> None:
    """Proves that nothing handled stays uncommitted when no later record comes to commit it along."""

    async def story(pool: Pool) -> None:
        consumer, storage = await reader(pool), Storage(pool)
        storage.away = True
        commit = asyncio.ensure_future(consumer.commit({KEY: 3}))
        await pool.pass_s(30)
        assert not commit.done()
        storage.away = False
        await pool.pass_s(1)
        assert commit.result() is None
        assert pool.log.committed("g", KEY) == 3
        await consumer.stop()

    run(story)


def test_it_ends_when_the_consumer_is_stopped() -> None:
    """Proves that nobody waits for ever for a log that does not come back."""

    async def story(pool: Pool) -> None:
        consumer, storage = await reader(pool), Storage(pool)
        storage.away = True
        commit = asyncio.ensure_future(consumer.commit({KEY: 3}))
        await pool.pass_s(1)
        await consumer.stop()
        await pool.pass_s(1)
        with pytest.raises(ConsumerStoppedError):
            commit.result()

    run(story)
