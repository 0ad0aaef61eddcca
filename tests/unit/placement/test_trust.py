"""Signed requests about tasks: what holds, and everything that does not changes nothing and stops nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evenflow.core.errors import FieldRefused
from evenflow.events.contract import Contract
from evenflow.events.contracts.console import DocumentPublished
from evenflow.events.contracts.tasks import TaskCancelRequested, TaskChangeRequested, TaskSubmitted
from evenflow.events.documents.access import Signer, signer_document
from evenflow.events.streams import POLICIES, TASKS
from evenflow.placement.deciding.trust import SKEW_MS
from evenflow.platform.broker.codec import Encoded, Fact, encode
from evenflow.platform.security.identity import key_from_seed, public_text
from evenflow.platform.security.sealing import Sealer

PHYSICS, BIOLOGY = key_from_seed("physics"), key_from_seed("biology")


@pytest.fixture
def guarded(make_pool: Any) -> Any:
    """A pool with a node that takes signed requests alone, of two tenants' signers and the console."""
    pool = make_pool(unsigned_submissions="none")
    pool.node("n1")
    know(pool, "physics-ci", PHYSICS, "physics")
    know(pool, "biology-ci", BIOLOGY, "biology", "ecology")
    know(pool, "console", key_from_seed("console"), "*")
    return pool


def know(pool: Any, name: str, key: Ed25519PrivateKey, *tenants: str, revoked: bool = False) -> None:
    document = signer_document(Signer(name, public_text(key), tenants, revoked))
    body = DocumentPublished(kind="setting", name=f"signer.{name}", version=1, document=document)
    pool.tell(POLICIES, body)


def record(pool: Any, body: Contract, key: str, event: str = "e1", at_ms: int = 0) -> Encoded:
    fact = Fact(TASKS, body, key=key, id=event)
    return encode(fact, source="test", now_ms=pool.now_ms + at_ms)


def submission(pool: Any, tenant: str = "physics", task: str = "t1", **more: Any) -> Encoded:
    raw = json.dumps({"id": task, "tenant": tenant, "run": {"work_s": 5}}).encode()
    return record(pool, TaskSubmitted(raw=raw), f"{tenant}/{task}", **more)


def signed(one: Encoded, signer: str = "physics-ci", key: Ed25519PrivateKey = PHYSICS) -> Encoded:
    return Sealer(signer, key)(one)


def with_header(one: Encoded, name: str, value: bytes) -> Encoded:
    return replace(one, headers=[*[pair for pair in one.headers if pair[0] != name], (name, value)])


def refusal(pool: Any, out: Any) -> str:
    """The one thing that was said: a refusal, with its reason from the closed list."""
    assert pool.types(out) == ["submission.refused"]
    body = out[0].body
    assert (body.reason.reason, body.reason.dimension) == ("permission", "signature")
    return str(body.reason.available)


def test_a_right_signature_lets_its_tenants_tasks_in(guarded: Any) -> None:
    """Proves the good way: a tenant's own signer, one of several tenants, and one that speaks for all."""
    guarded.feed(TASKS, signed(submission(guarded)))
    guarded.feed(TASKS, signed(submission(guarded, "ecology", event="e2"), "biology-ci", BIOLOGY))
    guarded.feed(TASKS, signed(submission(guarded, "chemistry", event="e3"), "console", key_from_seed("console")))
    assert guarded.types(guarded.turn()) == ["task.assigned"] * 3


WRONG = {
    "no signature": (lambda one: one, "none"),
    "an unknown signer": (lambda one: signed(one, "nobody"), "not known"),
    "another tenant's key under the right name": (lambda one: signed(one, key=BIOLOGY), "not signed so"),
    "another tenant's signer": (lambda one: signed(one, "biology-ci", BIOLOGY), "does not speak for"),
    "altered bytes": (
        lambda one: replace(signed(one), value=one.value.replace(b"5", b"6")),
        "not signed so",
    ),
    "another event id": (lambda one: with_header(signed(one), "ce_id", b"e9"), "not signed so"),
    "another time": (lambda one: with_header(signed(one), "ce_time", b"2026-01-01T00:00:01.000Z"), "not signed so"),
    "half a signature": (lambda one: with_header(signed(one), "signature", b"abcd"), "not signed so"),
    "no hexadecimal": (lambda one: with_header(signed(one), "signature", "ü".encode()), "not signed so"),
    "an empty signer": (lambda one: with_header(signed(one), "signer", b""), "not known"),
    "a name with a control character": (lambda one: with_header(signed(one), "signer", b"a\x1b[2J"), r"\x1b"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_signature_changes_nothing_and_stops_nothing(guarded: Any, name: str) -> None:
    """Proves that it is refused with its reason, takes no id, and that the next good record goes on."""
    spoil, words = WRONG[name]
    guarded.feed(TASKS, spoil(submission(guarded)))
    assert words in refusal(guarded, guarded.turn())
    assert guarded.model.tasks == {}
    guarded.feed(TASKS, signed(submission(guarded, event="e2")))
    assert guarded.types(guarded.turn()) == ["task.assigned"]


def test_signed_bytes_under_another_key_start_nothing(guarded: Any) -> None:
    """Proves that a signed value moved to another record's key is refused, as it was said of one task alone."""
    guarded.feed(TASKS, replace(signed(submission(guarded)), key=b"physics/t2"))
    assert "not signed so" in refusal(guarded, guarded.turn())


def test_the_same_record_again_is_nothing(guarded: Any) -> None:
    """Proves that a replay within the memory of ids says nothing and starts nothing."""
    one = guarded.feed(TASKS, signed(submission(guarded)))
    guarded.turn()
    guarded.again(one)
    assert guarded.types(guarded.turn()) == []


def test_a_replay_beyond_the_memory_of_ids_is_refused(guarded: Any) -> None:
    """Proves that a signature is too old exactly when the memory could no longer tell it from a new one."""
    kept = guarded.settings.task_id_retention_ms - SKEW_MS
    guarded.feed(TASKS, signed(submission(guarded, at_ms=1 - kept)))
    assert guarded.types(guarded.turn()) == ["task.assigned"]
    guarded.feed(TASKS, signed(submission(guarded, task="t2", event="e2", at_ms=-kept)))
    assert "longer ago" in refusal(guarded, guarded.turn())
    guarded.feed(TASKS, signed(submission(guarded, task="t3", event="e3", at_ms=SKEW_MS + 1)))
    assert "in the future" in refusal(guarded, guarded.turn())


@pytest.mark.parametrize("memory", [{}, {"ended_tasks_max": 1}, {"task_id_retention_ms": 40_000}], ids=str)
def test_whatever_ids_are_forgotten_no_signed_task_runs_twice(make_pool: Any, memory: dict[str, int]) -> None:
    """Proves that neither a clock ahead of ours nor a short memory lets a record that was carried out start again."""
    pool = make_pool(unsigned_submissions="none", **memory)
    know(pool, "physics-ci", PHYSICS, "physics")
    ahead = min(SKEW_MS, pool.settings.task_id_retention_ms // 4)
    first = None
    for name in ("t1", "t2"):
        one = pool.feed(TASKS, signed(submission(pool, task=name, event=name, at_ms=ahead)))
        first = first or one
        assert "submission.refused" not in pool.types(pool.turn())
        cancel = TaskCancelRequested(tenant="physics", task=name)
        pool.feed(TASKS, signed(record(pool, cancel, f"physics/{name}", event=f"no-{name}")))
        assert "task.ended" in pool.types(pool.turn())
        pool.after(pool.settings.task_id_retention_ms / 40_000)
    pool.node("n1")
    for _ in range(48):
        pool.after(pool.settings.task_id_retention_ms / 40_000)
        pool.again(first)
        assert set(pool.types(pool.turn())) <= {"submission.refused"}
    assert "physics/t1" not in pool.model.tasks


def test_a_signed_change_that_another_followed_is_not_taken_again(guarded: Any) -> None:
    """Proves that nobody sets a task back by repeating an older change of its own owner, nor after a take-over."""
    blocker, waiting = submission(guarded, task="t0", event="e0"), submission(guarded)
    for one in (blocker, waiting):
        guarded.feed(TASKS, signed(one))
    guarded.turn()
    changes = [
        guarded.feed(TASKS, signed(record(guarded, TaskChangeRequested(
            tenant="physics", task="t1", change={"priority": priority}), "physics/t1", event=event, at_ms=at_ms)))
        for priority, event, at_ms in ((900, "e2", 0), (10, "e3", 1))
    ]  # fmt: skip
    guarded.turn()
    assert guarded.model.tasks["physics/t1"].priority == 10
    guarded.take_over()
    for one in changes:
        guarded.again(one)
    assert guarded.types(guarded.turn()) == ["task.change-refused"]
    assert guarded.model.tasks["physics/t1"].priority == 10


def test_a_revoked_signer_counts_no_more(guarded: Any) -> None:
    """Proves that a new version of the document takes the right away, and that a broken one leaves none in force."""
    know(guarded, "physics-ci", PHYSICS, "physics", revoked=True)
    guarded.feed(TASKS, signed(submission(guarded)))
    assert "was revoked" in refusal(guarded, guarded.turn())
    broken = DocumentPublished(kind="setting", name="signer.biology-ci", version=2, document={"name": "biology-ci"})
    with pytest.raises(FieldRefused, match="public_key"):
        guarded.tell(POLICIES, broken)
    guarded.feed(TASKS, signed(submission(guarded, "biology", event="e2"), "biology-ci", BIOLOGY))
    assert "not known" in refusal(guarded, guarded.turn())


@pytest.mark.parametrize(
    "body",
    [
        TaskCancelRequested(tenant="physics", task="t1"),
        TaskChangeRequested(tenant="physics", task="t1", change={"priority": 900}),
    ],
    ids=["cancel", "change"],
)
def test_cancels_and_changes_need_the_signature_too(guarded: Any, body: Contract) -> None:
    """Proves that nobody stops or hurries another tenant's task."""
    guarded.feed(TASKS, signed(submission(guarded)))
    guarded.turn()
    for one in (
        record(guarded, body, "physics/t1", event="e2"),
        signed(record(guarded, body, "physics/t1", event="e3"), "biology-ci", BIOLOGY),
    ):
        guarded.feed(TASKS, one)
        refusal(guarded, guarded.turn())
    guarded.feed(TASKS, signed(record(guarded, body, "physics/t1", event="e4")))
    out = guarded.turn()
    assert "submission.refused" not in guarded.types(out)
    assert out


@pytest.mark.parametrize(
    ("allowed", "tenant", "type_"),
    [
        ("any", "physics", "task.assigned"),
        ("anonymous", "anonymous", "task.assigned"),
        ("anonymous", "physics", "submission.refused"),
        ("anonymous", "default", "submission.refused"),
        ("none", "anonymous", "submission.refused"),
    ],
)
def test_who_may_ask_without_a_signature_is_a_setting(make_pool: Any, allowed: str, tenant: str, type_: str) -> None:
    """Proves the three settings; a wrong signature is refused by each of them."""
    pool = make_pool(unsigned_submissions=allowed)
    pool.node("n1")
    pool.feed(TASKS, submission(pool, tenant))
    assert pool.types(pool.turn()) == [type_]
    pool.feed(TASKS, signed(submission(pool, tenant, task="t2", event="e2")))
    refusal(pool, pool.turn())


@pytest.mark.parametrize("raw", [b"[1]", b'{"tenant":7}', b'{"id":"t9","surprise":1}', b'"x"'])
def test_a_bad_document_without_a_signature_takes_no_id(guarded: Any, raw: bytes) -> None:
    """Proves that nobody blocks an id by a specification that the door would reject."""
    guarded.feed(TASKS, record(guarded, TaskSubmitted(raw=raw), "default/t9"))
    refusal(guarded, guarded.turn())
    assert guarded.model.tasks == {}
