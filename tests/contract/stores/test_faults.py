"""The fault switches of the simulated stores, and that effects stand between two gaps."""

from __future__ import annotations

import asyncio

import pytest

from evenflow.core.errors import Conflict, Refused, Unavailable
from evenflow.platform.stores.memory import MemoryDocuments, MemoryLiveLoad, MemoryObjects
from evenflow.platform.stores.ports import Absent, Damaged, Stored


async def test_a_store_that_is_down_answers_nothing_and_forgets_nothing() -> None:
    """down: every call is Unavailable and retriable; up: what was there is there."""
    store = MemoryDocuments()
    await store.put("tasks", "t", {"n": 1})
    store.faults.down()
    for call in (store.get("tasks", "t"), store.put("tasks", "t", {}), store.delete("tasks", "t"), store.drop("tasks")):
        with pytest.raises(Unavailable) as caught:
            await call
        assert caught.value.retriable
    with pytest.raises(Unavailable):
        _ = [row async for row in store.scan("tasks")]
    store.faults.up()
    assert await store.get("tasks", "t") == Stored("t", 1, {"n": 1})


async def test_a_read_only_store_reads() -> None:
    """read_only: writes are Unavailable, reads go on; up ends it."""
    store = MemoryLiveLoad()
    await store.put_frame("east", b"1", written_ms=1)
    store.faults.read_only()
    with pytest.raises(Unavailable):
        await store.put_frame("east", b"2", written_ms=2)
    assert await store.frames(["east"]) == {"east": (1, 1, b"1")}
    store.faults.up()
    assert await store.put_frame("east", b"2", written_ms=2) == 2


async def test_a_refusal_matches_by_value_and_counts() -> None:
    """refuse: only writes whose named values are equal, only so many times, never retriable."""
    store = MemoryDocuments()
    store.faults.refuse({"collection": "tasks", "state": "running"}, times=2)
    await store.put("tasks", "t", {"state": "queued"})
    await store.put("nodes", "t", {"state": "running"})
    for _ in range(2):
        with pytest.raises(Refused) as caught:
            await store.put("tasks", "t", {"state": "running"})
        assert not caught.value.retriable
    assert await store.put("tasks", "t", {"state": "running"}) == 2
    store.faults.refuse({"id": "b"})
    with pytest.raises(Refused):
        await store.put_many("tasks", {"a": {}, "b": {}})


async def test_a_lost_answer_leaves_the_write_done() -> None:
    """lose_answers: the caller hears Unavailable although the write is there; its conditional retry conflicts."""
    store = MemoryDocuments()
    store.faults.lose_answers(1)
    with pytest.raises(Unavailable):
        await store.put("tasks", "t", {"n": 1}, expect=0)
    assert await store.get("tasks", "t") == Stored("t", 1, {"n": 1})
    with pytest.raises(Conflict):
        await store.put("tasks", "t", {"n": 1}, expect=0)


async def test_a_swallowed_write_is_acknowledged_and_not_kept() -> None:
    """swallow: the answer looks right, the content is missing."""
    documents, objects = MemoryDocuments(), MemoryObjects()
    documents.faults.swallow(1)
    assert await documents.put("tasks", "t", {"n": 1}) == 1
    assert await documents.get("tasks", "t") is None
    objects.faults.swallow(1)
    version = await objects.put_version("p", b"x", {})
    assert version.number == 1
    with pytest.raises(Damaged):
        await objects.get_version("p")


async def test_a_wiped_store_is_empty() -> None:
    """wipe: all three lose everything at once and go on."""
    documents, live, objects = MemoryDocuments(), MemoryLiveLoad(), MemoryObjects()
    await documents.put("tasks", "t", {})
    await live.put_frame("east", b"", written_ms=1)
    await objects.put("a", b"")
    for store in (documents, live, objects):
        store.wipe()
    assert await documents.get("tasks", "t") is None
    assert await live.sites() == []
    with pytest.raises(Absent):
        await objects.get("a")


async def test_every_call_gives_way_before_and_after_its_effect() -> None:
    """A crash can meet "not done", "done and unknown" and, in a batch, "half done"."""
    seen: list[int] = []

    async def gap() -> None:
        await asyncio.sleep(0)
        seen.append(len(plain._rows.get("tasks", {})))

    plain = MemoryDocuments(gap)
    await plain.put("tasks", "a", {})
    assert seen == [0, 1]
    seen.clear()
    await plain.put_many("tasks", {"b": {}, "c": {}, "d": {}})
    assert seen == [1, 2, 2, 4]
    seen.clear()
    await plain.get("tasks", "a")
    assert seen == [4, 4]
