"""What the gateway keeps among the documents: nodes' public keys, and the secret that session keys come from.

Both are remembered, not decided here: a wiped store is filled again from the nodes' states on the log, and a node that
never registered shows its token anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from evenflow.core.errors import Conflict, Unavailable
from evenflow.platform.security.identity import public_key
from evenflow.platform.stores.ports import Documents

IDENTITIES: Final = "identities"
SECRETS: Final = "gateway_secrets"
ONLY: Final = "sessions"


class Identities:
    """Public keys by node, with a memory of those seen; `registered` are the keys that inventory's states name."""

    def __init__(self, documents: Documents, count_max: int, registered: Mapping[str, str]) -> None:
        self._documents = documents
        self._count_max = count_max
        self._registered = registered
        self._known: dict[str, Ed25519PublicKey] = {}

    async def of(self, node: str) -> Ed25519PublicKey | None:
        """The node's key, None when it never joined; raises Unavailable when that can't be told."""
        found = self._known.get(node)
        if found is not None:
            return found
        stored = await self._documents.get(IDENTITIES, node)
        if stored is not None:
            return self._remember(node, str(stored.body["public_key"]))
        text = self._registered.get(node)
        return self._remember(node, text) if text else None

    async def join(self, node: str, text: str, *, at_ms: int) -> Ed25519PublicKey:
        """Remember a new node's key; the key that was there first counts."""
        try:
            await self._documents.put(IDENTITIES, node, {"public_key": text, "joined_ms": at_ms}, expect=0)
        except Conflict:
            stored = await self._documents.get(IDENTITIES, node)
            if stored is None:
                raise Unavailable(f"the identity of {node} can't be settled now") from None
            return self._remember(node, str(stored.body["public_key"]))
        return self._remember(node, text)

    def _remember(self, node: str, text: str) -> Ed25519PublicKey:
        while len(self._known) >= self._count_max:
            del self._known[next(iter(self._known))]
        key = self._known[node] = public_key(text)
        return key


async def session_secret(documents: Documents, random_bytes: Callable[[int], bytes]) -> bytes:
    """The pool's secret: made by whichever gateway comes first."""
    stored = await documents.get(SECRETS, ONLY)
    if stored is None:
        try:
            await documents.put(SECRETS, ONLY, {"secret": random_bytes(32).hex()}, expect=0)
        except Conflict:
            pass
        stored = await documents.get(SECRETS, ONLY)
    if stored is None:
        raise Unavailable("the gateway's secret can't be kept")
    return bytes.fromhex(str(stored.body["secret"]))
