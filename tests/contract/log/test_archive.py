"""The archive of records in the object store."""

from __future__ import annotations

import pytest

from evenflow.platform.broker.embedded.archive import ObjectArchive, read_archive
from evenflow.platform.broker.embedded.records import LogRecord
from evenflow.platform.stores.factory import open_objects
from evenflow.platform.stores.ports import Damaged


def records(*offsets):
    return [
        LogRecord("t", 0, n, 1_000 + n, b"k", None if n % 3 == 0 else bytes([n, 0xFF]), [("h", b"\xfe"), ("t", b"x")])
        for n in offsets
    ]


async def read(objects):
    return [(r.offset, r.timestamp, r.key, r.value, r.headers) async for r in read_archive(objects, "t", 0)]


@pytest.fixture(params=["memory:", "file://DIR"])
async def objects(request, tmp_path):
    store = open_objects(request.param.replace("DIR", str(tmp_path)))
    yield store
    await store.close()


async def test_what_was_archived_is_read_back_byte_for_byte(objects):
    """Proves that keys, tombstones, raw values and headers survive, in order of offset."""
    archive = ObjectArchive(objects, lambda topic: topic == "t")
    assert archive.keeps("t")
    assert not archive.keeps("u")
    await archive.archive("t", 0, records(0, 1, 4))
    await archive.archive("t", 0, records(100, 101))
    expected = [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in records(0, 1, 4, 100, 101)]
    assert await read(objects) == expected
    assert len(await objects.paths("archive/t/0/")) == 2


async def test_a_run_archived_twice_is_there_once(objects):
    """Proves that a crash between archiving and dropping costs nothing."""
    archive = ObjectArchive(objects, lambda topic: True)
    await archive.archive("t", 0, records(1, 2))
    await archive.archive("t", 0, records(1, 2))
    await archive.archive("t", 0, records(1, 2, 3))
    assert [row[0] for row in await read(objects)] == [1, 2, 3]


async def test_a_changed_object_is_found_out(objects):
    """Proves that a rebuild never takes damaged history for the truth, and that archiving again mends it."""
    archive = ObjectArchive(objects, lambda topic: True)
    await archive.archive("t", 0, records(1, 2))
    (path,) = await objects.paths("archive/t/0/")
    await objects.put(path, b"{}\n")
    with pytest.raises(Damaged, match=r"is not what was written"):
        await read(objects)
    await archive.archive("t", 0, records(1, 2))
    assert [row[0] for row in await read(objects)] == [1, 2]


async def test_a_view_is_rebuilt_from_the_archive_and_the_log(embedded):
    """Proves rebuild = archive + tail: nothing is missing and nothing twice after expiry."""
    objects = open_objects("memory:")
    topic = await embedded.topic(retention_ms="1000")
    embedded.log.hooks.archive = ObjectArchive(objects, lambda name: name == topic)
    producer = await embedded.producer()
    for n in range(6):
        age_ms = 5_000 if n < 4 else 0
        await producer.send_and_wait(topic, b"%d" % n, partition=0, timestamp_ms=embedded.clock.ms - age_ms)
    assert await embedded.transport.retention.step() == 4
    archived = [r.value async for r in read_archive(objects, topic, 0)]
    assert archived + await embedded.values(topic, 2) == [b"%d" % n for n in range(6)]
