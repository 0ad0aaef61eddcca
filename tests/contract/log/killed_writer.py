"""Writes to a durable log for as long as it lives, and prints what was acknowledged. Run by test_durability.

Lines: `plain N` (record N), `round N` (transaction N: three records over two topics and a group's offset),
`offset N` (a committed offset). A line is printed only after the log's answer.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from types import SimpleNamespace

from aiokafka import TopicPartition

from evenflow.platform.broker.embedded.clients.producer import EmbeddedProducer
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.storage.sqlite import FileStorage
from evenflow.platform.clock import SystemClock

TOPICS = [SimpleNamespace(name=name, partitions=4, configs={}) for name in ("plain", "a", "b")]


def say(kind: str, number: int) -> None:
    os.write(1, f"{kind} {number}\n".encode())


async def plain(log: EmbeddedLog, start: int) -> None:
    producer = EmbeddedProducer(log, clock=log.clock)
    await producer.start()
    number = start
    while True:
        sent = [await producer.send("plain", b"%d" % (number + n), key=b"k%d" % n) for n in range(7)]
        for future in sent:
            await future
            say("plain", number)
            number += 1


async def rounds(log: EmbeddedLog, start: int) -> None:
    ids = [EmbeddedProducer(log, clock=log.clock, transactional_id=f"pool-{n}") for n in range(2)]
    for producer in ids:
        await producer.start()
    number = start
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
        else:
            await producer.commit_transaction()
            say("round", number)
        number += 1


async def offsets(log: EmbeddedLog, start: int) -> None:
    number = start
    while True:
        await log.commit([("shown", "plain", 1, number, "")])
        say("offset", number)
        number += 1
        await asyncio.sleep(0.001)


async def main(folder: str, plain_from: int, round_from: int, offset_from: int) -> None:
    log = EmbeddedLog(clock=SystemClock(), storage=FileStorage(Path(folder)))
    log.provision(TOPICS)
    say("ready", 0)
    await asyncio.gather(plain(log, plain_from), rounds(log, round_from), offsets(log, offset_from))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:5])))
