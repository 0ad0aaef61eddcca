"""Signing records that ask something of a task, as they go out."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evenflow.events.envelope import from_headers
from evenflow.platform.broker.codec import Encoded
from evenflow.platform.security.signatures import sign_submission, submission_fields


class Sealer:
    """Signs in a signer's name. The signer's public key must be known to placement: `evenflow signers add`."""

    def __init__(self, signer: str, key: Ed25519PrivateKey) -> None:
        self.signer = signer
        self._key = key

    def __call__(self, record: Encoded) -> Encoded:
        """The record with the headers `signer` and `signature`. Raises Refused when its key or id is not ASCII."""
        envelope = from_headers(record.headers)
        fields = submission_fields(
            signer=self.signer,
            event=envelope.id,
            type_=envelope.type,
            key=record.key.decode(),
            time_ms=envelope.time_ms,
        )
        signature = sign_submission(self._key, record.value or b"", fields).hex()
        headers = [*record.headers, ("signer", self.signer.encode()), ("signature", signature.encode())]
        return Encoded(record.topic, record.key, record.value, headers)
