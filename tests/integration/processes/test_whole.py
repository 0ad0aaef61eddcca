"""Every service as a process on real servers, an agent over HTTP, one task from submission to its ledger line."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiokafka import AIOKafkaProducer

from evenflow.client.api import AsyncClient
from evenflow.hosting.registry import SERVICES
from evenflow.testkit.processes.fleet import Processes, ServiceProcess

pytestmark = pytest.mark.servers
#: Headers and value: nothing at all, no JSON, another major version, a header that is no text.
POISON: list[tuple[list[tuple[str, bytes]], bytes]] = [
    ([], b""),
    ([("ce_specversion", b"1.0"), ("ce_type", b"task.submitted"), ("ce_id", b"p1")], b"{"),
    ([("ce_specversion", b"9.0"), ("ce_type", b"task.submitted"), ("ce_id", b"p2")], b"{}"),
    ([("ce_specversion", b"1.0"), ("ce_type", b"\xff\xfe"), ("ce_id", b"p3")], b"{}"),
]
TASK = {"id": "hello", "command": [sys.executable, "-c", "print('hello', flush=True)"], "resources": {"cpu": 1}}


async def _started(processes: Processes) -> dict[str, ServiceProcess]:
    names = list(SERVICES)
    return dict(zip(names, await asyncio.gather(*(processes.start(name) for name in names)), strict=True))


async def _ended_well(url: str, task: str) -> Any:
    async with AsyncClient(url) as client, asyncio.timeout(60):
        while True:
            status = await client.status(task)
            if status.state in ("succeeded", "failed", "rejected"):
                return status
            await asyncio.sleep(0.2)


async def test_a_task_lives_through_seven_processes_and_all_end_in_order(processes: Processes, tmp_path: Path) -> None:
    """Started together in no order, without topics; ended by SIGTERM within the bound, each with 0."""
    running = await _started(processes)
    answers = await asyncio.gather(*(processes.ready(one) for one in running.values()))
    assert [set(answer["services"]) for answer in answers] == [{name} for name in SERVICES]
    await processes.ready(running["placement"], state="leading")
    node = tmp_path / "node.json"
    node.write_text(json.dumps({"id": "n1", "site": "east", "cpu": 2, "cpu_price_per_hour": "3.60"}))
    url = running["console"].doors["console"]
    agent = processes.agent(running["gateway"].doors["gateway"], "of-this-test", node, tmp_path / "agent")
    async with AsyncClient(url) as client:
        submitted = await client.submit(TASK, wait_ms=20_000)
        status = await _ended_well(url, submitted.task)
        assert status.state == "succeeded", status
        async with asyncio.timeout(20):
            ledger = await client.ledger()
            while not any(line["kind"] == "work" for line in ledger.items):
                await asyncio.sleep(0.2)
                ledger = await client.ledger()
        assert ledger.verified
    assert await _counted(running["placement"], 'evenflow_assigned_tasks_total{pool="default"}', 1) == 1
    await _counted(running["billing"], 'evenflow_handled_records_total{outcome="applied",topic="evenflow.runs.v1"}', 3)
    await _counted(running["gateway"], 'evenflow_published_records_total{topic="evenflow.runs.v1"}', 3)
    assert not await processes.stop(*running.values(), agent)
    assert {name: one.exit_code for name, one in running.items()} == dict.fromkeys(SERVICES, 0)
    for one in running.values():
        assert one.said("process stopped"), one.running.said()
        assert not [line for line in one.lines() if line["level"] == "error"], one.running.said()
        assert "of-this-test" not in one.running.log.read_text()


async def test_records_that_nobody_can_read_are_parked_and_the_pool_goes_on(processes: Processes) -> None:
    """Among the inputs of the decider on a real broker: parked in its transaction, shown, dropped; nothing waits."""
    placement, console = await asyncio.gather(processes.start("placement"), processes.start("console"))
    await processes.ready(placement, state="leading")
    await processes.ready(console)
    brokers = processes.environment["EVENFLOW_HOST_LOG"].removeprefix("kafka://")
    producer = AIOKafkaProducer(bootstrap_servers=brokers)
    await producer.start()
    for number, (headers, value) in enumerate(POISON):
        await producer.send_and_wait("evenflow.tasks.v1", value, key=b"default/p", partition=number, headers=headers)
    await producer.stop()
    url = console.doors["console"]
    async with AsyncClient(url) as client, asyncio.timeout(60):
        submitted = await client.submit(TASK)
        while (await client.status(submitted.task)).state != "queued":
            await asyncio.sleep(0.1)
        while len(letters := json.loads(await _command("dlq", "list", "-o", "json", "--url", url))["items"]) < len(
            POISON
        ):
            await asyncio.sleep(0.1)
    assert {row["origin"] for row in letters} == {f"evenflow.tasks.v1/{number}/0" for number in range(len(POISON))}
    place = f"{letters[0]['topic']}/{letters[0]['partition']}/{letters[0]['offset']}"
    await _command("dlq", "drop", place, "--url", url)
    async with asyncio.timeout(20):
        while len(json.loads(await _command("dlq", "list", "-o", "json", "--url", url))["items"]) == len(POISON):
            await asyncio.sleep(0.1)
    assert placement.running.lives
    assert not placement.said("service ended")


async def test_a_process_waits_for_its_servers_and_says_for_which(processes: Processes, own_servers: Any) -> None:
    """Nothing is restarted: it is there before its log, serves when the log comes, and lives on when it goes away."""
    kafka = own_servers.running["kafka"]
    kafka.tell(signal.SIGKILL)
    inventory = await processes.start("inventory")
    async with asyncio.timeout(20):
        while not inventory.said("waiting for a server"):
            await asyncio.sleep(0.05)
    state = await inventory.state()
    assert not state["ready"]
    assert "no Kafka at" in state["waits_for"]["log"]
    assert {line["server"] for line in inventory.said("waiting for a server")} == {"log"}
    await own_servers.restart("kafka")
    await processes.ready(inventory)
    assert inventory.said("server reached")


async def test_a_topic_that_differs_ends_the_process_with_the_mend(processes: Processes, own_servers: Any) -> None:
    """A wrong partition count can't go away by itself, so nobody waits for it."""
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic

    admin = AIOKafkaAdminClient(bootstrap_servers=own_servers.servers["kafka"].url().removeprefix("kafka://"))
    await admin.start()
    await admin.create_topics([NewTopic("evenflow.tasks.v1", 3, 1)])
    await admin.close()
    billing = await processes.start("billing")
    assert await processes.ended(billing) == 2
    said = billing.running.said()
    assert "topic evenflow.tasks.v1 has 3 partitions and the registry says 16" in said
    assert "Traceback" not in said


async def _command(*arguments: str) -> str:
    """What the command line prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "evenflow.cli", *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output.decode()


async def _counted(one: ServiceProcess, name: str, count: int) -> float:
    """Wait until a figure has come so far, since each service reads at its own pace; what it is."""
    async with httpx.AsyncClient(timeout=5) as client, asyncio.timeout(20):
        while True:
            text = (await client.get(f"{one.doors['operations']}/metrics")).text
            rows = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
            found = {row[0]: float(row[1]) for row in rows}.get(name, 0.0)
            if found >= count:
                return found
            await asyncio.sleep(0.1)
