"""Faults from outside: what any client, any node and any operator could do to a running process, again and again."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import httpx

from evenflow.agent.clients.gateway import HttpGateway
from evenflow.agent.clients.http import HttpExchange
from evenflow.agent.ports import Session
from evenflow.core.errors import EvenflowError
from evenflow.platform.clock import Clock
from evenflow.platform.security.identity import new_key
from evenflow.testkit.soak.process import Dev, Running, start

#: Longer than the session of placement's seat, so that it loses it and takes it again.
PAUSE_S: Final = 8.0
SLOW_READ_S: Final = 20.0
GUEST: Final = "guest"
_BAD_BODIES: Final = (
    b"", b"null", b"[" * 20_000, b"\xff\xfe", b'{"id": "x", "members": 0}', b'{"id": "x", "resources": {"cpu": NaN}}',
    b'{"id": "a/b"}', b"x" * 200_000, b'{"reason": 5}', b'{"id": "a", "id": "b"}',
)  # fmt: skip
_ROUTES: Final = (
    "POST /api/v1/tasks", "PUT /api/v1/documents/queue/research", "PUT /api/v1/datasets/texts",
    "POST /api/v1/nodes/east-1/drain", "PATCH /api/v1/tasks/soak-1", "POST /api/v1/tasks/soak-1/cancel",
)  # fmt: skip


class Faults:
    """Runs every fault in its own rhythm until stopped. `count` says what was done."""

    def __init__(self, dev: Dev, folder: Path, clock: Clock, seed: int) -> None:
        self._dev = dev
        self._folder = folder
        self._clock = clock
        self._random = random.Random(seed)
        self._client = httpx.AsyncClient(base_url=dev.console, timeout=30, trust_env=False)
        self._exchange = HttpExchange(dev.gateway)
        self._agent: Running | None = None
        self._session: tuple[HttpGateway, Session] | None = None
        self._submitted = 0
        self._tasks: list[asyncio.Task[None]] = []
        self.count: Counter[str] = Counter()
        self.paused = False

    def start(self) -> None:
        """Begin."""
        rhythm: list[tuple[float, Callable[[], Awaitable[None]]]] = [
            (0.5, self.submit), (1.5, self.bad_request), (5, self.parked), (12, self.retried), (7, self.repeated),
            (9, self.slow_client), (31, self.agent_killed), (47, self.stood_still),
        ]  # fmt: skip
        self._tasks = [asyncio.get_running_loop().create_task(self._repeat(every_s, act)) for every_s, act in rhythm]

    async def stop(self) -> None:
        """No more faults; what they hold is let go."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._dev.running.tell(signal.SIGCONT)
        if self._agent is not None:
            await self._agent.end()
        await self._exchange.close()
        await self._client.aclose()

    async def _repeat(self, every_s: float, act: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._clock.sleep(every_s * (0.5 + self._random.random()))
            try:
                await act()
                self.count[act.__name__.replace("_", " ")] += 1
            except (httpx.HTTPError, OSError, EvenflowError, TimeoutError):  # it may stand still just now
                self.count["not answered"] += 1

    # -- load and wrong input ------------------------------------------------------------------------------------------
    async def submit(self) -> None:
        """One more short task beside the load of its own; now and then the one before again, or cancelled."""
        self._submitted += 1
        number = self._submitted if self._random.random() < 0.9 else max(1, self._submitted - 1)
        body = {"id": f"soak-{number}", "resources": {"cpu": 0.5, "memory": "64MiB"}, "run": {"work_s": 2}}
        await self._client.post("/api/v1/tasks", json=body)
        if self._random.random() < 0.1:
            await self._client.post(f"/api/v1/tasks/soak-{number}/cancel", json={"reason": "soak"})

    async def bad_request(self) -> None:
        """A body that nobody takes, at some route of either door."""
        method, _, path = self._random.choice(_ROUTES).partition(" ")
        body = self._random.choice(_BAD_BODIES)
        await self._client.request(method, path, content=body, headers={"content-type": "application/json"})
        await self._client.post(f"{self._dev.gateway}/v1/sessions", content=body)

    async def parked(self) -> None:
        """A request that its reader refuses: one more dead letter."""
        copies = {"copies": [{"site": "west"}]}
        await self._client.put("/api/v1/datasets/odd", json={"size": "1GB", **copies})
        await self._client.put("/api/v1/datasets/odd", json={"size": f"{self._random.randint(2, 9)}GB", **copies})

    async def retried(self) -> None:
        """A parked record put back: the same record once more."""
        answer = await self._client.get("/api/v1/dlq", params={"limit": 5})
        items = answer.json().get("items", [])
        if items:
            place = items[0]["origin"].rsplit("/", 2)
            await self._client.post(f"/api/v1/dlq/{'/'.join(place)}/retry")

    async def repeated(self) -> None:
        """A node that says the same twice, and then something else under the same sequence number."""
        gateway, session = await self._guest()
        record: dict[str, Any] = {
            "stream": "runs", "type": "attempt.progressed", "id": "x", "key": "default/t1", "time_ms": 1,
            "value": json.dumps({"task": "t1"}), "session": session.id, "sequence": 1, "signature": "00" * 64,
        }  # fmt: skip
        for value in (record["value"], record["value"], "{}"):
            body = json.dumps({"records": [{**record, "value": value}]}).encode()
            await gateway.call(session, "POST", f"/v1/nodes/{GUEST}/records", body)

    async def _guest(self) -> tuple[HttpGateway, Session]:
        if self._session is None:
            gateway = HttpGateway(self._exchange, node=GUEST, key=new_key(), token=self._dev.token)
            session = await gateway.open_session({"id": GUEST, "site": "east", "cpu": 0}, booted_ms=0)
            self._session = (gateway, session)
        return self._session

    # -- clients and processes -----------------------------------------------------------------------------------------
    async def slow_client(self) -> None:
        """A reader of the event stream that takes a few bytes a second, and goes without a word."""
        host, port = self._dev.console.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1_024)
        writer.write(b"GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n")
        until_ms = self._clock.monotonic_ms() + round(SLOW_READ_S * 1000)
        try:
            while self._clock.monotonic_ms() < until_ms:
                async with asyncio.timeout(5):
                    await reader.read(64)
                await self._clock.sleep(1)
        finally:
            writer.transport.abort()

    async def agent_killed(self) -> None:
        """A real agent that joined is killed at once and started again, with a program of its task alive."""
        if self._agent is not None:
            self._agent.tell(signal.SIGKILL)
            await self._agent.process.wait()
        self._agent = await start(
            self._folder, "agent", "agent", "--url", self._dev.gateway, "--token", self._dev.token, "--node", "real",
            "--site", "east", "--data", str(self._folder / "real"),
        )  # fmt: skip
        body = {"command": ["sleep", "5"], "where": {"nodes": ["real"]}, "resources": {"cpu": 0.1, "memory": "16MiB"}}
        await self._client.post("/api/v1/tasks", json=body)

    async def stood_still(self) -> None:
        """The whole process stands still for longer than its sessions last, and goes on."""
        self.paused = True
        self._dev.running.tell(signal.SIGSTOP)
        try:
            await self._clock.sleep(PAUSE_S)
        finally:
            self._dev.running.tell(signal.SIGCONT)
            self.paused = False
