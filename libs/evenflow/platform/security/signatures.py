"""Signatures of receipts (Ed25519) and tags of telemetry (keyed BLAKE2b), both over the exact bytes.

A receipt frees capacity and starts a charge, so anyone must be able to verify it later from the log: a signature.
Telemetry comes by the ten thousand a second and matters for a minute: a tag with the session's key, some 2 µs.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from evenflow.core.errors import Refused
from evenflow.platform.security.canonical import SignedFields, canonical_form

SIGNATURE_BYTES: Final = 64
TAG_BYTES: Final = 16
SESSION_KEY_BYTES: Final = 32

_RECEIPT: Final = "evenflow-receipt-1"
_SUBMISSION: Final = "evenflow-submission-1"
_TELEMETRY: Final = "evenflow-telemetry-1"
_SESSION: Final = b"evenflow-session"


def sign_receipt(key: Ed25519PrivateKey, value: bytes, fields: SignedFields) -> bytes:
    """64 bytes over the value as it will be published. Raises Refused for fields that have no canonical form."""
    return key.sign(canonical_form(_RECEIPT, value, fields))


def verify_receipt(public: Ed25519PublicKey, value: bytes, fields: SignedFields, signature: bytes) -> bool:
    """True when the holder of the key signed exactly this value and these fields; never raises for bad input."""
    try:
        public.verify(signature, canonical_form(_RECEIPT, value, fields))
    except (InvalidSignature, Refused):
        return False
    return True


def submission_fields(*, signer: str, event: str, type_: str, key: str, time_ms: int) -> SignedFields:
    """What a producer signs beside the value when it asks something of a task.

    The event's id, the record's key and the writer's time are in it, so that the same value under another id or key is
    another statement, and an old one is known by its age.
    """
    return SignedFields(node=signer, session=event, sequence=time_ms, type=type_, task=key)


def sign_submission(key: Ed25519PrivateKey, value: bytes, fields: SignedFields) -> bytes:
    """64 bytes over the value as it will be published. Raises Refused for fields that have no canonical form."""
    return key.sign(canonical_form(_SUBMISSION, value, fields))


def verify_submission(public: Ed25519PublicKey, value: bytes, fields: SignedFields, signature: bytes) -> bool:
    """True when the holder of the key signed exactly this value and these fields; never raises for bad input."""
    try:
        public.verify(signature, canonical_form(_SUBMISSION, value, fields))
    except (InvalidSignature, Refused):
        return False
    return True


def derive_session_key(secret: bytes, *, node: str, session: str) -> bytes:
    """The key of one node's session, 32 bytes.

    Every gateway that holds the same secret (32 bytes) derives the same key, so gateways keep no state and a session
    may go on at another one.
    """
    if len(secret) < SESSION_KEY_BYTES:
        raise Refused(f"the gateways' secret needs at least {SESSION_KEY_BYTES} bytes")
    text = f"{len(node)}:{node}{len(session)}:{session}".encode()
    return hashlib.blake2b(text, key=secret[:64], digest_size=SESSION_KEY_BYTES, person=_SESSION).digest()


def session_tag(session_key: bytes, value: bytes, fields: SignedFields) -> bytes:
    """16 bytes over value and fields with the session's key."""
    return hashlib.blake2b(canonical_form(_TELEMETRY, value, fields), key=session_key, digest_size=TAG_BYTES).digest()


def verify_tag(session_key: bytes, value: bytes, fields: SignedFields, tag: bytes) -> bool:
    """True when the tag is right; the comparison takes the same time wherever it differs."""
    try:
        expected = session_tag(session_key, value, fields)
    except Refused:
        return False
    return hmac.compare_digest(expected, tag)
