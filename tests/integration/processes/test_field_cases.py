"""Field cases on a real broker. R43 is a row of `make faults`; R45 stands in `test_whole`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from evenflow.client.api import AsyncClient
from evenflow.hosting.registry import SERVICES
from evenflow.testkit.processes.fleet import Processes

pytestmark = pytest.mark.servers
RUNS = "evenflow.runs.v1"
Headers = list[tuple[str, bytes]]


async def _runs(brokers: str, task: str) -> dict[str, Any]:
    """The records of one task's receipts by type, as they lie on the log."""
    reader = AIOKafkaConsumer(RUNS, bootstrap_servers=brokers, auto_offset_reset="earliest", enable_auto_commit=False)
    await reader.start()
    try:
        found: dict[str, Any] = {}
        while "attempt.reclaimed" not in found:
            for records in (await reader.getmany(timeout_ms=500)).values():
                for record in records:
                    if record.key == f"default/{task}".encode():
                        found[dict(record.headers)["ce_type"].decode()] = record
        return found
    finally:
        await reader.stop()


async def _alerts(console: str) -> set[str]:
    async with httpx.AsyncClient(timeout=5) as client:
        return {row["name"] for row in (await client.get(f"{console}/api/v1/alerts")).json()["items"]}


def _with(headers: Headers, **changes: str) -> Headers:
    return [(name, changes[name].encode() if name in changes else value) for name, value in headers]


async def test_r46_an_end_is_an_end_whatever_arrives_after_it(processes: Processes, tmp_path: Path) -> None:
    """Told late, told again, made up for an attempt that ended and for one that never was: nothing changes."""
    running = dict(zip(SERVICES, await asyncio.gather(*(processes.start(name) for name in SERVICES)), strict=True))
    await asyncio.gather(*(processes.ready(one) for one in running.values()))
    processes.nodes(running["gateway"].doors["gateway"], "of-this-test", 1, tmp_path / "nodes")
    brokers = processes.environment["EVENFLOW_HOST_LOG"].removeprefix("kafka://")
    async with AsyncClient(running["console"].doors["console"]) as client, asyncio.timeout(120):
        await client.submit({"id": "t", "run": {"work_s": 2}, "resources": {"cpu": 1}})
        receipts = await _runs(brokers, "t")
        while (ended := await client.status("t")).attempts[0].members[0].state != "reclaimed":
            await asyncio.sleep(0.1)  # the console reads receipts by itself
        started, succeeded = receipts["attempt.started"], receipts["attempt.succeeded"]
        failed = json.loads(succeeded.value)
        failed["outcome"] |= {"cause": "user-error", "exit_code": 1}
        never = json.loads(succeeded.value) | {"task": "v", "attempt": 7}
        made_up = _with(list(succeeded.headers), ce_id="made-up-1", ce_type="attempt.failed")
        of_nobody = _with(list(succeeded.headers), ce_id="made-up-2", ce_subject="default/v")
        producer = AIOKafkaProducer(bootstrap_servers=brokers)
        await producer.start()
        for key, value, headers in (
            (started.key, started.value, list(started.headers)),
            (succeeded.key, succeeded.value, list(succeeded.headers)),
            (succeeded.key, json.dumps(failed).encode(), made_up),
            (b"default/v", json.dumps(never).encode(), of_nobody),
        ):
            await producer.send_and_wait(RUNS, value, key=key, headers=headers)
        await producer.stop()
        await client.submit({"id": "after", "run": {"work_s": 0.2}, "resources": {"cpu": 1}})
        await _runs(brokers, "after")
        while "node.identity" not in await _alerts(running["console"].doors["console"]):
            await asyncio.sleep(0.2)
        now = await client.status("t")
        assert (now.state, now.attempts) == ("succeeded", ended.attempts)
        lines = [line for line in (await client.ledger(task="t")).items if line["kind"] == "work"]
        assert [line["duration_ms"] // 1_000 for line in lines] == [2]
        assert not (await client.ledger(task="v")).items
        assert [node.held.cpu_milli for node in (await client.nodes()).items] == [0]
    assert all(one.running.lives for one in running.values())
