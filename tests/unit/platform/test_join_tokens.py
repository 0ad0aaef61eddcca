"""Join tokens: once, for one holder, for a time, and nothing kept that could be shown again."""

from __future__ import annotations

import json
import random

import pytest

from evenflow.core.errors import FieldRefused, Unavailable
from evenflow.platform.security.join_tokens import (
    COLLECTION,
    TokenRefused,
    issue_token,
    redeem_token,
    revoke_token,
    system_bytes,
)
from evenflow.platform.stores.memory import MemoryDocuments
from evenflow.platform.stores.ports import Document, Stored

GRANTS = {"owner": "acme", "site": "east"}


async def _issue(documents: MemoryDocuments, *, lifetime_ms: int = 1000) -> str:
    return await issue_token(
        documents, random.Random(1).randbytes, now_ms=5_000, lifetime_ms=lifetime_ms, grants=GRANTS
    )


async def _refused(documents: MemoryDocuments, token: str, *, now_ms: int = 5_001, holder: str = "h1") -> None:
    before = [row async for row in documents.scan(COLLECTION)]
    with pytest.raises(TokenRefused):
        await redeem_token(documents, token, now_ms=now_ms, holder=holder)
    assert [row async for row in documents.scan(COLLECTION)] == before


async def test_a_token_is_used_once_by_one_holder() -> None:
    """The first holder gets the grants, every other is refused."""
    documents = MemoryDocuments()
    token = await _issue(documents)
    assert await redeem_token(documents, token, now_ms=5_001, holder="h1") == GRANTS
    await _refused(documents, token, holder="h2")


async def test_the_same_holder_may_ask_again() -> None:
    """Its first answer may have been lost on the way; the record does not change."""
    documents = MemoryDocuments()
    token = await _issue(documents)
    documents.faults.lose_answers(1)
    with pytest.raises(Unavailable):
        await redeem_token(documents, token, now_ms=5_001, holder="h1")
    assert await redeem_token(documents, token, now_ms=5_002, holder="h1") == GRANTS
    row = await documents.get(COLLECTION, token.split("_")[1])
    assert row is not None
    assert (row.version, row.body["used_ms"]) == (2, 5_001)


@pytest.mark.parametrize("other", ["h1", "h2"])
async def test_of_two_at_once_only_one_holder_wins(other: str) -> None:
    """The conditional write decides a race between reading and writing; the same holder twice is one holder."""
    documents = MemoryDocuments()
    token = await _issue(documents)
    raced = False

    class Racing(MemoryDocuments):
        async def get(self, collection: str, id: str) -> Stored | None:
            return await documents.get(collection, id)

        async def put(self, collection: str, id: str, body: Document, *, expect: int | None = None) -> int:
            nonlocal raced
            if not raced:
                raced = True
                await redeem_token(documents, token, now_ms=5_001, holder=other)
            return await documents.put(collection, id, body, expect=expect)

    if other == "h1":
        assert await redeem_token(Racing(), token, now_ms=5_001, holder="h1") == GRANTS
    else:
        with pytest.raises(TokenRefused):
            await redeem_token(Racing(), token, now_ms=5_001, holder="h1")
    row = await documents.get(COLLECTION, token.split("_")[1])
    assert row is not None
    assert row.body["holder"] == other


async def test_a_token_ends_at_its_expiry() -> None:
    """The last millisecond counts, the next does not, not even for its own holder."""
    documents = MemoryDocuments()
    token = await _issue(documents, lifetime_ms=1000)
    await _refused(documents, token, now_ms=6_000)
    assert await redeem_token(documents, token, now_ms=5_999, holder="h1") == GRANTS
    await _refused(documents, token, now_ms=6_000)


async def test_wrong_tokens_are_all_refused_in_the_same_words() -> None:
    """Unknown id, wrong secret, wrong form, no holder: the answer teaches nothing and nothing changes."""
    documents = MemoryDocuments()
    token = await _issue(documents)
    prefix, token_id, secret = token.split("_")
    wrong_secret = ("0" if secret[0] != "0" else "1") + secret[1:]
    for wrong in (
        f"{prefix}_{token_id}_{wrong_secret}",
        f"{prefix}_{'0' * 16}_{secret}",
        token.upper(),
        token + "\n",
        "",
        token[:-1],
    ):
        await _refused(documents, wrong)
    await _refused(documents, token, holder="")
    assert await redeem_token(documents, token, now_ms=5_001, holder="h1") == GRANTS


async def test_a_revoked_or_forgotten_token_is_refused() -> None:
    """Losing the store loses tokens on the safe side."""
    documents = MemoryDocuments()
    token = await _issue(documents)
    assert await revoke_token(documents, token.split("_")[1])
    assert not await revoke_token(documents, token.split("_")[1])
    await _refused(documents, token)


async def test_the_store_holds_no_secret() -> None:
    """Who reads the store can't make the token from it."""
    documents = MemoryDocuments()
    token = await _issue(documents)
    rows = [row async for row in documents.scan(COLLECTION)]
    assert token.split("_")[2] not in json.dumps([row.body for row in rows]) + "".join(row.id for row in rows)


async def test_a_lifetime_has_limits() -> None:
    """At least a millisecond, at most thirty days."""
    for lifetime_ms in (0, -1, 30 * 86_400_000 + 1):
        with pytest.raises(FieldRefused, match="lifetime_ms"):
            await _issue(MemoryDocuments(), lifetime_ms=lifetime_ms)


def test_production_tokens_come_from_the_operating_system() -> None:
    """Two draws differ and have the asked length."""
    assert len(system_bytes(32)) == 32
    assert system_bytes(32) != system_bytes(32)
