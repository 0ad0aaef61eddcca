"""The log is the truth: kill the process, delete every view, start again, and everything is as it was."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import httpx

#: What every one of the 500 becomes. An hour of silence keeps a running task's row as it is between two readings.
QUIET = {"progress_every_s": 3600}
SHORT = {"queue": "default", "resources": {"cpu": 1}, "run": {"work_s": 1}}
LONG = {"queue": "production", "resources": {"cpu": 2}, "run": {"work_s": 3600, **QUIET}}
ONE_DEVICE = {"queue": "research", "resources": {"cpu": 1, "devices": {"count": 1}}, "run": {"work_s": 3600, **QUIET}}
MIX = {
    "short": (330, "succeeded", SHORT),
    "billed": (20, "succeeded", {**SHORT, "queue": "production", "resources": {"cpu": 1, "devices": {"share": "0.5"}}}),
    "broken": (10, "failed", {**SHORT, "run": {"work_s": 9, "fail_at_s": 0.5, "exit_code": 3}, "max_failures": 1}),
    "stray": (10, "rejected", {**SHORT, "queue": "no-such-queue"}),
    "reader": (1, "succeeded", {**SHORT, "data": [{"dataset": "small"}], "where": {"sites": ["east"]}}),
    "dropped": (5, "cancelled", LONG),
    "long": (55, "running", LONG),
    "saved": (5, "running", {**LONG, "checkpoint": {"every_s": 1800, "size": "1GB"}}),
    "gang": (2, "running", {**ONE_DEVICE, "queue": "production", "members": 3}),
    "limited": (62, "", ONE_DEVICE),  # the queue's limit is 12 devices: 12 run, 50 wait
}
STATES = {"running": 55 + 5 + 2 + 12, "queued": 50, "succeeded": 351, "failed": 10, "cancelled": 5, "rejected": 10}
BOOKS = ("default", "production", "research")


async def _submit_all(console: str) -> None:
    """All 500 through the API, some at a time; rejections are placement's to say, so each is taken."""
    tasks = [{"id": f"{kind}-{i}", **body} for kind, (count, _, body) in MIX.items() for i in range(count)]
    assert len(tasks) == 500
    turn = asyncio.Semaphore(25)
    async with httpx.AsyncClient(base_url=console, timeout=60, trust_env=False) as client:

        async def submit(task: dict[str, Any]) -> None:
            async with turn:
                answer = await client.post("/api/v1/tasks", json=task)
            assert answer.status_code == 202, answer.text

        small = {"size": "1GB", "copies": [{"site": "west", "authoritative": True}]}
        assert (await client.put("/api/v1/datasets/small", json=small)).status_code == 202
        await asyncio.gather(*(submit(task) for task in tasks))
        for number in range(MIX["dropped"][0]):
            assert (await client.post(f"/api/v1/tasks/dropped-{number}/cancel")).status_code == 202


def _states(dev: Any) -> Counter[str]:
    found: Counter[str] = Counter()
    page = {"next": "-"}
    while page["next"]:
        after = {} if page["next"] == "-" else {"after": page["next"]}
        page = dev.get("/api/v1/tasks", limit=500, **after)
        found.update(row["state"] for row in page["items"])
    return found


def _load_is_told(dev: Any) -> bool:
    """Whether each node's live load shows what the node holds."""
    rows = dev.get("/api/v1/nodes", limit=500)["items"]
    return len(rows) == 9 and all(
        row["load"] is not None and row["load"]["cpu_used_milli"] == row["held"]["cpu_milli"] for row in rows
    )


def _all_views(processes: Any, dev: Any) -> dict[str, Any]:
    """What the command line shows, whole lists by paging."""
    url = ("--url", dev.console)
    return {
        "list": processes.pages("list", *url),
        "nodes": processes.pages("nodes", *url),
        "links": processes.json("links", *url),
        "queues": processes.json("queues", *url),
        **{f"ledger {queue}": processes.json("ledger", "--queue", queue, "--limit", "500", *url) for queue in BOOKS},
    }


def _starts(dev: Any) -> Counter[tuple[str, int, int]]:
    """How often each member of each attempt was started, from the whole log."""
    found: Counter[tuple[str, int, int]] = Counter()
    page: dict[str, Any] = {"items": [], "next": dev.get("/api/v1/events", limit=1)["next"].rpartition("-")[0] + "-0"}
    while True:
        page = dev.get("/api/v1/events", type="attempt.started", limit=500, after=page["next"])
        assert not page["reset"]
        if not page["items"]:
            return found
        found.update((row["body"]["task"], row["body"]["attempt"], row["body"]["member"]) for row in page["items"])


def test_everything_is_as_it_was_after_a_kill_and_the_loss_of_every_view(processes, folder):
    """Proves on 500 tasks that run, wait and have ended: list, nodes, ledger, links, queues are equal but for ages."""
    data = folder / "data"
    dev = processes.dev("--data", str(data), "--no-load")
    asyncio.run(_submit_all(dev.console))
    processes.until("all are where they belong", lambda: _states(dev) == STATES or None, within_s=90, every_s=0.5)
    processes.until("live load is told", lambda: _load_is_told(dev), within_s=20, every_s=0.5)
    before = _all_views(processes, dev)
    starts = _starts(dev)

    dev.kill()
    views = sorted(path for path in data.iterdir() if path.name.startswith("documents.db"))
    assert views
    for path in views:
        path.unlink()  # the live load was in the process's memory
    dev = processes.dev("--data", str(data), "--no-load")

    after = _all_views(processes, dev)
    different = {
        name: processes.differences(processes.without_ages(rows), processes.without_ages(after[name]))
        for name, rows in before.items()
    }
    assert different == {name: [] for name in before}
    assert all(book["verified"] for name in BOOKS for book in after[f"ledger {name}"]["queues"])
    assert _starts(dev) == starts
    assert set(starts.values()) == {1}

    _goes_on(processes, dev)
    assert set(_starts(dev).values()) == {1}


def _goes_on(processes: Any, dev: Any) -> None:
    """What ran is still in hand and what waited gets its turn: nothing is only a picture of what was."""
    running = [row["task"] for row in dev.get("/api/v1/tasks", queue="research", state="running")["items"]]
    for task in running[:6]:
        assert dev.api("POST", f"/api/v1/tasks/{task}/cancel").status_code == 202

    def look() -> bool:
        states = _states(dev)
        return (states["cancelled"], states["running"], states["queued"]) == (11, STATES["running"], 44)

    processes.until("six ended and six began", look, within_s=30, every_s=0.5)
