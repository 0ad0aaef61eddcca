"""Locked servers for a module's tests: Kafka with the list of permissions on it, Redis, and the document stand-in."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pymongo import MongoClient

from evenflow.events.streams import topics
from evenflow.platform.broker.kafka import KafkaTransport
from evenflow.platform.clock import RandomIds, SystemClock
from evenflow.platform.security.access import Access
from evenflow.platform.security.permissions import permissions
from evenflow.testkit.locked.servers import ROOT, LockedDocuments, LockedKafka, LockedRedis, password_of
from evenflow.testkit.servers.local import LocalServers

CLOCK = SystemClock()
USER = "evenflow-inventory"
#: Threads of the clients that tried a server end a moment after the client was closed.
HANDSHAKES_END_S = 0.3
MADE_OF = (LockedKafka, LockedRedis, LockedDocuments)


def transport(kafka: LockedKafka, access: Access) -> KafkaTransport:
    """The product's clients, logged in."""
    return KafkaTransport(f"127.0.0.1:{kafka.port}", clock=CLOCK, ids=RandomIds(CLOCK), access=access)


def _started(kind: str, tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[LocalServers]:
    made = LocalServers(root, tmp_path_factory.mktemp("locked"), CLOCK, print, tied=True, made_of=MADE_OF)
    asyncio.run(made.start([kind]))
    yield made
    asyncio.run(made.stop())


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[LockedKafka]:
    """A broker with every topic and the whole list."""
    for servers in _started("kafka", tmp_path_factory, pytestconfig.rootpath):
        found = servers.servers["kafka"]
        assert isinstance(found, LockedKafka)

        async def furnish(kafka: LockedKafka = found) -> None:
            by_root = transport(kafka, kafka.access(ROOT))
            await by_root.provision(topics())
            await by_root.permit(permissions())

        asyncio.run(furnish())
        yield found


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[LockedRedis]:
    """A Redis with two users."""
    for servers in _started("redis", tmp_path_factory, pytestconfig.rootpath):
        found = servers.servers["redis"]
        assert isinstance(found, LockedRedis)
        yield found


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[LockedDocuments]:
    """The stand-in: a user is made, then it asks everybody who they are."""
    for servers in _started("documents", tmp_path_factory, pytestconfig.rootpath):
        found = servers.servers["documents"]
        assert isinstance(found, LockedDocuments)

        async def lock(servers: LocalServers = servers, documents: LockedDocuments = found) -> None:
            ca = str(documents.folder / "tls" / "ca.pem")
            with MongoClient(documents.url(), tls=True, tlsCAFile=ca) as client:
                client.admin.command(
                    "createUser",
                    USER,
                    pwd=password_of(USER),
                    roles=[{"role": "readWrite", "db": "evenflow"}],
                )
            await servers.stop()
            documents.locked = True
            await servers.restart("documents")

        asyncio.run(lock())
        yield found


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Sockets whose handshake failed are collected within the test that made them, which knows them."""
    yield
    time.sleep(HANDSHAKES_END_S)
    gc.collect()
