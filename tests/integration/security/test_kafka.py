"""Kafka behind TLS, users and permissions: each may do what the list says, and the broker refuses the rest."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import sys
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from aiokafka.errors import GroupAuthorizationFailedError
from pydantic import SecretStr
from tests.integration.security.conftest import CLOCK, transport

from evenflow.client.subscribing import Subscription
from evenflow.core.errors import Unavailable
from evenflow.events.contracts.console import ChangeRecorded
from evenflow.events.streams import ASSIGNMENTS, AUDIT, Stream, topics
from evenflow.hosting.surroundings import HostSettings, Surroundings
from evenflow.platform.broker.codec import Fact
from evenflow.platform.broker.factory import make_transport
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.clock import RandomIds
from evenflow.platform.security.access import Access
from evenflow.platform.security.permissions import Operation, Permission, Resource, permissions, user_of
from evenflow.testkit.locked.authority import Authority
from evenflow.testkit.locked.matrix import Matrix, table
from evenflow.testkit.locked.servers import ROOT, LockedKafka

# Threads of the clients leave sockets whose handshake failed to the collector.
pytestmark = [pytest.mark.servers, pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")]
READY_S = 60


async def test_each_user_may_do_what_the_list_says_and_nothing_else(kafka: LockedKafka) -> None:
    """Proves the whole matrix: every user, every topic, reading and writing, groups, transactions, making topics."""
    cells = await Matrix(kafka).run()
    print("\n".join(table(cells)))
    assert [cell for cell in cells if not cell.right] == []
    assert {cell.allowed for cell in cells if cell.operation == "read"} == {True, False}
    assert len(cells) > 800


async def test_the_list_is_written_once(kafka: LockedKafka) -> None:
    """Proves that writing it again adds nothing, and that a permission beyond it is named."""
    by_root = transport(kafka, kafka.access(ROOT))
    applied = await by_root.permit(permissions())
    assert applied.added == []
    fewer = [one for one in permissions() if one.user != user_of("gateway")]
    assert all("evenflow-gateway" in line for line in (await by_root.permit(fewer)).beyond)


async def test_a_service_runs_behind_the_doors(kafka: LockedKafka, tmp_path: Path) -> None:
    """Proves that a process gets ready as its own user over TLS, and that no line of its log holds the password."""
    environment = {
        **os.environ,
        **kafka.host_environment("inventory"),
        "EVENFLOW_HOST_OPERATIONS_PORT": "0",
    }
    log = (tmp_path / "log").open("wb")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "evenflow.cli", "run", "inventory", env=environment, stdout=log, stderr=log
    )
    try:
        answer = await _ready(tmp_path / "log")
        assert answer["services"] == {"inventory": "leading"}, answer
    finally:
        process.terminate()
        assert await process.wait() == 0
        log.close()
    assert kafka.access("evenflow-inventory").password.get_secret_value() not in (tmp_path / "log").read_text()


async def _ready(log: Path) -> dict[str, object]:
    url = ""
    async with httpx.AsyncClient() as client, asyncio.timeout(READY_S):
        while True:
            rows = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
            url = url or next((row["operations"] for row in rows if "operations" in row), "")
            if url:
                answer = await client.get(f"{url}/ready")
                if answer.status_code == 200 and answer.json()["services"] == {"inventory": "leading"}:
                    return answer.json()
            await asyncio.sleep(0.2)


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"password": SecretStr("no")}, "it refuses root: set log_user and log_password"),
        ({"user": "nobody-knows"}, "it refuses nobody-knows"),
        ({"ca_file": None, "tls": True}, "its certificate is of an unknown CA: name that in log_ca_file"),
        ({"ca_file": None}, "if that port speaks TLS, set log_tls"),
    ],
)
async def test_a_wrong_login_ends_in_one_line(kafka: LockedKafka, wrong: dict[str, object], line: str) -> None:
    """Proves that the reason, which the client tells its own log alone, comes out with what to do."""
    with pytest.raises(Unavailable) as refusal:
        await transport(kafka, replace(kafka.access(ROOT), **wrong)).provision([])
    assert line in refusal.value.message


async def test_a_missing_topic_waits_for_the_administrator(kafka: LockedKafka) -> None:
    """Proves that a service neither makes the topic nor ends: it goes on once the topic is there."""
    stream = Stream("evenflow.late.v1", "k", (), (), (), partitions=1, dead_letters=False)
    service = transport(kafka, kafka.access("evenflow-inventory"))
    with pytest.raises(Unavailable, match=r"evenflow\.late\.v1 is missing and evenflow-inventory may not create"):
        await service.provision([*topics(), stream])
    await transport(kafka, kafka.access("evenflow-admin")).provision([stream])
    await service.provision([*topics(), stream])


async def test_who_may_not_write_is_told_so_and_loses_nothing(kafka: LockedKafka) -> None:
    """Proves that a missing permission is a fault of the surroundings: the fact is written once it is there."""
    host = HostSettings(
        log=kafka.url(), log_user=user_of("billing"), log_password=kafka.access(user_of("billing")).password,
        log_ca_file=kafka.access(ROOT).ca_file,
    )  # fmt: skip
    around = Surroundings(host)
    outlet = Outlet(around.runtime("billing"))
    await outlet.start()
    try:
        fact = Fact(AUDIT, ChangeRecorded(actor="w", action="x", subject="s", parameters={}), id="one")
        for _ in range(2):
            with pytest.raises(Unavailable, match=r"does not let this user write .*audit.*evenflow acls"):
                await outlet.publish(fact)
        more = Permission(user_of("billing"), Resource.TOPIC, AUDIT.name, Operation.WRITE)
        await transport(kafka, kafka.access(ROOT)).permit([*permissions(), more])
        async with asyncio.timeout(20):
            while True:
                try:
                    await outlet.publish()
                    break
                except Unavailable:
                    await asyncio.sleep(0.2)
    finally:
        await outlet.stop()
        await around.close()


async def test_a_subscriber_reads_decisions_and_no_one_elses_stream(kafka: LockedKafka) -> None:
    """Proves that the client logs in, in a group of its own name, and is refused where it may not read."""
    writer = transport(kafka, kafka.access(user_of("placement"))).producer(client_id="placement")
    await writer.start()
    await writer.send_and_wait(ASSIGNMENTS.name, b"unreadable", key=b"k")
    await writer.stop()
    login = kafka.access(user_of("subscribers"))
    async with Subscription(kafka.url(), "assignments", group="subscribers-test", access=login) as events:
        waiting = asyncio.create_task(anext(aiter(events)))
        async with asyncio.timeout(20):
            while not events.unreadable_count:
                await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    with pytest.raises(GroupAuthorizationFailedError):
        async with Subscription(kafka.url(), "assignments", group="placement.default-lag", access=login):
            pass


async def test_an_expired_certificate_is_named(tmp_path: Path) -> None:
    """Proves the line for a certificate past its time, on a bare TLS server."""
    authority = Authority(tmp_path, CLOCK)
    whole = authority.issue("old", expired=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(whole)
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    try:
        made = make_transport(
            f"kafka://127.0.0.1:{port}", clock=CLOCK, ids=RandomIds(CLOCK),
            access=Access("log", ca_file=authority.ca_file),
        )  # fmt: skip
        with pytest.raises(Unavailable, match="its certificate has expired: give it a new one; this goes on then"):
            await made.provision([])
    finally:
        server.close()
        await server.wait_closed()
