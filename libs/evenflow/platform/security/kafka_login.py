"""Logging in to Kafka: what its clients take of an `Access`, and why it did not work.

The client raises one error for everything that can go wrong with a connection and tells the reason in its log alone, so
its log is listened to while it connects.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from faststream.security import BaseSecurity, SASLScram512

from evenflow.platform.security.access import Access, tls_reason

if TYPE_CHECKING:
    import ssl

MECHANISM: Final = "SCRAM-SHA-512"
LINES_MAX: Final = 20
REASON_CHARACTERS_MAX: Final = 300


def client_security(access: Access, tls: ssl.SSLContext | None) -> dict[str, Any]:
    """Settings of aiokafka's clients."""
    protocol = ("SASL_" if access.user else "") + ("PLAINTEXT" if tls is None else "SSL")
    settings: dict[str, Any] = {"security_protocol": protocol}
    if tls is not None:
        settings["ssl_context"] = tls
    if access.user:
        settings |= {
            "sasl_mechanism": MECHANISM,
            "sasl_plain_username": access.user,
            "sasl_plain_password": access.password.get_secret_value(),
        }
    return settings


def broker_security(access: Access, tls: ssl.SSLContext | None) -> BaseSecurity | None:
    """The same for FastStream's broker."""
    if access.user:
        password = access.password.get_secret_value()
        return SASLScram512(access.user, password, ssl_context=tls, use_ssl=tls is not None)
    return None if tls is None else BaseSecurity(ssl_context=tls)


class _Hearing(logging.Handler):
    def __init__(self, said: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        if len(self._said) < LINES_MAX:
            self._said.append(record.getMessage())


@contextlib.contextmanager
def heard() -> Iterator[list[str]]:
    """What the client says while it connects."""
    said: list[str] = []
    logger, handler = logging.getLogger("aiokafka"), _Hearing(said)
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)


def why_not(said: Sequence[str], access: Access) -> str:
    """The reason for a connection that did not come about, and what to do, from what the client said."""
    text = " ".join(" ".join(said).split())
    field = access.field
    for sign, reason in (
        (
            "SaslAuthenticationFailed",
            f"it refuses {access.user}: set {field}_user and {field}_password to a user it has",
        ),
        ("UnsupportedSaslMechanism", f"it offers no {MECHANISM}: enable it in sasl.enabled.mechanisms"),
        ("Connect call failed", "nobody listens there"),
    ):
        if sign in text:
            return reason
    if (reason_of_tls := tls_reason(text, field)) is not None:
        return reason_of_tls
    hint = "" if access.over_tls else f"; if that port speaks TLS, set {field}_tls"
    hint += "" if access.user else f"; if it asks for a user, set {field}_user and {field}_password"
    return f"the client says: {text[:REASON_CHARACTERS_MAX] or 'nothing'}{hint}"
