"""The subscribers of docs/recipes as programs of their own on a real Kafka: what is committed, in order, each once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from evenflow.events import streams
from evenflow.events.contract import Contract
from evenflow.platform.broker.codec import Fact, encode, make_wire
from evenflow.platform.broker.factory import make_transport
from evenflow.platform.clock import RandomIds, SystemClock
from evenflow.testkit.examples import examples
from evenflow.testkit.servers.addresses import Addresses

pytestmark = pytest.mark.servers
RECIPES = Path("docs/recipes/subscribers")
WITHIN_S = 60
CLOCK = SystemClock()


def facts(name: str) -> list[Contract]:
    """A task's assignment and end, and the charge for it, named by the test."""
    told = examples()
    task = {"tenant": "vision", "task": name}
    return [
        told["task.assigned"].model_copy(update=task),
        told["task.ended"].model_copy(update=task),
        told["charge.recorded"].model_copy(update={"queue": name}),
    ]


def expected(name: str) -> set[str]:
    return {f"task.assigned vision/{name}", f"task.ended vision/{name}", f"charge.recorded {name}"}


async def tell(servers: str, bodies: Sequence[Contract], *, wire: str, commit: bool = True) -> None:
    """In one transaction, as a decider writes."""
    producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=f"test-{uuid.uuid4().hex}")
    await producer.start()
    await producer.begin_transaction()
    for body in bodies:
        stream = next(one for one in streams.topics() if body.TYPE in one.carries)
        one = encode(
            Fact(stream, body), source="test", now_ms=CLOCK.now_ms(), new_id=uuid.uuid4().hex, wire=make_wire(wire)
        )
        await producer.send_and_wait(one.topic, one.value, key=one.key, headers=one.headers)
    await (producer.commit_transaction() if commit else producer.abort_transaction())
    await producer.stop()


@asynccontextmanager
async def running(root: Path, file: str, *arguments: str) -> AsyncIterator[asyncio.StreamReader]:
    """A recipe as a reader starts it; its lines."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(root / RECIPES / file), *arguments, stdout=asyncio.subprocess.PIPE, limit=2**20,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(map(str, (root / "libs", root / "services")))},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
            try:
                await asyncio.wait_for(process.communicate(), 20)
            except TimeoutError:
                process.kill()
                await process.communicate()


async def lines_of(output: asyncio.StreamReader, wanted: set[str], *names: str) -> list[str]:
    """What it prints of the named tasks until all that is wanted was printed."""
    found: list[str] = []
    async with asyncio.timeout(WITHIN_S):
        while not wanted <= {line.rpartition(" ")[0] for line in found}:
            line = (await output.readline()).decode().strip()
            assert line or not output.at_eof(), f"it ended; wanted {wanted}, found {found}"
            if any(name in line for name in names):
                found.append(line)
    return found


@pytest.mark.parametrize(
    ("file", "url", "wire"),
    [
        ("plain_aiokafka.py", "{}", "json"),
        ("with_faststream.py", "{}", "json"),
        ("with_evenflow.py", "kafka://{}", "json"),
        ("with_evenflow.py", "kafka://{}", "avro"),
        ("avro_with_fastavro.py", "{}", "avro"),
        ("avro_with_fastavro.py", "{}", "json"),
    ],
)
async def test_a_subscriber_sees_what_is_committed_and_goes_on_where_it_stopped(
    servers: Addresses, pytestconfig: pytest.Config, file: str, url: str, wire: str
) -> None:
    """Proves it with a round that was given up between two that count, and a subscriber that is started again."""
    brokers = servers.urls["kafka"].removeprefix("kafka://")
    await make_transport(servers.urls["kafka"], clock=CLOCK, ids=RandomIds(CLOCK)).provision(streams.topics())
    first, never, later = (f"{name}-{uuid.uuid4().hex[:12]}" for name in ("first", "never", "later"))
    root = pytestconfig.rootpath
    arguments = [url.format(brokers), *([str(root / "schemas")] if file.startswith("avro") else [])]
    await tell(brokers, facts(never), wire=wire, commit=False)
    await tell(brokers, facts(first), wire=wire)
    async with running(root, file, *arguments) as output:
        lines = await lines_of(output, expected(first), first, never)
    assert {line.rpartition(" ")[0] for line in lines} == expected(first)
    assert {line.rpartition(" ")[2] for line in lines if "charge" in line} == {first}
    assert [line.split()[0] for line in lines if line.split()[1].startswith("vision/")] == [
        "task.assigned",
        "task.ended",
    ]
    await tell(brokers, facts(later), wire=wire)
    async with running(root, file, *arguments) as output:
        lines = await lines_of(output, expected(later), later)
    assert len(lines) == len(expected(later))


def test_each_recipe_is_twenty_lines_or_so_and_tried_above(pytestconfig: pytest.Config) -> None:
    """Proves that none grew into a framework and none is only shown."""
    text = Path(__file__).read_text(encoding="utf-8")
    for path in sorted((pytestconfig.rootpath / RECIPES).glob("*.py")):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        assert len(lines) <= (40 if path.name.startswith("avro") else 24), path.name
        assert f'"{path.name}"' in text
