"""Ways around the console's rights: what was let in once, what is written beside its place, what two do at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.console.test_access import OWNER_TOKEN, Locked, started

from evenflow.core.lifecycle.roles import Role


@pytest.fixture
async def locked() -> AsyncIterator[Locked]:
    bench = await started(owner_token=OWNER_TOKEN, refusals_recorded_per_minute_max=5, wrong_tokens_per_minute_max=500)
    bench.tokens = {str(role): await bench.issue(f"a-{role}", str(role)) for role in Role}
    yield bench
    await bench.client.aclose()
    await bench.host.stop()


class Reader:
    """A request whose answer is read as it comes."""

    def __init__(self, locked: Locked, path: str, token: str, *more: tuple[bytes, bytes]) -> None:
        self.said: list[dict[str, Any]] = []
        path, _, query = path.partition("?")
        headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode()), *more]
        scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "headers": headers}
        scope |= {"query_string": query.encode(), "client": ("127.0.0.1", 1), "server": ("localhost", 80)}
        scope |= {"scheme": "http", "root_path": "", "http_version": "1.1", "asgi": {"version": "3.0"}}
        self.task = asyncio.ensure_future(locked.host.app(scope, self._receive, self._send))
        self._begun = False

    async def _receive(self) -> dict[str, Any]:
        if self._begun:
            await asyncio.Event().wait()
        self._begun = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message: dict[str, Any]) -> None:
        self.said.append(message)

    @property
    def status(self) -> int:
        return int(self.said[0]["status"]) if self.said else 0

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for message in self.said).decode()


STREAM = (b"accept", b"text/event-stream")


async def submit(locked: Locked, name: str) -> None:
    answer = await locked.ask("POST", "/api/v1/tasks", OWNER_TOKEN, content=f'{{"id":"{name}"}}'.encode())
    assert answer.status_code == 202


async def test_an_open_stream_ends_with_the_right_to_it(locked):
    """Proves that a stream tells nothing more once its token is revoked, and closes, though nothing else happens."""
    reader = Reader(locked, "/api/v1/events", locked.tokens["viewer"], STREAM)
    await locked.until(lambda: locked.board.feed.reader_count == 1)
    await submit(locked, "before")
    await locked.until(lambda: "before" in reader.text)
    await locked.ask("DELETE", "/api/v1/tokens/a-viewer", OWNER_TOKEN)
    await asyncio.wait_for(reader.task, 2)
    await submit(locked, "after")
    assert "after" not in reader.text
    assert (reader.said[-1]["body"], reader.said[-1].get("more_body", False)) == (b"", False)
    await locked.until(lambda: locked.board.feed.reader_count == 0)


async def test_an_open_stream_ends_when_its_token_expires(locked):
    """Proves that the next thing to tell is not told after the expiry."""
    reader = Reader(locked, "/api/v1/events", await locked.issue("brief", "viewer", expires_s=1), STREAM)
    await locked.until(lambda: locked.board.feed.reader_count == 1)
    await locked.runtime.clock.sleep(1.05)
    await submit(locked, "late")
    await asyncio.wait_for(reader.task, 2)
    assert "late" not in reader.text


async def test_a_waiting_answer_is_refused_when_the_token_ends_meanwhile(locked):
    """Proves that who waits for news with a token that is revoked meanwhile gets 401 in the place of news."""
    after = (await locked.ask("GET", "/api/v1/events", locked.tokens["viewer"])).json()["next"]
    path = f"/api/v1/events?after={after}&type=task.submitted&wait_ms=20000"
    reader = Reader(locked, path, locked.tokens["viewer"])
    await asyncio.sleep(0.05)
    await locked.ask("DELETE", "/api/v1/tokens/a-viewer", OWNER_TOKEN)
    await submit(locked, "news")
    await asyncio.wait_for(reader.task, 2)
    assert reader.status == 401
    assert "news" not in reader.text


async def test_a_token_that_revokes_itself_is_told_so(locked):
    """Proves that a change that took effect is answered as one."""
    answer = await locked.ask("DELETE", "/api/v1/tokens/a-owner", locked.tokens["owner"])
    assert (answer.status_code, answer.json()["state"]) == (200, "revoked")
