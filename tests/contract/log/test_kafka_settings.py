"""What the Kafka transport asks of aiokafka, checked without a cluster: bounds, policies, and the answers it reads."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import ClassVar

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError
from aiokafka.structs import OffsetAndMetadata
from faststream import AckPolicy
from tests.contract.log.conftest import CountedIds, Settings, StoppableClock

from evenflow.core.errors import Conflict, Refused, Unavailable
from evenflow.platform.broker import kafka


class FakeAdmin:
    """Answers as AIOKafkaAdminClient does: errors are codes in the answer."""

    def __init__(self, **settings):
        self.settings = settings

    #: topic → (partitions, configs); shared by the clients of one test
    topics: ClassVar[dict] = {}
    refused: ClassVar[dict] = {}
    leaderless = 0
    away = False
    committed: ClassVar[dict] = {}

    async def start(self):
        if self.away:
            raise KafkaConnectionError("Unable to bootstrap")

    async def close(self):
        pass

    async def list_topics(self):
        return list(self.topics)

    async def create_topics(self, wanted, timeout_ms=None):
        errors = []
        for topic in wanted:
            code = self.refused.get(topic.name, 0)
            if not code:
                self.topics[topic.name] = (topic.num_partitions, topic.topic_configs)
            errors.append({"topic": topic.name, "error_code": code, "error_message": "no" if code else None})
        return SimpleNamespace(to_object=lambda: {"topic_errors": errors})

    async def describe_topics(self, names):
        leader = -1 if type(self).leaderless > 0 else 0
        type(self).leaderless -= 1
        return [
            {"error_code": 0, "topic": name, "partitions": [{"leader": leader}] * self.topics[name][0]}
            for name in names
        ]

    async def describe_configs(self, resources):
        rows = [
            (0, None, 2, r.name, [(k, v, False, 1, False, []) for k, v in self.topics[r.name][1].items()])
            for r in resources
        ]
        return [SimpleNamespace(resources=rows)]

    async def list_consumer_group_offsets(self, group):
        return self.committed


@pytest.fixture
def admin(monkeypatch):
    fake = type("Fake", (FakeAdmin,), {"topics": {}, "refused": {}, "committed": {}})
    monkeypatch.setattr(kafka, "AIOKafkaAdminClient", fake)
    return fake


@pytest.fixture
def transport():
    return kafka.KafkaTransport("h1:9092,h2:9092", clock=StoppableClock(), ids=CountedIds(), replication=3)


async def test_every_client_is_bounded_in_time_and_never_commits_by_itself(transport):
    """Proves that no client waits forty seconds for an unknown topic, and that commits are explicit."""
    reader = transport.consumer("t", client_id="c", group_id="g", session_timeout_ms=6_000, sticky=True)
    assert reader._client._request_timeout_ms == kafka.REQUEST_TIMEOUT_MS <= 10_000
    assert reader._client._metadata_max_age_ms == 5_000
    assert (reader._enable_auto_commit, reader._isolation_level) == (False, "read_committed")
    assert (reader._session_timeout_ms, reader._rebalance_timeout_ms, reader._heartbeat_interval_ms) == (
        6_000,
        6_000,
        500,
    )
    assert [a.name for a in reader._partition_assignment_strategy] == ["sticky"]
    await reader.stop()


async def test_each_sticky_consumer_remembers_for_itself(transport):
    """Proves that two consumers of one process do not share aiokafka's memory of what was held."""
    one, two = [transport.consumer("t", client_id="c", group_id="g", sticky=True) for _ in range(2)]
    first, second = one._partition_assignment_strategy[0], two._partition_assignment_strategy[0]
    first.member_assignment = "mine"
    assert second.member_assignment != "mine"
    for reader in (one, two):
        await reader.stop()


async def test_producers_are_idempotent_and_rounds_are_not_paced_by_back_off(transport):
    """Proves acks=all, idempotence, large batches, and five milliseconds of back-off for transactional ids."""
    plain = transport.producer(client_id="p")
    rounds = transport.producer(client_id="p", transactional_id="pool-0")
    assert plain._sender._acks == -1
    assert plain._txn_manager.transactional_id is None
    assert rounds._txn_manager.transactional_id == "pool-0"
    assert rounds._txn_manager.transaction_timeout_ms == 15_000
    assert rounds._sender._retry_backoff == pytest.approx(0.005)
    assert rounds._message_accumulator._batch_size == 1 << 20
    for producer in (plain, rounds):
        await producer.client.close()
        producer._closed = True


async def test_the_broker_has_the_products_policies(transport):
    """Proves that FastStream's broker on Kafka is the one of the embedded profile but for its connection."""
    broker = transport.broker(client_id="svc")
    config = broker.config.broker_config
    assert config.ack_policy is AckPolicy.NACK_ON_ERROR
    assert config.allow_auto_create_topics is False
    assert config.graceful_timeout == 10.0
    assert broker._connection_kwargs["enable_idempotence"] is True
    assert broker._connection_kwargs["bootstrap_servers"] == ["h1:9092", "h2:9092"]
    subscriber = broker.subscriber("t", group_id="g")
    assert subscriber._connection_args["isolation_level"] == "read_committed"


async def test_missing_topics_are_made_and_awaited(transport, admin):
    """Proves creation with settings and replication, and that nobody starts before every partition is led."""
    admin.leaderless = 2
    await transport.provision([Settings("a", 16, {"cleanup.policy": "compact"}), Settings("b", 1)])
    assert admin.topics == {"a": (16, {"cleanup.policy": "compact"}), "b": (1, {})}
    await transport.provision([Settings("a", 16, {"cleanup.policy": "compact"})])


async def test_a_topic_with_other_settings_is_refused(transport, admin):
    """Proves the comparison with what describe_configs and describe_topics answer."""
    admin.topics["a"] = (4, {"retention.ms": "1"})
    with pytest.raises(Conflict, match="4 partitions"):
        await transport.provision([Settings("a", 16)])
    with pytest.raises(Conflict, match=r"retention\.ms=1"):
        await transport.provision([Settings("a", 4, {"retention.ms": "2"})])


async def test_a_topic_the_cluster_refuses_is_named(transport, admin):
    """Proves that error codes in the answer become errors, but for a topic somebody else made meanwhile."""
    admin.refused["a"] = 38
    with pytest.raises(Refused, match="a was not created: InvalidReplicationFactorError no"):
        await transport.provision([Settings("a")])
    admin.refused["a"] = 36
    admin.topics_after = admin.topics
    with pytest.raises(KeyError):
        await transport.provision([Settings("a")])  # the fake does not know it; a cluster would


async def test_partitions_nobody_leads_end_the_wait(transport, admin, monkeypatch):
    """Proves that a cluster without leaders is an error that can be retried."""
    monkeypatch.setattr(kafka, "LED_TIMEOUT_S", 0.05)
    admin.leaderless = 1_000
    with pytest.raises(Unavailable, match="no broker leads a"):
        await transport.provision([Settings("a")])


async def test_a_cluster_that_is_not_there_says_what_it_may_be(transport, admin):
    """Proves that nobody listening and a wrong password, one class for the client, are both named."""
    admin.away = True
    with pytest.raises(Unavailable, match="if that port speaks TLS, set log_tls; if it asks for a user, set log_user"):
        await transport.provision([Settings("a")])


async def test_lag_is_what_stands_between_the_group_and_the_end(transport, admin, monkeypatch):
    """Proves the arithmetic, and that partitions without an offset are left out."""
    key, other = TopicPartition("a", 0), TopicPartition("a", 1)
    admin.committed = {key: OffsetAndMetadata(3, ""), other: OffsetAndMetadata(-1, "")}

    class Reader:
        async def start(self):
            pass

        async def stop(self):
            pass

        async def end_offsets(self, keys):
            return dict.fromkeys(keys, 10)

    monkeypatch.setattr(transport, "consumer", lambda **settings: Reader())
    assert await asyncio.wait_for(transport.lag("g"), 1) == {key: 7}
    admin.committed = {}
    assert await transport.lag("g") == {}
