"""Reading a state topic to its end, as a new leader does: the position gets there, and nothing is missing then."""

from __future__ import annotations

import asyncio

from aiokafka import TopicPartition


async def one_round(producer, topic, value, *, ends="commit"):
    await producer.begin_transaction()
    await producer.send_and_wait(topic, value, key=value, partition=0)
    if ends:
        await (producer.commit_transaction if ends == "commit" else producer.abort_transaction)()


async def restored(cluster, topic, end=None):
    """(values, end, position) of a read until the position is at the end that was taken first."""
    place = TopicPartition(topic, 0)
    reader = await cluster.started(auto_offset_reset="none")
    reader.assign([place])
    if end is None:
        end = (await reader.end_offsets([place]))[place]
    reader.seek(place, (await reader.beginning_offsets([place]))[place])
    values = []
    async with asyncio.timeout(15):
        while await reader.position(place) < end:
            for records in (await reader.getmany(place, timeout_ms=50, max_records=2_000)).values():
                values += [r.value for r in records]
    position = await reader.position(place)
    await reader.stop()
    return values, end, position


async def ended_at(cluster, topic, end):
    """Wait until the markers are written: Kafka answers a commit before."""
    reader = await cluster.started()
    place = TopicPartition(topic, 0)

    async def there():
        return (await reader.end_offsets([place]))[place] == end

    await cluster.until(there)
    await reader.stop()


async def test_an_empty_state_is_restored_at_once(cluster):
    """Proves that nothing is waited for where nothing is."""
    topic = await cluster.topic()
    assert await restored(cluster, topic) == ([], 0, 0)


async def test_a_state_that_ends_in_a_marker_is_restored(cluster):
    """Proves that the last offset, which is no record, is reached."""
    topic = await cluster.topic()
    producer = await cluster.producer(cluster.name("tx"))
    for n in range(5):
        await one_round(producer, topic, b"%d" % n)
    await ended_at(cluster, topic, 10)
    assert await restored(cluster, topic) == ([b"%d" % n for n in range(5)], 10, 10)


async def test_a_state_that_ends_in_aborted_rounds_is_restored(cluster):
    """Proves that a tail in which nothing is to be seen does not hold a restore up for ever."""
    topic = await cluster.topic()
    producer = await cluster.producer(cluster.name("tx"))
    await one_round(producer, topic, b"kept")
    for n in range(20):
        await one_round(producer, topic, b"gone-%d" % n, ends="abort")
    await producer.begin_transaction()
    for n in range(30):
        await producer.send(topic, b"gone", key=b"%d" % n, partition=0)
    await producer.abort_transaction()
    await ended_at(cluster, topic, 2 + 40 + 31)
    assert await restored(cluster, topic) == ([b"kept"], 73, 73)


async def test_a_committed_round_behind_an_open_one_is_missed_before_the_ids_are_taken(cluster):
    """Proves why both ids are taken before the end is asked for: until then a committed round is hidden."""
    topic, stem = await cluster.topic(), cluster.name("pool")
    even, odd = [await cluster.producer(f"{stem}-{n}") for n in range(2)]
    await one_round(even, topic, b"0")
    await ended_at(cluster, topic, 2)
    await one_round(even, topic, b"open", ends="")
    await one_round(odd, topic, b"1")
    assert await restored(cluster, topic) == ([b"0"], 2, 2), "the committed round 1 is not seen"
    for n in range(2):
        await cluster.producer(f"{stem}-{n}")
    await ended_at(cluster, topic, 6)
    assert await restored(cluster, topic) == ([b"0", b"1"], 6, 6)


async def test_a_new_owner_of_both_ids_reads_every_round_that_was_ever_acknowledged(cluster):
    """Proves a take-over at once after a commit: nothing that was answered is missing, round after round."""
    topic, stem = await cluster.topic(), cluster.name("pool")
    rounds: list[bytes] = []
    for life in range(4):
        ids = [await cluster.producer(f"{stem}-{n}") for n in range(2)]
        assert (await restored(cluster, topic))[0] == rounds
        for n in range(3):
            rounds.append(b"%d-%d" % (life, n))
            await one_round(ids[len(rounds) % 2], topic, rounds[-1])
        await one_round(ids[(len(rounds) + 1) % 2], topic, b"half", ends="")


async def test_the_high_water_mark_counts_what_is_still_open(cluster):
    """Proves the two ends: of everything, and of what is decided."""
    topic = await cluster.topic()
    place = TopicPartition(topic, 0)
    producer = await cluster.producer(cluster.name("tx"))
    await one_round(producer, topic, b"0")
    await ended_at(cluster, topic, 2)
    await one_round(producer, topic, b"open", ends="")
    ends = {}
    for isolation in ("read_committed", "read_uncommitted"):
        reader = await cluster.started(isolation_level=isolation)
        ends[isolation] = (await reader.end_offsets([place]))[place]
    assert ends == {"read_committed": 2, "read_uncommitted": 3}
