"""Servers killed, standing still, slow or with a full disk; stores wiped or put back to a backup."""

from __future__ import annotations

import resource
import shutil
import signal
from typing import Final

from evenflow.platform.stores.factory import open_documents, open_live
from evenflow.testkit.processes.faults.harm.row import AWAY_S, PAUSE_S, STAND_S, Row
from evenflow.testkit.processes.faults.world import World

#: A slow server stands for so long, works for so long, and again.
SLOW_STANDS_S: Final = 0.3
SLOW_WORKS_S: Final = 0.1
#: No file may grow beyond this: the next append to any segment of some age fails, as on a full disk.
FULL_BYTES: Final = 4_096
VIEWS: Final = ("nodes", "links", "datasets", "tasks", "ledger", "crossings")


def _killed(kind: str, *, away_s: float = 0.0) -> Row:
    async def do(world: World) -> None:
        await world.servers.kill(kind)
        await world.clock.sleep(away_s)
        await world.servers.restart(kind)

    return Row(f"{kind} is killed" + (f" and away for {away_s:.0f} s" if away_s else ""), "server", do)


def _stands(kind: str, stand_s: float, *, brief: bool = True) -> Row:
    async def do(world: World) -> None:
        running = world.servers.running[kind]
        running.tell(signal.SIGSTOP)
        await world.clock.sleep(stand_s)
        running.tell(signal.SIGCONT)

    return Row(f"{kind} stands still for {stand_s:.0f} s", "server", do, brief)


def _slow(kind: str, *, brief: bool) -> Row:
    async def do(world: World) -> None:
        running = world.servers.running[kind]
        until_ms = world.clock.monotonic_ms() + round(STAND_S * 1_000)
        async with world.traffic():
            while world.clock.monotonic_ms() < until_ms:
                running.tell(signal.SIGSTOP)
                await world.clock.sleep(SLOW_STANDS_S)
                running.tell(signal.SIGCONT)
                await world.clock.sleep(SLOW_WORKS_S)

    return Row(f"{kind} works a quarter of the time for {STAND_S:.0f} s", "server", do, brief)


async def _full_disk(world: World) -> None:
    """The broker can't write, ends, and starts again when there is room."""
    running = world.servers.running["kafka"]
    _, hard = resource.prlimit(running.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (FULL_BYTES, hard))
    async with world.traffic():
        await world.until_gone(running)
    await world.servers.restart("kafka")


async def _wipe_live(world: World) -> None:
    live = open_live(world.servers.servers["redis"].url())
    await live.clear()
    await live.close()


async def _wipe_documents(world: World) -> None:
    documents = open_documents(world.servers.servers["documents"].url())
    for collection in VIEWS:
        await documents.drop(collection)
    await documents.close()
    await world.views_whole()


async def _restore_documents(world: World) -> None:
    """A backup is taken while nothing writes; the pool goes on; the store is lost and the backup put back."""
    server = world.servers.servers["documents"]
    data, backup = server.folder, server.folder.with_name("documents-backup")
    await world.servers.kill("documents")
    shutil.copytree(data, backup)
    await world.servers.restart("documents")
    await world.clock.sleep(STAND_S)  # so that the views are marked again
    for _ in range(3):
        await world.probe(within_s=60)
    await world.servers.kill("documents")
    shutil.rmtree(data)
    shutil.move(backup, data)
    await world.servers.restart("documents")
    await world.views_whole()


SERVER_ROWS: Final[tuple[Row, ...]] = (
    _killed("kafka"),
    _killed("redis"),
    _killed("documents"),
    _killed("objects"),
    _killed("redis", away_s=AWAY_S),
    _killed("documents", away_s=AWAY_S),
    _stands("kafka", PAUSE_S),
    _slow("kafka", brief=True),
    Row("the broker's disk is full", "server", _full_disk),
    Row("Redis is wiped", "store", _wipe_live),
    Row("the documents are wiped", "store", _wipe_documents),
    Row("the documents are put back to a backup", "store", _restore_documents),
    _killed("kafka", away_s=STAND_S),
    _stands("kafka", STAND_S, brief=False),
    _stands("documents", PAUSE_S, brief=False),
    _stands("redis", PAUSE_S, brief=False),
    _slow("documents", brief=False),
    _slow("objects", brief=False),
)
