"""The neighbourhood's documents and a gentle load, both through the API like anybody else's."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any, Final

import httpx

from evenflow.client.api import AsyncClient
from evenflow.client.calls import listing, put_dataset, put_document
from evenflow.core.errors import EvenflowError
from evenflow.hosting.development.neighbourhood import DATASETS, LINKS, QUEUES, SITES
from evenflow.platform.asgi import Asgi
from evenflow.platform.clock import Clock

PERIOD_S: Final = 2.0
WAITING_MAX: Final = 20
WHO: Final = "evenflow-dev"

_KINDS: Final = (
    ("small", 40, {"resources": {"cpu": 2, "memory": "4GiB"}, "run": {"work_s": 12, "progress_every_s": 5}}),
    (
        "part",
        25,
        {
            "resources": {"cpu": 2, "memory": "8GiB", "devices": {"share": "0.5"}},
            "run": {"work_s": 20, "progress_every_s": 5},
        },
    ),
    (
        "whole",
        15,
        {
            "resources": {"cpu": 8, "memory": "32GiB", "devices": {"count": 1}},
            "run": {"work_s": 30, "progress_every_s": 5},
        },
    ),
    (
        "gang",
        8,
        {
            "resources": {"cpu": 8, "memory": "32GiB", "devices": {"count": 2}},
            "members": 2,
            "run": {"work_s": 40, "progress_every_s": 5},
            "checkpoint": {"every_s": 10, "size": "1GB"},
        },
    ),
    (
        "reader",
        8,
        {
            "resources": {"cpu": 4, "memory": "16GiB", "devices": {"count": 1}},
            "run": {"work_s": 25, "progress_every_s": 5},
            "data": [{"dataset": "texts"}],
        },
    ),
    (
        "flaky",
        4,
        {
            "resources": {"cpu": 1},
            "run": {"work_s": 10, "progress_every_s": 5, "fail_at_s": 3, "exit_code": 1},
            "max_failures": 2,
        },
    ),
)


def next_task(chance: random.Random, number: int) -> dict[str, Any]:
    """The next task of the load."""
    names = [kind for kind, _, _ in _KINDS]
    kind = chance.choices(names, weights=[weight for _, weight, _ in _KINDS])[0]
    body = next(body for name, _, body in _KINDS if name == kind)
    queue = "production" if chance.random() < 0.3 else "research"
    return {"name": f"{kind} {number}", "queue": queue, "labels": {"load": "dev"}, **body}


class World:
    """Publishes what is missing, then submits; a service of the process."""

    def __init__(self, console: Asgi, clock: Clock, log: Any, *, token: str, seed: int, load: bool) -> None:
        self.name = "neighbourhood"
        self._clock = clock
        self._log = log
        self._token = token
        self._load = load
        self._random = random.Random(seed)  # noqa: S311  load, not secrets
        self._console = console
        self._client: AsyncClient | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Publish sites, links, queues and datasets that are not there yet, and begin."""
        transport = httpx.ASGITransport(app=self._console)  # type: ignore[arg-type]  # the same messages by another name
        self._client = AsyncClient("http://localhost", who=WHO, token=self._token, transport=transport)
        await self._publish(self._client)
        self._task = asyncio.create_task(self._submit_for_ever(self._client))

    async def wait(self) -> None:
        """Return when stopped."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def stop(self) -> None:
        """Submit no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._client is not None:
            await self._client.close()

    async def _publish(self, client: AsyncClient) -> None:
        known = [f"{row['kind']}/{row['name']}" for row in await client.send(listing("documents"))]
        wanted = [
            *(("site", str(site["id"]), site) for site in SITES),
            *(("link", f"{link['from']}..{link['to']}", link) for link in LINKS),
            *(("queue", str(queue["id"]), queue) for queue in QUEUES),
        ]
        for kind, name, document in wanted:
            if f"{kind}/{name}" not in known:
                body = json.dumps(document).encode()
                await client.send(put_document(kind, name, body, "the neighbourhood of evenflow dev", None))
        there = [row["dataset"] for row in await client.send(listing("datasets"))]
        for dataset in DATASETS:
            if dataset["id"] not in there:
                await client.send(put_dataset(str(dataset["id"]), json.dumps(dataset).encode()))

    async def _submit_for_ever(self, client: AsyncClient) -> None:
        number = 0
        while True:
            await self._clock.sleep(PERIOD_S * (0.5 + self._random.random()))
            if not self._load:
                continue
            try:
                waiting = await client.tasks(state="queued", limit=WAITING_MAX)
                if len(waiting.items) < WAITING_MAX:
                    number += 1
                    await client.submit(next_task(self._random, number))
            except EvenflowError as error:
                self._log.warning("load not submitted", problem=error.message)
