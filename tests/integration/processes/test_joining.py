"""The ways of a node to the pool: over a gateway, and straight to the log. One course for both."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import httpx
import pytest

from evenflow.agent.executors.run_folder import RunFolder
from evenflow.client.api import AsyncClient
from evenflow.testkit.processes.fleet import Processes, ServiceProcess

pytestmark = pytest.mark.servers
SERVICES = ("inventory", "placement", "link-probe", "billing", "checkpoint", "console")
# Counts steps, keeps each count, and goes on from a kept one.
WORK = """
import os, time
folder, resume = os.environ["EVENFLOW_CHECKPOINT_DIR"], os.environ.get("EVENFLOW_RESUME_DIR")
step = int(open(resume + "/count").read()) if resume else 0
print("begins at", step, flush=True)
while step < 60:
    time.sleep(0.05)
    step += 1
    with open(folder + "/.count", "w") as file: file.write(str(step))
    os.rename(folder + "/.count", folder + "/count")
print("ends at", step, flush=True)
"""
TASK = {"id": "counts", "command": ["python3", "-c", WORK], "resources": {"cpu": 1}, "checkpoint": {"every_s": 1}}


def _agent(processes: Processes, name: str, folder: Path, way: list[str]) -> ServiceProcess:
    command = ["--node", name, "--site", "east", "--data", str(folder / name), "--operations-port", "0", *way]
    whole = [sys.executable, "-m", "evenflow.cli", "agent", *command]
    return processes.spawn(f"agent-{name}", whole, processes.environment)


async def _answers(agent: ServiceProcess, path: str) -> httpx.Response:
    async with asyncio.timeout(60), httpx.AsyncClient(timeout=5) as client:
        while not agent.said("joining"):
            assert agent.running.lives, agent.running.said()
            await asyncio.sleep(0.1)
        return await client.get(agent.said("joining")[0]["operations"] + path)


@pytest.mark.parametrize("transport", ["gateway", "kafka"])
async def test_a_node_takes_work_and_another_resumes_it(processes: Processes, tmp_path: Path, transport: str) -> None:
    """One node runs the task and is killed with it; the other goes on from its checkpoint; the work is charged."""
    wanted = SERVICES if transport == "kafka" else (*SERVICES, "gateway")
    running = dict(zip(wanted, await asyncio.gather(*(processes.start(name) for name in wanted)), strict=True))
    await asyncio.gather(*(processes.ready(one) for one in running.values()))
    way = ["--transport", "kafka"]
    if transport == "gateway":
        way = ["--url", running["gateway"].doors["gateway"], "--token", "of-this-test"]
    agents = {name: _agent(processes, name, tmp_path, way) for name in ("n1", "n2")}
    async with AsyncClient(running["console"].doors["console"]) as client, asyncio.timeout(150):
        for agent in agents.values():
            while not (await _answers(agent, "/ready")).json()["ready"]:
                await asyncio.sleep(0.2)
        assert "process_resident_memory_bytes" in (await _answers(agents["n1"], "/metrics")).text
        await client.submit(TASK)
        while not (found := await client.status("counts")).checkpoints:
            await asyncio.sleep(0.1)
        node = found.attempts[-1].members[0].node
        first = agents[node]
        first.running.tell(signal.SIGKILL)
        started = RunFolder(tmp_path / node, "default/counts/1/0").started()
        assert started is not None
        os.killpg(started.pid, signal.SIGKILL)
        while (found := await client.status("counts")).state != "succeeded":
            assert found.state in ("queued", "starting", "running"), found
            await asyncio.sleep(0.2)
        ended = found.attempts[-1]
        assert ended.attempt == 2
        assert ended.members[0].resumed_progress_ms > 0
        while sum(line["kind"] == "work" for line in (await client.ledger(task="counts")).items) < 1:
            await asyncio.sleep(0.2)
    (second,) = (agent for agent in agents.values() if agent is not first)
    second.running.tell(signal.SIGTERM)
    assert await processes.ended(second) == 0


async def test_an_agent_without_a_log_says_what_it_needs(processes: Processes, tmp_path: Path) -> None:
    """One line, and the exit code of wrong settings."""
    processes.environment.pop("EVENFLOW_HOST_LOG")
    agent = _agent(processes, "n1", tmp_path, ["--transport", "kafka"])
    assert await processes.ended(agent) == 2
    assert "EVENFLOW_HOST_LOG" in agent.running.said()
