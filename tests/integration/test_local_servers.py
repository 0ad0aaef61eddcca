"""The local servers themselves: what was acknowledged survives kill -9 and a stop, and a second set is refused."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiokafka import TopicPartition

from evenflow.core.errors import Refused, Unavailable
from evenflow.events.streams import AUDIT
from evenflow.platform.broker.factory import make_transport
from evenflow.platform.clock import RandomIds, SystemClock
from evenflow.platform.stores.factory import open_documents, open_live, open_objects
from evenflow.platform.stores.ports import LiveLoad
from evenflow.testkit.servers import local
from evenflow.testkit.servers.local import LocalServers, recorded
from evenflow.testkit.servers.process import free_ports, spawn, stop

pytestmark = pytest.mark.servers
CLOCK = SystemClock()
KEPT = ("kafka", "documents", "objects")
COUNT = 50


@pytest.fixture
async def servers(tmp_path: Path, pytestconfig: pytest.Config) -> AsyncIterator[LocalServers]:
    """A set of its own, in an empty folder."""
    made = LocalServers(pytestconfig.rootpath, tmp_path, CLOCK, lambda _: None, tied=True)
    yield made
    await made.stop()


@pytest.fixture
def keys(servers: LocalServers, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in servers.servers["objects"].keys().items():
        monkeypatch.setenv(name, value)


async def written(servers: LocalServers) -> None:
    """Fifty records, documents and objects, each acknowledged."""
    transport = make_transport(servers.servers["kafka"].url(), clock=CLOCK, ids=RandomIds(CLOCK))
    await transport.provision([AUDIT])
    producer = transport.producer(client_id="writer")
    await producer.start()
    documents = open_documents(servers.servers["documents"].url())
    objects = open_objects(servers.servers["objects"].url())
    for number in range(COUNT):
        await producer.send_and_wait(AUDIT.name, b"%d" % number, key=b"k")
        assert await documents.put("tasks", f"t{number:03}", {"number": number}, expect=0) == 1
        await objects.put(f"o{number:03}", b"%d" % number, create=True)
    await producer.stop()
    await documents.close()
    await objects.close()
    await transport.close()


async def found(servers: LocalServers) -> tuple[int, int, int]:
    """How many of each are there."""
    transport = make_transport(servers.servers["kafka"].url(), clock=CLOCK, ids=RandomIds(CLOCK))
    reader = transport.consumer(client_id="reader")
    await reader.start()
    ends = await reader.end_offsets([TopicPartition(AUDIT.name, n) for n in range(AUDIT.partitions)])
    documents = open_documents(servers.servers["documents"].url())
    objects = open_objects(servers.servers["objects"].url())
    rows = [row async for row in documents.scan("tasks")]
    paths = await objects.paths("")
    await reader.stop()
    await documents.close()
    await objects.close()
    await transport.close()
    return sum(ends.values()), len(rows), len(paths)


@pytest.mark.usefixtures("keys")
async def test_what_was_acknowledged_survives_a_kill_and_a_stop(servers: LocalServers, monkeypatch) -> None:
    """Proves that the servers keep what a fault test relies on: killed at once, and stopped with other ports after."""
    await servers.start(KEPT)
    await written(servers)
    for kind in KEPT:
        servers.running[kind].tell(signal.SIGKILL)
    while any(one.lives for one in servers.running.values()):
        await CLOCK.sleep(0.01)
    for kind in KEPT:
        await servers.restart(kind)
    assert await found(servers) == (COUNT, COUNT, COUNT)
    ports = [server.ports for server in servers.servers.values()]
    await servers.stop()
    monkeypatch.setattr(local, "free_ports", lambda count: free_ports(count + 9)[9:])
    await servers.start(KEPT, fresh=False)
    assert [server.ports for server in servers.servers.values()] != ports
    assert await found(servers) == (COUNT, COUNT, COUNT)
    await servers.stop()
    await servers.start(["objects"], fresh=True)
    objects = open_objects(servers.servers["objects"].url())
    assert await objects.paths("") == []
    await objects.close()


async def test_a_cluster_that_lost_a_node_is_unavailable_for_a_bounded_time(servers: LocalServers) -> None:
    """Proves that live load on a cluster answers or is Unavailable within its bounds, and works again by itself."""
    await servers.start(["redis-cluster"])
    store = open_live(servers.servers["redis-cluster"].url())
    sites = [f"site-{number}" for number in range(12)]  # on every node
    for site in sites:
        assert await store.put_frame(site, b"frame", written_ms=1) == 1
    lost = servers.running["redis-cluster/1"]
    lost.tell(signal.SIGKILL)
    while lost.lives:
        await CLOCK.sleep(0.01)
    refused, longest_ms = 0, 0
    for site in sites:
        begun_ms = CLOCK.monotonic_ms()
        try:
            await store.put_frame(site, b"frame", written_ms=2)
        except Unavailable:
            refused += 1
        longest_ms = max(longest_ms, CLOCK.monotonic_ms() - begun_ms)
    print(f"{refused} of {len(sites)} refused, the longest after {longest_ms} ms")
    assert refused > 0
    assert longest_ms < 10_000
    await servers.restart("redis-cluster")
    async with asyncio.timeout(30):
        while not await frames_are_taken(store, sites):
            await CLOCK.sleep(0.1)
    await store.close()


async def frames_are_taken(store: LiveLoad, sites: list[str]) -> bool:
    try:
        for site in sites:
            await store.put_frame(site, b"again", written_ms=3)
        frames = await store.frames(sites)
    except Unavailable:
        return False
    return [frame[1:] for frame in frames.values()] == [(3, b"again")] * len(sites)


async def test_a_folder_holds_one_set(servers: LocalServers, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Proves that a second start is refused by name while the first set is up, and leaves it alone."""
    await servers.start(["redis"])
    second = LocalServers(pytestconfig.rootpath, tmp_path, CLOCK, lambda _: None, tied=True)
    with pytest.raises(Refused, match=r"already up in .*: Redis; stop them first"):
        await second.start(["redis"])
    assert [one.lives for one in recorded(tmp_path)] == [True]


async def test_a_server_that_ends_while_starting_says_why(servers: LocalServers, monkeypatch) -> None:
    """Proves that the end of its own log is in the error, and that what had started beside it is stopped."""
    monkeypatch.setattr(local.RedisServer, "command", lambda self, _node: [self.program(), "--no-such-setting", "1"])
    with pytest.raises(Unavailable, match=r"Redis ended while starting[\s\S]*no-such-setting"):
        await servers.start(["objects", "redis"])
    assert servers.running == {}
    assert not await servers.servers["objects"].answers()


async def test_a_port_that_was_taken_meanwhile_is_named(servers: LocalServers, tmp_path: Path) -> None:
    """Proves that another program's answer is never taken for the new server's."""
    await servers.start(["redis"])
    squatter = LocalServers(servers.servers["redis"].root, tmp_path / "other", CLOCK, lambda _: None, tied=True)
    squatter.servers["redis"].ports = servers.servers["redis"].ports
    with pytest.raises(Unavailable, match=f"another program listens on port {servers.servers['redis'].port}"):
        await squatter.restart("redis")


async def test_a_tied_server_ends_with_the_one_that_started_it(tmp_path: Path) -> None:
    """Proves that a test run that is killed leaves no server behind."""
    program = (
        "import time; from pathlib import Path; from evenflow.testkit.servers.process import spawn\n"
        f"log = Path({str(tmp_path / 'redis.log')!r})\n"
        "one = spawn('redis', ['redis-server', '--port', '0', '--save', ''], log, tied=True)\n"
        "print(one.pid, flush=True); time.sleep(600)"
    )
    path = {"PYTHONPATH": os.pathsep.join(sys.path)}
    parent = spawn("parent", [sys.executable, "-c", program], tmp_path / "parent.log", tied=True, environment=path)
    while not parent.said().strip().isdigit():
        assert parent.lives, parent.said()
        await CLOCK.sleep(0.02)
    child = int(parent.said())
    os.kill(child, 0)
    parent.tell(signal.SIGKILL)
    await stop([parent], CLOCK, within_s=5)
    for _ in range(200):
        if not Path(f"/proc/{child}").exists() or " Z " in Path(f"/proc/{child}/stat").read_text():
            return
        await CLOCK.sleep(0.02)
    raise AssertionError("the server outlived its parent")
