"""What console and client write to the log is signed as placement checks it, and a refusal reaches the caller."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.console.test_access import started

from evenflow.client.submitting import Producer
from evenflow.client.subscribing import Subscription
from evenflow.core.errors import FieldRefused, Refused
from evenflow.core.lifecycle.reasons import Reason
from evenflow.events import streams
from evenflow.events.contracts.placement import ReasonDetail, SubmissionRefused
from evenflow.platform.broker.codec import Received, decode
from evenflow.platform.security.identity import new_key, save_key
from evenflow.platform.security.signatures import submission_fields, verify_submission


def holds(read: Received, public: Any) -> bool:
    """Whether a record is signed as placement asks for it."""
    envelope = read.envelope
    assert envelope.submitter is not None
    fields = submission_fields(
        signer=envelope.submitter.signer,
        event=envelope.id,
        type_=envelope.type,
        key=read.key,
        time_ms=envelope.time_ms,
    )
    return verify_submission(public, read.value, fields, bytes.fromhex(envelope.submitter.signature))


async def written(bench: Any, count: int) -> list[Received]:
    """The first records of the stream of tasks."""
    found: list[Received] = []
    async with Subscription(bench.runtime.transport, "tasks", group="test") as events:
        async for event in events:
            found.append(event)
            if len(found) == count:
                return found
    return found


async def test_the_console_signs_what_it_asks_of_tasks(tmp_path: Path) -> None:
    """Proves that submissions, cancels and changes are signed by its key, and that other records are not."""
    key = new_key()
    save_key(tmp_path / "console.key", key)
    bench = await started(signing_key_file=str(tmp_path / "console.key"), signer="console-east")
    try:
        await bench.ask("POST", "/api/v1/tasks", content=b'{ "id":"t1","queue":"q" }')
        await bench.ask("POST", "/api/v1/tasks/t1/cancel")
        await bench.ask("PATCH", "/api/v1/tasks/t1", json={"priority": 7})
        found = await written(bench, 3)
    finally:
        await bench.client.aclose()
        await bench.host.stop()
    assert found[0].value == b'{ "id":"t1","queue":"q" }'
    assert {one.envelope.submitter.signer for one in found if one.envelope.submitter} == {"console-east"}
    assert [holds(one, key.public_key()) for one in found] == [True] * 3
    assert [holds(one, new_key().public_key()) for one in found] == [False] * 3


async def test_a_key_that_others_may_read_stops_the_console(tmp_path: Path) -> None:
    """Proves that a careless key is told at the start, with the command that mends it."""
    save_key(tmp_path / "console.key", new_key())
    (tmp_path / "console.key").chmod(0o644)
    with pytest.raises(Refused, match="chmod 600"):
        await started(signing_key_file=str(tmp_path / "console.key"))


async def test_placements_distrust_reaches_the_one_who_waits(bench: Any) -> None:
    """Proves that a console whose signer is unknown says so, instead of blaming the task's id."""

    async def refuse() -> None:
        await bench.until(lambda: bench.board.tasks.find("default/t1") is not None)
        task = bench.board.tasks.find("default/t1")
        reason = ReasonDetail(reason=Reason.PERMISSION, dimension="signature", available="signer console is not known")
        body = SubmissionRefused(tenant="default", task="t1", reason=reason)
        entry = task.course.ordered()[0]
        record = await bench.host.parts[0].one(entry.topic, entry.partition, entry.offset)
        submission = decode(record, streams.TASKS)
        await bench.say(streams.ASSIGNMENTS, body, cause=submission)

    refusing = asyncio.create_task(refuse())
    answer = await bench.client.post("/api/v1/tasks", params={"wait_ms": 3000}, content=b'{"id":"t1"}')
    await refusing
    assert (answer.status_code, answer.json()["code"]) == (403, "not-trusted")
    assert "signer console is not known" in answer.json()["problem"]
    assert "evenflow signers add" in answer.json()["way_out"]


async def test_a_producer_of_its_own_signs_with_the_client(bench: Any) -> None:
    """Proves that `evenflow.client.submitting` writes records that hold, and refuses a bad specification before."""
    key = new_key()
    async with Producer(bench.runtime.transport, signer="physics-ci", key=key) as producer:
        task = await producer.submit({"tenant": "physics", "run": {"work_s": 5}, "name": "café"})
        await producer.cancel(task, tenant="physics", reason="enough")
        for wrong in ({"surprise": 1}, {"env": {"A": object()}}):
            with pytest.raises(FieldRefused):
                await producer.submit(wrong)
    found = await written(bench, 2)
    assert [one.key for one in found] == [f"physics/{task}"] * 2
    assert json.loads(found[0].value)["id"] == task
    assert [holds(one, key.public_key()) for one in found] == [True, True]
