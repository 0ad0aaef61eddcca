"""What must be true of a folder whose writer was killed, whatever the moment: of the file, and of a log opened on it.

Everything acknowledged is there exactly once, nothing half of a transaction is visible, no group's offset is ahead of
its partition's records, no live key is missing, what expired or was compacted away is in the archive, and the next
owner of a transactional id fences the last one.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import ProducerFenced
from tests.contract.log.conftest import EmbeddedCluster
from tests.contract.log.killing.writer import TOPICS

from evenflow.platform.broker.embedded.archive import read_archive
from evenflow.platform.stores.factory import open_objects

IDS = ("pool-0", "pool-1", "seat", "slow")


class Told:
    """What all writers of one folder together were told."""

    def __init__(self) -> None:
        self.numbers: dict[str, set[int]] = defaultdict(set)
        self.highest: dict[str, int] = defaultdict(int)
        self.count = 0

    def hear(self, lines: list[str]) -> None:
        self.count += len(lines)
        for line in lines:
            kind, number = line.split()
            if ":" in kind:
                self.highest[kind] = max(self.highest[kind], int(number))
            else:
                self.numbers[kind].add(int(number))


def check_file(folder: Path) -> None:
    """The file, before anybody writes to it again: no record of half a change, no offset ahead of its records."""
    database = sqlite3.connect(folder / "log.sqlite")
    ask = lambda text: database.execute(text).fetchall()
    try:
        assert ask("pragma quick_check") == [("ok",)]
        if not ask("select 1 from sqlite_master where name='committed'"):
            return  # killed before there was a log
        ends = {part: (topic, number, end) for part, topic, number, end in ask(_ENDS)}
        for _, topic, number, offset in ask("select grp, topic, number, off from committed where grp='reader'"):
            assert offset <= max(end for t, n, end in ends.values() if (t, n) == (topic, number))
        open_ids = {name for (name,) in ask("select id from opened")}
        assert open_ids <= {name for (name,) in ask("select id from identity")}
        for part, first in ask("select part, first from opened"):
            assert ask(f"select kind from record where id={part << 40 | first}") == [(0,)], "its first record is there"
    finally:
        database.close()


_ENDS = """
    select part.id, part.topic, part.number, max(part.next_offset, coalesce(
        (select max(record.id) & 0xFFFFFFFFFF from record where record.id >> 40 = part.id) + 1, 0)) from part"""


async def check(left: Path, told: Told) -> None:
    """Everything, on a copy, so that the next writer finds the folder exactly as the killed one left it."""
    folder = left.with_name(f"{left.name}-copy")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(left, folder)
    check_file(folder)
    cluster = EmbeddedCluster(f"embedded:{folder}")
    try:
        if not cluster.log.topics:
            assert told.count == 0, "topics come before everything"
            return
        assert set(cluster.log.topics) == {topic.name for topic in TOPICS}
        seen_before = {name: await numbers(cluster, name) for name in ("a", "b", "seat", "slow")}
        await check_fences(cluster, told)
        await check_rounds(cluster, told, seen_before)
        await check_plain(cluster, told)
        await check_kept(cluster, told, open_objects(f"file://{folder / 'objects'}"))
    finally:
        await cluster.close()


async def check_fences(cluster: EmbeddedCluster, told: Told) -> None:
    """Each id's next owner is newer than every one before, and nothing stays open behind it."""
    for name in IDS:
        producer = await cluster.producer(name)
        last = told.highest.get(f"epoch:{name}", -1)
        assert producer._epoch > last
        if last >= 0:
            with pytest.raises(ProducerFenced):
                cluster.log.transactions.require(name, last)
    for topic in cluster.log.topics.values():
        for partition in topic.partitions:
            assert partition.stable == partition.next
            assert partition.start <= partition.next


async def check_rounds(cluster: EmbeddedCluster, told: Told, before: dict[str, list[Any]]) -> None:
    """A round is whole or not there, also where a reader of committed records looked before anything was aborted."""
    found = {name: await numbers(cluster, name) for name in ("a", "b", "seat", "slow")}
    for name, seen in before.items():
        assert set(seen) <= set(found[name]), f"{name} showed what was never committed"
    assert sorted(found["a"]) == sorted(found["b"] * 2)
    assert len(found["b"]) == len(set(found["b"]))
    assert told.numbers["round"] <= set(found["b"])
    assert not told.numbers["aborted"] & set(found["b"])
    in_group = cluster.log.committed("rounds", TopicPartition("plain", 0))
    assert in_group == max(found["b"], default=in_group), "the group's offset is the last round's"
    assert len(found["seat"]) == len(set(found["seat"]))
    assert told.numbers["seat"] <= set(found["seat"])
    assert found["slow"] == []
    assert not told.numbers["late"]


async def check_plain(cluster: EmbeddedCluster, told: Told) -> None:
    """Records and commits outside of transactions; a new idempotent producer is taken for nobody else."""
    found = await numbers(cluster, "plain")
    assert told.numbers["plain"] <= set(found)
    assert len(found) == len(set(found))
    for partition in cluster.log.topics["plain"].partitions:
        committed = cluster.log.committed("reader", partition.key)
        assert (committed or 0) >= told.highest[f"read:{partition.number}"]
        assert (committed or 0) <= partition.next
    producer = await cluster.producer()
    number = 1 + max(found, default=0)
    place = await producer.send_and_wait("plain", b"%d" % number, partition=3)
    assert place.offset == cluster.log.topics["plain"].partitions[3].next - 1


async def check_kept(cluster: EmbeddedCluster, told: Told, objects: Any) -> None:
    """Archive and log together have every record once; the log has each live key, and no deleted one rises again."""
    for name, number_of in (("aged", lambda r: int(r.value)), ("state", lambda r: int(dict(r.headers)["number"]))):
        here = await records(cluster, name)
        rows = {r.offset: r async for r in read_archive(objects, name, 0)}
        for record in here:
            kept = rows.setdefault(record.offset, record)
            assert (kept.key, kept.value) == (record.key, record.value)
        history = [rows[offset] for offset in sorted(rows)]
        every = [number_of(record) for record in history]
        assert len(every) == len(set(every))
        assert told.numbers[name] <= set(every)
        if name == "state":
            check_keys(here, history)


def check_keys(here: list[Any], history: list[Any]) -> None:
    newest = {record.key: record for record in history}
    shown = {record.key: record for record in here}
    for key, record in newest.items():
        if record.value is not None:
            assert shown[key].offset == record.offset, "a live key is there"
        elif key in shown:
            assert shown[key].offset == record.offset, "a deleted key stays deleted"


async def records(cluster: EmbeddedCluster, topic: str) -> list[Any]:
    """What a reader of committed records gets of a topic, up to its end."""
    reader = await cluster.started(topic)
    ends = await reader.end_offsets(reader.assignment())
    found: list[Any] = []
    while any([await reader.position(key) < end for key, end in ends.items()]):
        for batch in (await reader.getmany(timeout_ms=5)).values():
            found += batch
    await reader.stop()
    return found


async def numbers(cluster: EmbeddedCluster, topic: str) -> list[Any]:
    """The same, as numbers; what is none stays as it is."""
    values = [record.value for record in await records(cluster, topic)]
    return [int(value) if value.isdigit() else value for value in values]
