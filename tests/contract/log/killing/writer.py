"""Everything a process does to a log, at once and for as long as it lives; it says what it was told.

Lines are `kind number`, each written only after the log's answer. Numbers begin at `first` and are never used twice.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace

from aiokafka import TopicPartition
from aiokafka.errors import ProducerFenced

from evenflow.platform.broker.embedded.archive import ObjectArchive
from evenflow.platform.broker.embedded.clients.producer import EmbeddedProducer
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.retention import Retention
from evenflow.platform.broker.embedded.storage.port import Storage
from evenflow.platform.clock import SystemClock
from evenflow.platform.stores.factory import open_objects
from evenflow.platform.stores.ports import Objects

COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.3", "delete.retention.ms": "40"}
TOPICS = [
    *(SimpleNamespace(name=name, partitions=4, configs={}) for name in ("plain", "a", "b")),
    *(SimpleNamespace(name=name, partitions=1, configs={}) for name in ("slow", "seat")),
    SimpleNamespace(name="state", partitions=1, configs=COMPACTED),
    SimpleNamespace(name="aged", partitions=1, configs={"retention.ms": "1000"}),
]
KEPT = ("state", "aged")
AGE_MS = 60_000


class DyingArchive(ObjectArchive):
    """The product's archive, with a point before and after each object."""

    def __init__(self, objects: Objects, points) -> None:
        super().__init__(objects, KEPT.__contains__)
        self._points = points

    async def archive(self, topic, partition, records) -> None:
        self._points.reach("archive/before-object")
        with self._points.inside("archive/in-object"):
            await super().archive(topic, partition, records)
        self._points.reach("archive/after-object")


class Writer:
    """One life on one folder."""

    def __init__(self, folder: Path, storage: Storage, points, first: int) -> None:
        self.log = EmbeddedLog(clock=SystemClock(), storage=storage)
        self.log.hooks.archive = DyingArchive(open_objects(f"file://{folder / 'objects'}"), points)
        self.first = first

    def say(self, kind: str, number: int) -> None:
        os.write(1, f"{kind} {number}\n".encode())

    async def begun(self, name: str, timeout_ms: int = 60_000) -> EmbeddedProducer:
        """The next owner of a transactional id."""
        made = EmbeddedProducer(
            self.log, clock=self.log.clock, transactional_id=name, transaction_timeout_ms=timeout_ms
        )
        await made.start()
        self.say(f"epoch:{name}", made._epoch)
        return made

    async def plain(self) -> None:
        """Records of an idempotent producer, and the offsets of somebody who reads them."""
        producer = EmbeddedProducer(self.log, clock=self.log.clock)
        await producer.start()
        number = self.first
        while True:
            sent = [await producer.send("plain", b"%d" % (number + n), key=b"k%d" % n) for n in range(7)]
            for future in sent:
                place = await future
                self.say("plain", number)
                number += 1
            commit = self.log.commit([("reader", "plain", place.partition, place.offset + 1, "")])
            if number % 2:
                await producer.send("plain", b"%d" % (number + 7), key=b"k")
                number += 8
            await commit
            self.say(f"read:{place.partition}", place.offset + 1)
            await asyncio.sleep(0.002)

    async def rounds(self) -> None:
        """A leader's rounds: two ids in turn, three records over two topics, and a group's offset."""
        ids = [await self.begun(f"pool-{n}") for n in range(2)]
        number = self.first
        while True:
            producer = ids[number % 2]
            await producer.begin_transaction()
            for topic, copy in (("a", 0), ("a", 1), ("b", 0)):
                await producer.send(topic, b"%d" % number, key=b"%d-%d" % (number, copy))
                if number % 3 == 0:
                    await producer.flush()
            await producer.send_offsets_to_transaction({TopicPartition("plain", 0): number}, "rounds")
            if number % 5 == 4:
                await producer.abort_transaction()
                self.say("aborted", number)
            else:
                await producer.commit_transaction()
                self.say("round", number)
            number += 1
            await asyncio.sleep(0.001)

    async def seat(self) -> None:
        """Owners of one id, each taking it from the one before, who has a round open."""
        number = self.first
        while True:
            old = await self.begun("seat")
            await old.begin_transaction()
            await old.send_and_wait("seat", b"half")
            new = await self.begun("seat")
            await new.begin_transaction()
            await new.send_and_wait("seat", b"%d" % number)
            await new.commit_transaction()
            self.say("seat", number)
            number += 1
            await asyncio.sleep(0.003)

    async def slow(self) -> None:
        """Transactions that take longer than they may."""
        while True:
            producer = await self.begun("slow", timeout_ms=3)
            await producer.begin_transaction()
            await producer.send_and_wait("slow", b"late")
            await asyncio.sleep(0.006)
            try:
                await producer.commit_transaction()
                self.say("late", self.first)
            except ProducerFenced:
                pass

    async def state(self) -> None:
        """Ten keys written again and again, and deleted now and then."""
        producer = EmbeddedProducer(self.log, clock=self.log.clock)
        await producer.start()
        number = self.first
        while True:
            value = None if number % 17 == 0 else b"%d" % number
            headers = [("number", b"%d" % number)]
            await producer.send_and_wait("state", value, key=b"k%d" % (number % 10), headers=headers)
            self.say("state", number)
            number += 1
            await asyncio.sleep(0.0005)

    async def aged(self) -> None:
        """Records that are due to expire when they come."""
        producer = EmbeddedProducer(self.log, clock=self.log.clock)
        await producer.start()
        number = self.first
        while True:
            await producer.send_and_wait("aged", b"%d" % number, timestamp_ms=self.log.clock.now_ms() - AGE_MS)
            self.say("aged", number)
            number += 1
            await asyncio.sleep(0.002)

    async def cleaning(self) -> None:
        """Expiry, compaction and the archive."""
        retention = Retention(self.log)
        while True:
            await retention.step()
            await asyncio.sleep(0.004)

    async def live(self, seconds: float) -> None:
        """All of it, for so long."""
        self.log.provision(TOPICS)
        works = (self.plain, self.rounds, self.seat, self.slow, self.state, self.aged, self.cleaning)
        tasks = [asyncio.ensure_future(work()) for work in works]
        ended, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.log.close()
