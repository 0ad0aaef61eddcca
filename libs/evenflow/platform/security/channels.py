"""Over which addresses secrets may go, and whose certificates are trusted there."""

from __future__ import annotations

import ipaddress
import ssl
from urllib.parse import urlsplit

from evenflow.core.errors import FieldRefused


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches an address. A name other than localhost may lead anywhere."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def may_carry_secrets(url: str) -> bool:
    """Whether nobody else reads what is sent there: TLS, or this machine itself."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "https" or is_loopback(parts.hostname or "")


def authorities(path: str) -> ssl.SSLContext:
    """Trust the certificates of a PEM file, and nobody else. Raises FieldRefused."""
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "strerror", None) or "it holds none"
        raise FieldRefused("ca", f"{path} must be a readable file of certificates in PEM form: {reason}") from error
