"""Access tokens: a bearer's proof of who asks.

    evt_<16 hex: id>_<64 hex: secret>

Whoever checks keeps a digest of the secret. The secret has 256 bits from the operating system, so its digest may be
read by anyone: it can't be tried out, and needs neither salt nor a slow function. The id finds the digest, so that the
comparison is of two digests, in constant time, however many tokens there are.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from typing import Final

SECRET_BYTES: Final = 32
ID_BYTES: Final = 8
_TOKEN: Final = re.compile(r"evt_([0-9a-f]{16})_([0-9a-f]{64})")
NOBODY: Final = "0" * 64


def new_access_token(random_bytes: Callable[[int], bytes]) -> tuple[str, str, str]:
    """(token to hand out, its id, digest to keep)."""
    token_id, secret = random_bytes(ID_BYTES).hex(), random_bytes(SECRET_BYTES).hex()
    text = f"evt_{token_id}_{secret}"
    return text, token_id, digest_of(text)


def token_id_of(text: str) -> str:
    """The id within a token; empty when the text is none."""
    match = _TOKEN.fullmatch(text)
    return match.group(1) if match is not None else ""


def digest_of(text: str) -> str:
    """What is kept of a token: 64 hexadecimal digits."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=32, person=b"evenflow-access").hexdigest()


def matches(text: str, digest: str) -> bool:
    """Whether a token has this digest; takes the same time wherever they differ."""
    return hmac.compare_digest(digest_of(text), digest)
