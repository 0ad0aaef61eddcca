"""A real agent process joined over HTTP: it is killed with its task's group, and the next one resumes the work."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import sys
from typing import Any

import uvicorn

from evenflow.agent.executors.run_folder import RunFolder
from evenflow.core.lifecycle.attempt import Wish
from evenflow.events import streams
from evenflow.events.contracts.checkpoint import ResumePoint
from evenflow.events.contracts.placement import AttemptDesired, MemberPlace
from evenflow.gateway.main import build
from evenflow.gateway.settings import GatewaySettings
from evenflow.platform.broker.codec import Fact, Received
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.platform.broker.follower import Follower
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.clock import RandomIds, SystemClock
from evenflow.platform.runtime import Runtime
from evenflow.platform.stores.memory import MemoryDocuments, MemoryLiveLoad, MemoryObjects

AGENT = """
import asyncio, sys
from pathlib import Path
from evenflow.agent.clients.http import HttpExchange
from evenflow.agent.main import run_agent
from evenflow.platform.clock import SystemClock
from evenflow.platform.observability.logs import make_log
log = make_log(service="agent", instance="test", clock=SystemClock(), level="warning")
asyncio.run(run_agent(HttpExchange(sys.argv[1]), "join-me", {"id": "n1", "site": "east"}, Path(sys.argv[2]), log=log))
"""

# Counts to 40, keeps its count after each step, and goes on from a kept one.
WORK = """
import os, time
folder, resume = os.environ["EVENFLOW_CHECKPOINT_DIR"], os.environ.get("EVENFLOW_RESUME_DIR")
step = int(open(resume + "/count").read()) if resume else 0
print("begins at", step, flush=True)
while step < 40:
    time.sleep(0.03)
    step += 1
    with open(folder + "/.count", "w") as file: file.write(str(step))
    os.rename(folder + "/.count", folder + "/count")
print("ends at", step, flush=True)
"""


class Quiet:
    def info(self, *_: object, **__: object) -> None:
        pass

    debug = warning = error = info


class Pool:
    """A gateway on a port of the loopback, and what placement would write."""

    def __init__(self) -> None:
        self.seen: list[Received] = []
        self.objects, self.documents, self.clock = MemoryObjects(), MemoryDocuments(), SystemClock()
        self.embedded = EmbeddedLog(clock=self.clock)
        self.embedded.provision(streams.topics())

    def runtime(self, name: str) -> Runtime:
        ids = RandomIds(self.clock)
        transport = EmbeddedTransport(self.embedded, clock=self.clock, ids=ids)
        return Runtime(
            name, f"{name}-1", self.clock, ids, random.Random(), transport, self.documents, MemoryLiveLoad(),
            self.objects, Quiet(),
        )  # fmt: skip

    async def start(self) -> None:
        self.host = build(self.runtime("gateway"), GatewaySettings(token="join-me", heartbeat_ms=500))
        await self.host.start()
        self.outlet = Outlet(self.runtime("placement"))
        await self.outlet.start()
        self.follower = Follower(self.runtime("reader"), [streams.RUNS], self.seen.append, self.host.end)
        await self.follower.start()
        door = socket.socket()
        door.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{door.getsockname()[1]}"
        self.server = uvicorn.Server(uvicorn.Config(self.host.app, log_level="critical", lifespan="off"))
        self.serving = asyncio.get_running_loop().create_task(self.server.serve(sockets=[door]))

    async def stop(self) -> None:
        self.server.should_exit = self.server.force_exit = True
        await self.serving
        await self.host.stop()
        await self.follower.stop()
        await self.outlet.stop()

    async def desire(self, attempt: int, *resume: ResumePoint) -> None:
        body = AttemptDesired(
            tenant="default", task="t1", queue="default", pool="main", epoch=1, attempt=attempt, generation=attempt,
            wish=Wish.RUN, resume=resume,
            place=MemberPlace(member=0, node="n1", site="east", cpu_milli=1000, memory_bytes=2**30, disk_bytes=0),
            specification={"id": "t1", "command": [sys.executable, "-c", WORK], "checkpoint": {"every_s": 60}},
        )  # fmt: skip
        await self.outlet.publish(Fact(streams.DISPATCH, body))

    def said(self, attempt: int) -> dict[str, Any]:
        return {
            one.envelope.type.removeprefix("attempt."): one.body for one in self.seen if one.body.attempt == attempt
        }

    async def until(self, attempt: int, kind: str) -> Any:
        async with asyncio.timeout(15):
            while kind not in self.said(attempt):
                await asyncio.sleep(0.02)
        return self.said(attempt)[kind]


async def _agent(url: str, folder: Any) -> asyncio.subprocess.Process:
    paths = os.pathsep.join(path for path in sys.path if path)
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", AGENT, url, str(folder), env={**os.environ, "PYTHONPATH": paths}
    )


async def test_work_goes_on_from_its_checkpoint_after_agent_and_group_were_killed(tmp_path):
    """Proves the whole way of a real program, over HTTP and through kill -9.

    Output and checkpoints reach the store, the next agent recognises the death of what the killed one had started, and
    the second attempt resumes where the first had saved.
    """
    pool = Pool()
    await pool.start()
    agents = []
    try:
        agents.append(await _agent(pool.url, tmp_path))
        await pool.desire(1)
        saved = await pool.until(1, "checkpointed")
        agents[0].kill()
        await agents[0].wait()
        os.killpg(RunFolder(tmp_path, "default/t1/1/0").started().pid, signal.SIGKILL)
        agents.append(await _agent(pool.url, tmp_path))
        failed = await pool.until(1, "failed")
        assert (failed.outcome.cause, failed.outcome.exit_code) == ("unknown", None)
        assert (await pool.until(1, "reclaimed")).leftover is False
        newest = max(
            (one.body for one in pool.seen if one.envelope.type == "attempt.checkpointed"), key=lambda b: b.checkpoint
        )
        point = ResumePoint(
            checkpoint=newest.checkpoint, generation=1, progress_ms=newest.progress_ms, manifest=newest.manifest,
            size_bytes=newest.size_bytes, site="east",
        )  # fmt: skip
        await pool.outlet.publish(Fact(streams.DISPATCH, None, key="n1/default/t1/1/0", id="gone"))
        await pool.desire(2, point)
        await pool.until(2, "reclaimed")
        told = pool.said(2)
        assert told["started"].resumed_checkpoint == newest.checkpoint >= saved.checkpoint
        assert told["succeeded"].outcome.exit_code == 0
        chunks = await pool.objects.paths("logs/default/t1/a2/m0/")
        text = b"".join([await pool.objects.get(chunk) for chunk in chunks]).decode().splitlines()
        assert int(text[0].removeprefix("begins at ")) >= 1
        assert text[-1] == "ends at 40"
    finally:
        for agent in agents:
            if agent.returncode is None:
                agent.kill()
                await agent.wait()
        await pool.stop()
