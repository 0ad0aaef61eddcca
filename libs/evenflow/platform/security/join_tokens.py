"""One-time join tokens: a node shows one when it first registers its public key.

    evj_<16 hex: id>_<64 hex: secret>

The store keeps a digest of the secret, the expiry, what the token grants, and who used it. Using it is one conditional
write, so two nodes can't both. The same holder (a node with the fingerprint of its key) may show it again, because the
answer to its first try may have been lost; nobody else can gain by that.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

from evenflow.core.errors import Conflict, FieldRefused, Refused
from evenflow.platform.stores.ports import Documents

RandomBytes = Callable[[int], bytes]

COLLECTION: Final = "join_tokens"
SECRET_BYTES: Final = 32
ID_BYTES: Final = 8
LIFETIME_MS_MAX: Final = 30 * 86_400_000

_TOKEN: Final = re.compile(r"evj_([0-9a-f]{16})_([0-9a-f]{64})")
_NOBODY: Final = "0" * 64


class TokenRefused(Refused):
    """Unknown, wrong, expired or used: the answer does not say which, so that guessing teaches nothing."""

    code = "token-refused"

    def __init__(self) -> None:
        super().__init__("the join token is unknown, expired or used; make a new one for this node")


class TokenUsed(Conflict):
    """A node has joined with it, so that there is nothing left to take back."""

    code = "token-used"

    def __init__(self) -> None:
        super().__init__("a node has joined with this join token already")


def system_bytes(count: int) -> bytes:
    """Random bytes of the operating system."""
    return secrets.token_bytes(count)


def new_token(random_bytes: RandomBytes) -> tuple[str, str, str]:
    """(token to hand out, its id, digest to keep)."""
    token_id, secret = random_bytes(ID_BYTES).hex(), random_bytes(SECRET_BYTES).hex()
    return f"evj_{token_id}_{secret}", token_id, _digest(token_id, secret)


async def issue_token(
    documents: Documents,
    random_bytes: RandomBytes,
    *,
    now_ms: int,
    lifetime_ms: int,
    grants: Mapping[str, Any],
) -> str:
    """Keep a new token and return its text, which is never shown again. `grants` is handed back when it is used."""
    if not 0 < lifetime_ms <= LIFETIME_MS_MAX:
        raise FieldRefused("lifetime_ms", f"must be 1 to {LIFETIME_MS_MAX} (30 days)")
    token, token_id, digest = new_token(random_bytes)
    body = {"digest": digest, "expires_ms": now_ms + lifetime_ms, "grants": dict(grants), "holder": "", "used_ms": 0}
    await documents.put(COLLECTION, token_id, body, expect=0)
    return token


async def redeem_token(documents: Documents, token: str, *, now_ms: int, holder: str) -> dict[str, Any]:
    """Use the token for `holder` and return what it grants. Raises TokenRefused; nothing is changed then."""
    match = _TOKEN.fullmatch(token)
    if match is None:
        raise TokenRefused
    token_id, secret = match.groups()
    stored = await documents.get(COLLECTION, token_id)
    body: Mapping[str, Any] = stored.body if stored is not None else {"digest": _NOBODY, "expires_ms": 0, "holder": ""}
    right = hmac.compare_digest(_digest(token_id, secret), str(body["digest"]))
    if stored is None or not right or now_ms >= body["expires_ms"] or body["holder"] not in ("", holder) or not holder:
        raise TokenRefused
    if not body["holder"]:
        try:
            await documents.put(
                COLLECTION, token_id, {**body, "holder": holder, "used_ms": now_ms}, expect=stored.version
            )
        except Conflict:
            # Another try came between: it may have been this holder's own, so the record decides.
            now = await documents.get(COLLECTION, token_id)
            if now is None or now.body["holder"] != holder:
                raise TokenRefused from None
    return dict(body["grants"])


async def revoke_token(documents: Documents, token_id: str) -> bool:
    """Remove an unused token; True when there was one. Raises TokenUsed when a node has joined with it."""
    stored = await documents.get(COLLECTION, token_id)
    if stored is not None and not stored.body["holder"]:
        # It ends by the same conditional write as a use, so that of both at once one alone holds.
        with contextlib.suppress(Conflict):
            await documents.put(COLLECTION, token_id, {**stored.body, "expires_ms": 0}, expect=stored.version)
            return await documents.delete(COLLECTION, token_id)
        stored = await documents.get(COLLECTION, token_id)
    if stored is not None and stored.body["holder"]:
        raise TokenUsed
    return False


def _digest(token_id: str, secret: str) -> str:
    return hashlib.blake2b(f"{token_id}:{secret}".encode(), digest_size=32, person=b"evenflow-join").hexdigest()
