"""Who may ask for what: every changing route by every role, tokens from issue to revocation, and what is recorded."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from tests.unit.console.conftest import Bench, runtime_on

from evenflow.console.access.rights import RIGHTS
from evenflow.console.main import build
from evenflow.console.settings import ConsoleSettings
from evenflow.core.errors import FieldRefused
from evenflow.core.lifecycle.roles import Role
from evenflow.events import streams
from evenflow.events.contracts.console import ChangeRecorded
from evenflow.events.streams import topics
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.clock import SystemClock
from evenflow.platform.security.join_tokens import TokenRefused, redeem_token

OWNER_TOKEN = "o" * 40
CHANGING = sorted(key for key in RIGHTS if key[0] not in ("GET", "HEAD"))
PLACES = {"tenant": "t", "task": "x", "kind": "queue", "name": "q", "topic": "tasks", "partition": "0", "offset": "7"}


class Locked(Bench):
    """A console that wants tokens, with one of each role."""

    tokens: dict[str, str]

    async def issue(self, name: str, role: str, **more: Any) -> str:
        answer = await self.ask("POST", "/api/v1/tokens", OWNER_TOKEN, json={"name": name, "role": role, **more})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["token"])

    async def ask(self, method: str, path: str, token: str = "", **more: Any) -> httpx.Response:
        headers = {**({"authorization": f"Bearer {token}"} if token else {}), **more.pop("headers", {})}
        return await self.client.request(method, path, headers=headers, **more)

    def rows(self) -> list[dict[str, Any]]:
        return list(self.board.papers.changes)


async def started(**settings: Any) -> Locked:
    clock = SystemClock()
    log = EmbeddedLog(clock=clock)
    log.provision(topics())
    runtime = runtime_on(log, clock)
    host = build(runtime, ConsoleSettings(**settings))
    await host.start()
    transport = httpx.ASGITransport(app=host.app)
    return Locked(host, runtime, httpx.AsyncClient(transport=transport, base_url="http://localhost"))


@pytest.fixture
async def locked() -> AsyncIterator[Locked]:
    bench = await started(owner_token=OWNER_TOKEN, refusals_recorded_per_minute_max=40, wrong_tokens_per_minute_max=5)
    bench.tokens = {str(role): await bench.issue(f"a-{role}", str(role)) for role in Role}
    yield bench
    await bench.client.aclose()
    await bench.host.stop()


def address_of(path: str) -> str:
    """A route's address with something in each place."""
    return re.sub(r"\{(\w+)\}", lambda found: PLACES.get(found.group(1), "n1"), path)


async def test_every_route_of_the_application_stands_in_the_table(locked):
    """Proves that the table and the application name the same methods and addresses, so none is forgotten."""
    answer = await locked.ask("GET", "/api/v1/openapi.json", locked.tokens["viewer"])
    served = {(method.upper(), path) for path, methods in answer.json()["paths"].items() for method in methods}
    assert served | {("GET", "/api/v1/openapi.json")} == set(RIGHTS)
    assert [key for key in CHANGING if not RIGHTS[key].action or RIGHTS[key].role is None] == []


@pytest.mark.parametrize(("method", "path"), CHANGING)
async def test_a_changing_route_lets_in_its_role_and_those_above_and_records_each(locked, method, path):
    """Proves for one route that lower roles get 403 with the role needed, that higher ones pass, and one line each."""
    right = RIGHTS[method, path]
    needed = right.needed(PLACES)
    for role in Role:
        before = len(locked.rows())
        answer = await locked.ask(method, address_of(path), locked.tokens[role], content=b"{}")
        await locked.until(lambda before=before: len(locked.rows()) > before)
        assert len(locked.rows()) == before + 1
        row = locked.rows()[-1]
        assert (row["actor"], row["role"], row["action"]) == (f"a-{role}", role, right.action)
        if role.includes(needed):
            assert answer.status_code not in (401, 403), answer.text
            assert answer.status_code < 500
            outcome = "requested" if answer.status_code < 300 else f"refused: {answer.json()['code']}"
            assert row["outcome"] == outcome
        else:
            told = answer.json()
            assert (answer.status_code, told["code"], row["outcome"]) == (403, "role-needed", "refused: role-needed")
            assert f"needs the role {needed}" in told["problem"]
            assert f"--role {needed}" in told["way_out"]


@pytest.mark.parametrize(("method", "path"), sorted(RIGHTS))
async def test_nobody_gets_past_any_route_without_a_token(locked, method, path):
    """Proves that all but the life signs answer 401 and say how to show a token."""
    answer = await locked.ask(method, address_of(path), content=b"{}" if method != "GET" else b"")
    if RIGHTS[method, path].role is None:
        assert answer.status_code == 200
        return
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert "EVENFLOW_TOKEN_FILE" in answer.json()["way_out"]


@pytest.mark.parametrize("address", ["/api/v1/nothing", "/api/v1/nodes/n1/revoke/", "/", "/docs", "//api/v1/tasks"])
async def test_unknown_addresses_are_told_to_nobody_without_a_token(locked, address):
    """Proves that the check comes before the routes, so nothing is served beside them."""
    assert (await locked.ask("GET", address)).status_code == 401
    assert (await locked.ask("GET", address, locked.tokens["viewer"])).status_code == 404


async def test_a_viewer_reads_and_an_operator_reads_letters(locked):
    """Proves that reading needs the viewer's role, except where whole records of anybody are shown."""
    for path in ("/api/v1/tasks", "/api/v1/nodes", "/api/v1/ledger", "/api/v1/changes", "/metrics"):
        assert (await locked.ask("GET", path, locked.tokens["viewer"])).status_code == 200
    assert (await locked.ask("GET", "/api/v1/dlq", locked.tokens["submitter"])).status_code == 403
    assert (await locked.ask("GET", "/api/v1/dlq", locked.tokens["operator"])).status_code == 200


async def test_the_role_for_a_document_goes_by_its_kind(locked):
    """Proves that a queue admin publishes quotas and nothing else, and that a submitter can't change a quota."""
    put = "/api/v1/documents/"
    for role, kind, body, status in (
        ("submitter", "queue/q", b"{}", 403),
        ("queue-admin", "queue/q", b"{}", 202),
        ("queue-admin", "site/east", b"{}", 403),
        ("operator", "site/east", b"{}", 202),
        ("operator", "policy/default", b"{}", 403),
        ("owner", "policy/default", b"{}", 202),
        ("owner", "setting/token.0", b"{}", 404),
    ):
        answer = await locked.ask("PUT", put + kind, locked.tokens[role], content=body)
        assert answer.status_code == status, (role, kind, answer.text)


async def test_a_token_bounded_to_a_tenant_and_a_queue_keeps_to_them(locked):
    """Proves that it submits there alone, looks into its tenant's tasks alone, and that others' are not its to stop."""
    bounded = await locked.issue("ci", "submitter", tenant="physics", queue="default")
    for body, status in (
        (b'{"id":"a","tenant":"physics"}', 202),
        (b'{"id":"b","tenant":"biology"}', 403),
        (b'{"id":"c"}', 403),
        (b'{"id":"d","tenant":"physics","queue":"other"}', 403),
    ):
        answer = await locked.ask("POST", "/api/v1/tasks", bounded, content=body)
        assert answer.status_code == status, answer.text
    await locked.ask("POST", "/api/v1/tasks", OWNER_TOKEN, content=b'{"id":"theirs","tenant":"biology"}')
    await locked.until(lambda: locked.board.tasks.find("biology/theirs") is not None)
    for rest in ("", "/why", "/events", "/specification", "/logs"):
        for query in ("?tenant=biology", "?tenant=physics&tenant=biology"):
            answer = await locked.ask("GET", f"/api/v1/tasks/theirs{rest}{query}", bounded)
            assert (answer.status_code, answer.json()["code"]) == (403, "out-of-bounds")
    assert (await locked.ask("POST", "/api/v1/tasks/theirs/cancel?tenant=biology", bounded)).status_code == 403
    assert (await locked.ask("GET", "/api/v1/tasks?tenant=biology", bounded)).status_code == 403
    told = (await locked.ask("GET", "/api/v1/events?limit=500", bounded)).json()["items"]
    assert {row["key"] for row in told} == {"physics/a"}


async def test_a_queue_admin_of_one_queue_changes_that_quota_alone(locked):
    """Proves that the bound of a queue holds for documents too."""
    token = await locked.issue("q-admin", "queue-admin", queue="q")
    assert (await locked.ask("PUT", "/api/v1/documents/queue/q", token, content=b"{}")).status_code == 202
    assert (await locked.ask("PUT", "/api/v1/documents/queue/r", token, content=b"{}")).status_code == 403


async def test_a_revoked_token_is_refused_by_the_next_request(locked):
    """Proves that revocation holds at once, by name or by id, and that the answer says what became of the token."""
    token = locked.tokens["operator"]
    assert (await locked.ask("GET", "/api/v1/dlq", token)).status_code == 200
    gone = await locked.ask("DELETE", "/api/v1/tokens/a-operator?reason=left", OWNER_TOKEN)
    assert (gone.status_code, gone.json()["state"]) == (200, "revoked")
    answer = await locked.ask("GET", "/api/v1/dlq", token)
    assert (answer.status_code, answer.json()["problem"]) == (401, "the token a-operator was revoked")
    row = locked.rows()[-1]
    assert (row["action"], row["subject"], row["reason"]) == ("token.revoke", "a-operator", "left")


async def test_an_expired_token_is_refused(locked):
    """Proves that the expiry counts by the wall clock."""
    token = await locked.issue("brief", "viewer", expires_s=1)
    assert (await locked.ask("GET", "/api/v1/tasks", token)).status_code == 200
    await locked.runtime.clock.sleep(1.05)
    answer = await locked.ask("GET", "/api/v1/tasks", token)
    assert (answer.status_code, answer.json()["problem"]) == (401, "the token brief expired")


@pytest.mark.parametrize(
    "shown",
    ["Bearer", "Bearer ", "Basic b3duZXI6eA==", f"Bearer {OWNER_TOKEN}x", f"Bearer {'o' * 39}", "Bearer evt_0_0",
     f"Bearer evt_{'0' * 16}_{'0' * 64}", f"Bearer evt_{'0' * 16}_{'0' * 64}\x80", "bearer \u00e9" * 900],
)  # fmt: skip
async def test_a_wrong_token_is_401_whatever_it_looks_like(locked, shown):
    """Proves that nothing but a right token gets in, and that nothing shown makes the console fail."""
    answer = await locked.client.get("/api/v1/tasks", headers={"authorization": shown.encode("latin-1")})
    assert (answer.status_code, answer.json()["code"]) in ((401, "token-refused"), (401, "token-needed"))


async def test_another_secret_under_a_known_id_is_refused(locked):
    """Proves that the id of a token is worth nothing without its secret."""
    token = locked.tokens["owner"]
    assert (
        await locked.ask("GET", "/api/v1/tokens", token[:-1] + ("0" if token[-1] != "0" else "1"))
    ).status_code == 401


async def test_wrong_tokens_are_bounded_and_right_ones_get_in_meanwhile(locked):
    """Proves that an address that tries is told to wait, and that it locks out nobody who shares it."""
    statuses = [(await locked.ask("GET", "/api/v1/tasks", f"evt_{n:016x}_{'1' * 64}")).status_code for n in range(8)]
    assert statuses == [401] * 5 + [429] * 3
    assert (await locked.ask("GET", "/api/v1/tasks", locked.tokens["viewer"])).status_code == 200


async def test_refused_changes_are_recorded_up_to_a_rate(locked):
    """Proves that floods of refused changes leave a bounded number of lines, and that the rest is counted."""
    before = len(locked.rows())
    for _ in range(60):
        assert (await locked.ask("POST", "/api/v1/nodes/n1/drain", locked.tokens["viewer"])).status_code == 403
    await locked.until(lambda: len(locked.rows()) >= before + 40)
    assert len(locked.rows()) == before + 40
    assert "evenflow_console_unrecorded_total 20" in (await locked.ask("GET", "/metrics", OWNER_TOKEN)).text
    assert (await locked.ask("PUT", "/api/v1/documents/queue/q", OWNER_TOKEN, content=b"{}")).status_code == 202
    await locked.until(lambda: locked.rows()[-1]["action"] == "document.publish")


async def test_a_change_without_a_token_is_recorded_with_what_it_meant(locked):
    """Proves that the line of a stranger's try names action, subject and address, though no route was reached."""
    await locked.ask("POST", "/api/v1/tasks/t1/cancel?tenant=physics", headers={"x-evenflow-who": "ann"})
    await locked.until(lambda: locked.rows()[-1]["actor"] == "unknown")
    row = locked.rows()[-1]
    assert (row["action"], row["subject"], row["address"]) == ("task.cancel", "physics/t1", "127.0.0.1")
    assert (row["role"], row["outcome"]) == ("", "refused: token-needed")


async def test_the_header_gives_a_reason_where_the_body_has_no_place_for_one(locked):
    """Proves that a submission carries its reason into the record, and that a token's name can't be talked away."""
    headers = {"x-evenflow-reason": "caf%C3%A9 run%0A", "x-evenflow-who": "someone-else"}
    token = locked.tokens["submitter"]
    await locked.ask("POST", "/api/v1/tasks", token, content=b'{"id":"r","env":{"KEY":"hush"}}', headers=headers)
    await locked.until(lambda: locked.rows()[-1]["action"] == "task.submit")
    row = locked.rows()[-1]
    assert (row["actor"], row["reason"], row["outcome"]) == ("a-submitter", "café run", "requested")
    assert "hush" not in str(row)


async def test_no_secret_and_no_digest_is_shown_or_recorded(locked):
    """Proves that a token's text stands in the answer that made it alone, and its digest in no list."""
    token = locked.tokens["viewer"]
    listed = await locked.ask("GET", "/api/v1/tokens", OWNER_TOKEN)
    documents = await locked.ask("GET", "/api/v1/documents", OWNER_TOKEN)
    changes = await locked.ask("GET", "/api/v1/changes?limit=500", OWNER_TOKEN)
    one = await locked.ask("GET", f"/api/v1/documents/setting/token.{token[4:20]}", OWNER_TOKEN)
    assert one.status_code == 404
    for answer in (listed, documents, changes):
        assert token[21:] not in answer.text
        assert "digest" not in answer.text
    assert [row["name"] for row in listed.json()["items"]] == sorted(f"a-{role}" for role in Role)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"name": "x"}, "role"),
        ({"name": "x", "role": "king"}, "role"),
        ({"name": "x", "role": "operator", "tenant": "t"}, "role"),
        ({"name": "a/b", "role": "viewer"}, "name"),
        ({"name": "x", "role": "viewer", "expires_s": 0}, "expires_s"),
        ({"name": "x", "role": "viewer", "expires_s": True}, "expires_s"),
        ({"name": "x", "role": "viewer", "digest": "0" * 64}, "digest"),
        ({"name": "x", "role": "viewer", "expires_ms": 1}, "expires_ms"),
    ],
)
async def test_a_wrong_wish_for_a_token_is_refused_by_field(locked, body, path):
    """Proves that nothing is issued by guess, and that nobody chooses what only the console writes."""
    answer = await locked.ask("POST", "/api/v1/tokens", OWNER_TOKEN, json=body)
    assert (answer.status_code, answer.json()["path"]) == (422, path)


async def test_a_living_name_is_not_given_twice(locked):
    """Proves that the record's actor names one token at a time, and that the name is free after revocation."""
    answer = await locked.ask("POST", "/api/v1/tokens", OWNER_TOKEN, json={"name": "a-viewer", "role": "owner"})
    assert (answer.status_code, answer.json()["code"]) == (409, "name-taken")
    await locked.ask("DELETE", "/api/v1/tokens/a-viewer", OWNER_TOKEN)
    await locked.issue("a-viewer", "viewer")


async def test_a_refused_change_changes_nothing_that_is_read_back(locked):
    """Proves that lines of refused changes make no version of a document and answer no dead letter."""
    refused = {"outcome": "refused: role-needed", "actor": "x", "reason": ""}
    document = {"version": 9, "document": {"id": "q"}}
    for action, subject in (("document.publish", "queue/q"), ("dead-letter.drop", "evenflow.tasks.v1/0/7")):
        line = ChangeRecorded(action=action, subject=subject, parameters=document, **refused)
        await locked.say(streams.AUDIT, line)
    await locked.until(lambda: locked.rows()[-1]["action"] == "dead-letter.drop")
    assert "queue/q" not in locked.board.papers.history
    assert locked.board.papers.letters == {}


async def test_another_copy_of_the_console_knows_the_same_tokens(locked):
    """Proves that tokens are told by the log: a copy that starts later lets them in and keeps revoked ones out."""
    await locked.ask("DELETE", "/api/v1/tokens/a-owner", OWNER_TOKEN)
    log = locked.runtime.transport.log
    runtime = runtime_on(log, SystemClock())
    host = build(runtime, ConsoleSettings(owner_token=OWNER_TOKEN))
    await host.start()
    try:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=host.app), base_url="http://localhost"
        ) as client:
            for role, status in (("viewer", 200), ("owner", 401)):
                headers = {"authorization": f"Bearer {locked.tokens[role]}"}
                assert (await client.get("/api/v1/tasks", headers=headers)).status_code == status
    finally:
        await host.stop()


async def test_without_an_owners_token_the_console_is_its_users_own(bench):
    """Proves that on loopback nothing is asked for, and that a token that is shown must be right all the same."""
    assert (await bench.client.post("/api/v1/tasks", content=b'{"id":"t"}')).status_code == 202
    await bench.until(lambda: len(bench.board.papers.changes) == 1)
    assert bench.board.papers.changes[0]["role"] == "owner"
    wrong = {"authorization": f"Bearer evt_{'0' * 16}_{'0' * 64}"}
    assert (await bench.client.get("/api/v1/tasks", headers=wrong)).status_code == 401


@pytest.mark.parametrize("token", ["short", "x" * 31, "with space " * 4, "ü" * 40, "x" * 201])
def test_a_weak_owners_token_is_refused_with_the_way_out(token):
    """Proves that the first owner's secret can't be guessable by length, and that the message does not show it."""
    with pytest.raises(FieldRefused, match="openssl rand -hex 32") as caught:
        ConsoleSettings().with_changes(owner_token=token)
    assert token not in str(caught.value)


async def test_an_invitation_lets_one_node_in_and_can_be_taken_back(locked):
    """Proves that an operator makes a join token that a gateway takes once, and takes an unused one back."""
    operator, documents = locked.tokens["operator"], locked.runtime.documents
    made = [await locked.ask("POST", "/api/v1/invitations", operator, json={"expires_s": 60}) for _ in range(2)]
    assert [answer.status_code for answer in made] == [201, 201]
    first, second = (answer.json() for answer in made)
    now_ms = locked.runtime.clock.now_ms()
    grants = await redeem_token(documents, first["token"], now_ms=now_ms, holder="n1")
    assert grants == {"invited_by": "a-operator"}
    with pytest.raises(TokenRefused):
        await redeem_token(documents, first["token"], now_ms=now_ms, holder="n2")
    gone = f"/api/v1/invitations/{second['invitation']}"
    assert (await locked.ask("DELETE", gone, operator)).status_code == 200
    assert (await locked.ask("DELETE", gone, operator)).status_code == 404
    with pytest.raises(TokenRefused):
        await redeem_token(documents, second["token"], now_ms=now_ms, holder="n2")
    await locked.until(lambda: locked.rows()[-1]["action"] == "node.uninvite")
    assert first["token"].split("_")[2] not in str(locked.rows())


@pytest.mark.parametrize("seconds", [0, -1, 2_592_001, "60", True, 1.5])
async def test_a_wrong_lifetime_of_an_invitation_is_refused(locked, seconds):
    """Proves that a join token never lives for another time than was asked for."""
    answer = await locked.ask("POST", "/api/v1/invitations", OWNER_TOKEN, json={"expires_s": seconds})
    assert (answer.status_code, answer.json()["path"]) == (422, "expires_s")
