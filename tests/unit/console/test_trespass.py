"""Ways around the console's rights: what was let in once, what is written beside its place, what two do at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.unit.console.test_access import OWNER_TOKEN, Locked, started

from evenflow.core.lifecycle.roles import Role
from evenflow.events import streams
from evenflow.events.contracts.console import DocumentPublished
from evenflow.events.documents.access import Token, token_document
from evenflow.platform.security.access_tokens import new_access_token
from evenflow.platform.security.join_tokens import redeem_token


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


async def test_a_token_in_an_address_or_a_reason_is_not_recorded(locked):
    """Proves that who revokes a token by its whole text doesn't publish it to all who read the record."""
    text, join = locked.tokens["operator"], f"evj_{'0' * 16}_{'ab' * 32}"
    for path in (f"/api/v1/tokens/{text}", f"/api/v1/invitations/{join}", f"/api/v1/{text}"):
        answer = await locked.ask("DELETE", f"{path}?reason=left", OWNER_TOKEN, headers={"x-evenflow-reason": join})
        assert answer.status_code == 404
    await locked.ask("DELETE", f"/api/v1/tokens/a-viewer?reason=leaked {text}", OWNER_TOKEN)
    await locked.until(lambda: locked.rows()[-1]["subject"] == "a-viewer")
    told = (await locked.ask("GET", "/api/v1/changes", locked.tokens["submitter"])).text
    for secret in (text.split("_")[2], join.split("_")[2]):
        assert secret not in told
    assert text[:20] in told


async def test_who_has_access_is_not_told_by_the_events(locked):
    """Proves that the stream of events shows no more of tokens than the lists that need a role."""
    await locked.ask("PUT", "/api/v1/documents/queue/q", OWNER_TOKEN, content=b"{}")
    rows = (await locked.ask("GET", "/api/v1/events?topic=evenflow.policies.v1", locked.tokens["viewer"])).json()
    shown = {row["body"]["kind"]: row["body"] for row in rows["items"]}
    assert "document" in shown["queue"]
    assert "document" not in shown["setting"]
    assert "digest" not in str(rows)


async def test_a_tenants_queue_admin_changes_no_quota_of_the_pool(locked):
    """Proves that a bound to a tenant alone is no leave to change every tenant's queues."""
    token = await locked.issue("theirs", "queue-admin", tenant="physics")
    answer = await locked.ask("PUT", "/api/v1/documents/queue/q", token, content=b"{}")
    assert (answer.status_code, answer.json()["code"], answer.json()["path"]) == (403, "out-of-bounds", "tenant")
    token = await locked.issue("both", "queue-admin", tenant="physics", queue="q")
    assert (await locked.ask("PUT", "/api/v1/documents/queue/q", token, content=b"{}")).status_code == 202


async def test_a_name_asked_for_twice_at_once_is_given_once(locked):
    """Proves that no second token lives on under a name that is revoked."""
    wish = {"name": "ci", "role": "viewer"}
    answers = await asyncio.gather(*(locked.ask("POST", "/api/v1/tokens", OWNER_TOKEN, json=wish) for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409]


async def test_every_token_of_a_name_is_revoked_by_it(locked):
    """Proves that a name which two copies of the console gave at once is taken back from both."""
    text, token_id, digest = new_access_token(lambda count: b"\x07" * count)
    now_ms = locked.runtime.clock.now_ms()
    twin = Token(token_id, "a-viewer", Role.VIEWER, digest, now_ms, now_ms + 60_000)
    body = DocumentPublished(kind="setting", name=f"token.{token_id}", version=1, document=token_document(twin))
    await locked.say(streams.POLICIES, body)
    await locked.until(lambda: locked.board.papers.version(f"setting/token.{token_id}") == 1)
    assert (await locked.ask("GET", "/api/v1/tasks", text)).status_code == 200
    await locked.ask("DELETE", "/api/v1/tokens/a-viewer", OWNER_TOKEN)
    for shown in (text, locked.tokens["viewer"]):
        assert (await locked.ask("GET", "/api/v1/tasks", shown)).status_code == 401


@pytest.mark.parametrize("name", ["owner", "local", "unknown"])
async def test_no_token_is_called_what_the_record_calls_another(locked, name):
    """Proves that an actor of the record named owner is the owner of the settings."""
    answer = await locked.ask("POST", "/api/v1/tokens", OWNER_TOKEN, json={"name": name, "role": "viewer"})
    assert (answer.status_code, answer.json()["path"]) == (422, "name")


async def test_tokens_that_ended_count_for_nothing(locked, monkeypatch):
    """Proves that a console which gave out and took back many still gives out new ones."""
    monkeypatch.setattr("evenflow.console.access.granting.TOKENS_MAX", len(Role) + 1)
    for _ in range(3):
        await locked.issue("again", "viewer")
        full = await locked.ask("POST", "/api/v1/tokens", OWNER_TOKEN, json={"name": "x", "role": "viewer"})
        assert (full.status_code, full.json()["code"]) == (409, "too-many")
        await locked.ask("DELETE", "/api/v1/tokens/again", OWNER_TOKEN)


async def test_strangers_do_not_crowd_out_what_known_callers_try(locked):
    """Proves that a flood of changes without a token leaves room for the line of one with a token."""
    for _ in range(8):
        assert (await locked.ask("POST", "/api/v1/nodes/n1/drain")).status_code == 401
    assert (await locked.ask("POST", "/api/v1/nodes/n1/drain", locked.tokens["viewer"])).status_code == 403
    await locked.until(lambda: locked.rows()[-1]["actor"] == "a-viewer")
    assert sum(row["actor"] == "unknown" for row in locked.rows()) == 5
    assert "evenflow_console_unrecorded_total 3" in (await locked.ask("GET", "/metrics", OWNER_TOKEN)).text


async def test_a_used_invitation_is_not_called_taken_back(locked):
    """Proves that an operator who is too late is told that a node is in, and how to take it out."""
    made = (await locked.ask("POST", "/api/v1/invitations", locked.tokens["operator"])).json()
    now_ms = locked.runtime.clock.now_ms()
    await redeem_token(locked.runtime.documents, made["token"], now_ms=now_ms, holder="n1")
    gone = await locked.ask("DELETE", f"/api/v1/invitations/{made['invitation']}", locked.tokens["operator"])
    assert (gone.status_code, gone.json()["code"]) == (409, "token-used")
    assert "nodes revoke" in gone.json()["way_out"]


async def test_two_authorization_headers_are_none(locked):
    """Proves that a proxy and the console can't be made to look at different ones."""
    headers = [("authorization", f"Bearer {locked.tokens[role]}") for role in ("viewer", "owner")]
    answer = await locked.client.get("/api/v1/tokens", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "token-refused")


TRICKS = [
    ("GET", "/api/v1/tokens?token={owner}", 401), ("GET", "/api/v1/tokens?authorization=Bearer%20{owner}", 401),
    ("HEAD", "/api/v1/tokens", 401), ("OPTIONS", "/api/v1/tokens", 401), ("TRACE", "/api/v1/tokens", 401),
    ("GET", "/health/../api/v1/tokens", 401), ("GET", "/health%2f..%2fapi/v1/tokens", 401), ("GET", "/health/", 401),
    ("GET", "//health", 401), ("GET", "/HEALTH", 401),
]  # fmt: skip


@pytest.mark.parametrize(("method", "address", "status"), TRICKS)
async def test_nothing_but_the_header_lets_in(locked, method, address, status):
    """Proves that neither query, cookie, other methods nor addresses that look like open ones get past the guard."""
    owner = locked.tokens["owner"]
    cookies = {"cookie": f"authorization=Bearer {owner}; token={owner}", "x-authorization": f"Bearer {owner}"}
    answer = await locked.ask(method, address.format(owner=owner), headers=cookies)
    assert answer.status_code == status


OVERRIDES = ("x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url")


async def test_a_reader_changes_nothing_by_other_words(locked):
    """Proves that overrides of method and address are not heard, and that slashes and escapes name no other route."""
    viewer = locked.tokens["viewer"]
    headers = {**dict.fromkeys(OVERRIDES, "DELETE"), "x-original-url": "/api/v1/tokens/a-owner"}
    assert (await locked.ask("GET", "/api/v1/tasks", viewer, headers=headers)).status_code == 200
    for method, path in (
        ("DELETE", "/api/v1/tokens/a-owner"),
        ("DELETE", "/api/v1/tokens//a-owner"),
        ("DELETE", "/api/v1//tokens/a-owner"),
        ("DELETE", "/api/v1/tokens/a-owner/"),
        ("DELETE", "/api/v1/tokens%2fa-owner"),
        ("DELETE", "/api/v1/tokens/%61-owner"),
        ("PUT", "/api/v1/documents/queue/x%2f..%2fy"),
        ("PUT", "/api/v1/documents/setting/token.x"),
        ("POST", "/api/v1/tasks/x/cancel/"),
        ("POST", "/api/v1/tasks/x%00/cancel"),
        ("POST", "/api/v1/tasks/%F0%9F%92%A5/cancel"),
    ):
        assert (await locked.ask(method, path, viewer)).status_code in (403, 404), path
    assert (await locked.ask("GET", "/api/v1/tokens", locked.tokens["owner"])).status_code == 200


async def test_a_tenants_token_finds_no_other_way_to_a_task(locked):
    """Proves that neither list, events, pages, waiting nor a key with a slash leads to another tenant's task."""
    token = await locked.issue("ci", "submitter", tenant="physics")
    theirs = b'{"id":"theirs","tenant":"biology"}'
    cursor = (await locked.ask("GET", "/api/v1/events", token)).json()["next"]
    await locked.ask("POST", "/api/v1/tasks", OWNER_TOKEN, content=theirs)
    await locked.until(lambda: locked.board.tasks.find("biology/theirs") is not None)
    for path in (
        "/api/v1/tasks",
        "/api/v1/tasks?tenant=physics",
        "/api/v1/events?task=biology/theirs",
        "/api/v1/events?task=theirs",
        f"/api/v1/events?after={cursor}&wait_ms=50",
        "/api/v1/tasks/theirs?tenant=biology&tenant=physics",
        "/api/v1/tasks/theirs?tenant=physics%00",
        "/api/v1/tasks/biology%2ftheirs?tenant=physics",
        "/api/v1/tasks/theirs?tenant=",
        "/api/v1/tasks/theirs/logs?tenant=../biology",
        "/api/v1/tasks/theirs/why?Tenant=biology",
        "/api/v1/tasks/theirs/specification?tenant=BIOLOGY",
        "/api/v1/tasks/..%2fbiology%2ftheirs/logs?tenant=physics",
    ):
        answer = await locked.ask("GET", path, token)
        assert answer.status_code in (200, 403, 404, 422)
        assert "biology/theirs" not in str(answer.json().get("items", "")), path
        assert '"task":"theirs"' not in answer.text, path
    for body in (theirs, b"tenant: biology\nid: theirs\n", b'{"id":"x","tenant":"biology","tenant":"physics"}'):
        answer = await locked.ask("POST", "/api/v1/tasks?wait_ms=10", token, content=body)
        assert answer.status_code in (403, 422)
    for method, path in (("POST", "/cancel"), ("PATCH", "")):
        for query in ("?tenant=biology", "?tenant=physics&tenant=biology", "?tenant=biology&tenant=physics"):
            answer = await locked.ask(
                method, f"/api/v1/tasks/theirs{path}{query}", token, json={"priority": 1} if method == "PATCH" else {}
            )
            assert answer.status_code in (403, 404)
