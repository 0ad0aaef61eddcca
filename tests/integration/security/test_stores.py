"""Redis and the documents behind TLS and users: the right ones work, anything else ends in one clear line."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr
from tests.integration.security.conftest import CLOCK, USER

from evenflow.core.errors import FieldRefused, Unavailable
from evenflow.platform.security.access import Access
from evenflow.platform.stores.factory import open_documents, open_live, open_objects
from evenflow.testkit.locked.authority import Authority
from evenflow.testkit.locked.servers import LockedDocuments, LockedRedis
from evenflow.testkit.servers.kinds.objects import ObjectServer
from evenflow.testkit.servers.local import LocalServers

# Threads of the clients leave sockets whose handshake failed to the collector.
pytestmark = [pytest.mark.servers, pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")]


async def refusal_of_live(url: str, access: Access) -> str:
    """What is said of a read."""
    live = open_live(url, access)
    try:
        with pytest.raises(Unavailable) as refusal:
            await live.sites()
    finally:
        await live.close()
    return refusal.value.message


async def refusal_of_documents(url: str, access: Access) -> str:
    """What is said of a read."""
    documents = open_documents(url, access)
    try:
        with pytest.raises(Unavailable) as refusal:
            await documents.get("tasks", "t")
    finally:
        await documents.close()
    return refusal.value.message


async def test_inventory_writes_live_load_and_the_console_reads_it(redis: LockedRedis) -> None:
    """Proves the users of Redis: the reader can't write, and neither sees another's keys."""
    writer = open_live(redis.url(), redis.access("evenflow-inventory"))
    reader = open_live(redis.url(), redis.access("evenflow-console"))
    try:
        assert await writer.put_frame("zrh", b"frame", written_ms=5) == 1
        assert await reader.frames(["zrh"]) == {"zrh": (1, 5, b"frame")}
        with pytest.raises(Unavailable, match="may not do this on live load"):
            await reader.put_frame("zrh", b"other", written_ms=6)
        assert await reader.frames(["zrh"]) == {"zrh": (1, 5, b"frame")}
    finally:
        await writer.close()
        await reader.close()


async def test_a_wrong_way_into_redis_ends_in_one_line(redis: LockedRedis) -> None:
    """Proves the lines for a wrong password, nobody, a CA that is not believed, and the clear."""
    right = redis.access("evenflow-console")
    assert "set live_user and live_password" in await refusal_of_live(
        redis.url(), replace(right, password=SecretStr("no"))
    )
    nobody = replace(right, user="", password=SecretStr(""))
    assert "set live_user and live_password" in await refusal_of_live(redis.url(), nobody)
    assert "unknown CA: name that in live_ca_file" in await refusal_of_live(redis.url(), replace(right, ca_file=None))
    in_the_clear = redis.url().replace("rediss", "redis")
    assert "rediss" in await refusal_of_live(in_the_clear, replace(right, ca_file=None))
    with pytest.raises(FieldRefused, match="must begin with rediss"):
        open_live(in_the_clear, right)


async def test_documents_are_kept_for_who_logs_in(documents: LockedDocuments) -> None:
    """Proves SCRAM over TLS."""
    store = open_documents(documents.url(), documents.access(USER))
    try:
        assert await store.put("tasks", "t", {"a": 1}, expect=0) == 1
        found = await store.get("tasks", "t")
        assert found is not None
        assert found.body == {"a": 1}
    finally:
        await store.close()


async def test_a_wrong_way_to_the_documents_ends_in_one_line(documents: LockedDocuments) -> None:
    """Proves the lines for a wrong password, nobody, a CA that is not believed, and the clear."""
    right = documents.access(USER)
    url = documents.url()
    said = await refusal_of_documents(url, replace(right, password=SecretStr("no")))
    assert "set documents_user and documents_password" in said
    said = await refusal_of_documents(url, replace(right, user="", password=SecretStr("")))
    assert "set documents_user and documents_password" in said
    said = await refusal_of_documents(f"{url}&tls=true", replace(right, ca_file=None))
    assert "unknown CA: name that in documents_ca_file" in said
    said = await refusal_of_documents(url, replace(right, ca_file=None))
    assert "if it speaks TLS, set documents_ca_file" in said


class ReadOnlyObjects(ObjectServer):
    """The object server as an operator who only reads would see it, until it is opened."""

    closed = True

    def command(self, node: int = 0) -> list[str]:
        """With its own option for it."""
        program, *rest = super().command(node)
        return [program, *(["--readonly"] if self.closed else []), *rest]


async def test_an_object_store_that_may_only_be_read_is_named_and_waited_for(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves one line that says what to do, that what was there stays, and that it goes on once it may be written."""
    servers = LocalServers(pytestconfig.rootpath, tmp_path, CLOCK, print, tied=True, made_of=(ReadOnlyObjects,))
    await servers.start(["objects"])
    store = servers.servers["objects"]
    assert isinstance(store, ReadOnlyObjects)
    for name, value in store.keys().items():
        monkeypatch.setenv(name, value)
    objects = open_objects(store.url())
    try:
        with pytest.raises(Unavailable, match="it may only be read, or not even that: give our keys leave to write"):
            await objects.put("a", b"new", create=True)
        assert await objects.paths("") == []
        store.closed = False
        await servers.kill("objects")
        await servers.restart("objects")
        await objects.put("a", b"new", create=True)
        assert await objects.get("a") == b"new"
    finally:
        await objects.close()
        await servers.stop()


async def test_an_expired_certificate_is_named_by_both(tmp_path: Path) -> None:
    """Proves the line for a certificate past its time, on a bare TLS server."""
    authority = Authority(tmp_path, CLOCK)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority.issue("old", expired=True))
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    line = "certificate has expired: give it a new one"
    try:
        assert line in await refusal_of_live(f"rediss://127.0.0.1:{port}/0", Access("live", ca_file=authority.ca_file))
        said = await refusal_of_documents(
            f"mongodb://127.0.0.1:{port}/evenflow", Access("documents", ca_file=authority.ca_file)
        )
        assert line in said
    finally:
        server.close()
        await server.wait_closed()
