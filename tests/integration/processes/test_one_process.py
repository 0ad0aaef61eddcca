"""What runs in one process on real servers: everything (`evenflow dev --profile local`), and the path's bench."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from evenflow.client.api import AsyncClient
from evenflow.events.streams import topics
from evenflow.platform.broker.factory import make_transport
from evenflow.platform.clock import RandomIds, SystemClock
from evenflow.testkit.processes.fleet import Processes

pytestmark = pytest.mark.servers
CLOCK = SystemClock()
COMMAND = [sys.executable, "-m", "evenflow.cli"]


async def _charges(url: str) -> int:
    async with AsyncClient(url) as client:
        return sum(line["kind"] == "work" for line in (await client.ledger()).items)


async def test_the_three_sites_and_their_load_run_on_real_servers(processes: Processes, tmp_path: Path) -> None:
    """Its simulated nodes take the load's tasks, end them and are paid; told to stop it leaves with 0."""
    options = ["--profile", "local", "--port", "0", "--gateway-port", "0", "--data", str(tmp_path / "data")]
    dev = processes.spawn("dev", [*COMMAND, "dev", *options], processes.environment)
    async with asyncio.timeout(120):
        while "Evenflow is ready: " not in (said := dev.running.said()):
            assert dev.running.lives, said
            await asyncio.sleep(0.1)
        assert "(on kafka://127.0.0.1:" in said
        url = said.partition("Evenflow is ready: ")[2].partition("/api")[0]
        while await _charges(url) < 3:
            await asyncio.sleep(0.2)
    dev.running.tell(signal.SIGTERM)
    assert await processes.ended(dev) == 0


async def _bench(environment: dict[str, str], *options: str) -> tuple[int, str, str]:
    command = [*COMMAND, "bench", "path", "--profile", "server", "--json", *options]
    whole = {**os.environ, **environment}
    process = await asyncio.create_subprocess_exec(
        *command, env=whole, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, errors = await process.communicate()
    return process.returncode or 0, out.decode(), errors.decode()


async def test_the_path_is_measured_beside_a_plain_client_and_leaves_nothing(processes: Processes) -> None:
    """Its topics are its own: they are gone afterwards, and where a pool has its topics the bench does not begin."""
    environment = processes.environment
    code, out, errors = await _bench(environment, "--tasks", "400", "--repetitions", "1", "--rate", "50")
    assert code == 0, errors
    found: dict[str, Any] = json.loads(out)
    assert found["profile"] == "server"
    assert found["assignments_per_s"] > 0
    assert found["floor_per_s"] > 0
    assert 0 < found["p50_ms"] <= found["p99_ms"]
    transport = make_transport(environment["EVENFLOW_HOST_LOG"], clock=CLOCK, ids=RandomIds(CLOCK))
    await transport.provision(topics())
    code, _, errors = await _bench(environment, "--tasks", "1")
    assert code == 2, errors
    assert "holds a pool's topics" in errors
