"""The durable log: what was acknowledged is there after a stop, after a crash, and after a full disk."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaStorageError, ProducerFenced
from tests.contract.log.conftest import EmbeddedCluster

from evenflow.core.errors import Refused
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.storage.sqlite import FileStorage


@pytest.fixture
async def lives(tmp_path):
    """Makes clusters over one folder, one after another."""
    opened = []

    def open_next() -> EmbeddedCluster:
        opened.append(EmbeddedCluster(f"embedded:{tmp_path / 'data'}"))
        return opened[-1]

    yield open_next
    for cluster in opened:
        cluster.log.storage.close()


async def end(cluster):
    await cluster.close()


async def test_records_offsets_and_topics_survive_a_restart(lives):
    """Proves that a reader goes on where it was, with records, headers and offsets as they were."""
    one = lives()
    topic = await one.topic(partitions=2, cleanup_policy="compact")
    producer = await one.producer()
    for n in range(10):
        await producer.send_and_wait(topic, b"%d" % n, key=b"k", partition=1, headers=[("h", b"\xff")])
    reader = await one.started(topic, group_id="g")
    await reader.commit({TopicPartition(topic, 1): 4})
    await end(one)
    two = lives()
    again = await two.started(topic, group_id="g")
    records = await two.read(again, 6)
    assert [r.value for r in records] == [b"%d" % n for n in range(4, 10)]
    assert records[0].headers == [("h", b"\xff")]
    assert two.log.topics[topic].configs == {"cleanup.policy": "compact"}
    assert (await (await two.producer()).send_and_wait(topic, b"10", key=b"k", partition=1)).offset == 10


async def test_a_transaction_left_open_by_a_crash_stays_hidden_until_its_id_is_taken(lives):
    """Proves that half a round is never read, before and after the take-over, and that the old epoch is fenced."""
    one = lives()
    topic = await one.topic()
    producer = await one.producer("pool-0")
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"half", partition=0)
    one.log.storage.close()
    two = lives()
    reader = await two.started(topic)
    assert await two.quiet(reader) == []
    taken = await two.producer("pool-0")
    await taken.begin_transaction()
    await taken.send_and_wait(topic, b"whole", partition=0)
    await taken.commit_transaction()
    assert [r.value for r in await two.read(reader, 1)] == [b"whole"]
    assert await two.values(topic, 2, "read_uncommitted") == [b"half", b"whole"]


async def test_a_transaction_left_open_by_a_crash_times_out(lives):
    """Proves that readers go on although nobody takes the id over."""
    one = lives()
    topic = await one.topic()
    producer = await one.producer("pool-0", process=one.process(transaction_timeout_ms=200))
    await producer.begin_transaction()
    await producer.send_and_wait(topic, b"half", partition=0)
    await (await one.producer()).send_and_wait(topic, b"behind", partition=0)
    one.log.storage.close()
    two = lives()
    reader = await two.started(topic)
    assert [r.value for r in await two.read(reader, 1)] == [b"behind"]


async def test_expiry_and_compaction_survive_a_restart(lives):
    """Proves that an emptied partition goes on at its next offset, and that archived ranges are remembered."""
    one = lives()
    topic = await one.topic(retention_ms="1000")
    producer = await one.producer()
    for n in range(3):
        await producer.send_and_wait(topic, b"%d" % n, partition=0, timestamp_ms=one.clock.ms)
    one.clock.ms += 5_000
    assert await one.transport.retention.step() == 3
    await end(one)
    two = lives()
    assert (await (await two.producer()).send_and_wait(topic, b"3", partition=0)).offset == 3
    assert await two.values(topic, 1) == [b"3"]


async def test_records_beyond_the_memory_are_read_from_the_file(tmp_path):
    """Proves that a small memory changes nothing: reading starts in the file and goes over into memory seamlessly."""
    small = EmbeddedCluster(f"embedded:{tmp_path / 'small'}")
    small.log.storage.close()
    small.log = EmbeddedLog(clock=small.clock, storage=FileStorage(tmp_path / "small", cache_bytes=20_000))
    small.transport = small.process()
    topic = await small.topic()
    producer = await small.producer()
    for n in range(1_000):
        await producer.send(topic, b"%d" % n, partition=0)
        if n % 10 == 9:
            await producer.flush()
    assert 0 < len(small.log.topics[topic].partitions[0].tail) < 100
    assert [int(v) for v in await small.values(topic, 1_000)] == list(range(1_000))
    one_by_one = await small.started(topic)
    assert [int((await one_by_one.getone()).value) for _ in range(1_000)] == list(range(1_000))
    await small.close()


async def test_a_folder_belongs_to_one_process_at_a_time(lives, tmp_path):
    """Proves that a second process is refused with a way out instead of spoiling the log."""
    lives()
    with pytest.raises(Refused, match="in use by another process"):
        FileStorage(tmp_path / "data")


async def test_a_log_of_another_release_is_refused(tmp_path):
    """Proves that an unknown format is never opened."""
    import sqlite3

    FileStorage(tmp_path).close()
    database = sqlite3.connect(tmp_path / "log.sqlite")
    database.execute("pragma user_version=99")
    database.close()
    with pytest.raises(Refused, match="another release"):
        FileStorage(tmp_path)


async def test_a_folder_that_cannot_hold_a_log_is_refused_with_the_reason(tmp_path):
    """Proves that a damaged file, or a file in place of a folder, is a clear error and stays as it was."""
    (tmp_path / "log.sqlite").write_bytes(b"not a database, by any measure" * 100)
    for _ in range(2):
        with pytest.raises(Refused, match=r"holds no usable log .*not a database"):
            FileStorage(tmp_path)
    assert (tmp_path / "log.sqlite").read_bytes().startswith(b"not a database")
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="holds no usable log"):
        FileStorage(tmp_path / "file")


async def test_a_log_that_must_survive_a_power_loss_waits_for_the_disk(tmp_path):
    """Proves that the stronger promise is asked of the file system."""
    for survives, level in (("kill", 1), ("power-loss", 2)):
        storage = FileStorage(tmp_path / survives, survives=survives)
        assert storage._database.execute("pragma synchronous").fetchone() == (level,)
        storage.close()


async def test_a_write_that_fails_is_an_error_to_its_senders_and_leaves_no_trace(lives):
    """Proves that a full disk loses nothing silently: senders get the error, a commit is tried until there is room."""
    one = lives()
    topic = await one.topic()
    producer = await one.producer()
    transactional = await one.producer("pool-0")
    await producer.send_and_wait(topic, b"0", partition=0)
    one.log.storage._database.execute("pragma query_only=1")
    await transactional.begin_transaction()
    with pytest.raises(KafkaStorageError):
        await transactional.send_and_wait(topic, b"half", partition=0)
    with pytest.raises(KafkaStorageError):
        await producer.send_and_wait(topic, b"lost", partition=0)
    reader = await one.started(topic, group_id="g")
    commit = asyncio.create_task(reader.commit({TopicPartition(topic, 0): 1}))
    await asyncio.sleep(0.3)
    assert not commit.done()
    assert await reader.committed(TopicPartition(topic, 0)) is None
    one.log.storage._database.execute("pragma query_only=0")
    await asyncio.wait_for(commit, 10)
    assert await reader.committed(TopicPartition(topic, 0)) == 1
    assert (await producer.send_and_wait(topic, b"1", partition=0)).offset == 1
    assert await one.values(topic, 2) == [b"0", b"1"]
    with pytest.raises(KafkaStorageError):
        await transactional.commit_transaction()


async def test_a_fenced_process_stays_fenced_over_a_restart(lives):
    """Proves that epochs are durable."""
    one = lives()
    await one.topic()
    first = await one.producer("pool-0")
    await end(one)
    two = lives()
    second = await two.producer("pool-0")
    assert second._epoch == first._epoch + 1
    with pytest.raises(ProducerFenced):
        two.log.transactions.require("pool-0", first._epoch)
