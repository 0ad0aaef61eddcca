"""What a door needs before it may be opened to others: TLS, and for the console the first owner's token.

Plain HTTP is for loopback alone. Beyond it, tokens and join tokens would travel readable, and a console without tokens
would belong to whoever reaches it; so such a process doesn't start, and says which settings are missing.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.hosting.surroundings import HostSettings
from evenflow.platform.security.channels import is_loopback

#: Services that have an application, and the setting of the host that names its port.
DOORS: Final = {"console": "console_port", "gateway": "gateway_port"}


def check_door(name: str, host: HostSettings, service: Any) -> None:
    """Raises FieldRefused when a service's door may not be opened as it is set; other services have none."""
    check_certificate(host)
    if name not in DOORS or is_loopback(host.address) or host.published_on_loopback:
        return
    missing = []
    if not host.tls_certificate_file:
        missing.append("TLS: set tls_certificate_file and tls_key_file of the host")
    if name == "console" and not service.owner_token.get_secret_value():
        missing.append("tokens: set EVENFLOW_CONSOLE_OWNER_TOKEN_FILE, made with: openssl rand -hex 32")
    if missing:
        raise FieldRefused(
            "address", f"is {host.address}, beyond loopback; there the {name} needs {'; '.join(missing)}"
        )


def check_certificate(host: HostSettings) -> None:
    """Raises FieldRefused when the certificate or its key can't be used."""
    certificate, key = host.tls_certificate_file, host.tls_key_file
    if bool(certificate) != bool(key):
        absent = "tls_key_file" if certificate else "tls_certificate_file"
        raise FieldRefused(absent, "is missing; certificate and key go together")
    if not certificate:
        return
    for field, path in (("tls_certificate_file", certificate), ("tls_key_file", key)):
        try:
            with Path(path).open("rb"):
                pass
        except OSError as error:
            raise FieldRefused(field, f"{path} can't be read: {error.strerror}") from error
    try:
        # A key behind a passphrase would have the library ask the terminal: it gets none, and says so.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=lambda: b"")
    except (ssl.SSLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        problem = f"{certificate} and {key} are no certificate with its own key in PEM form without a passphrase"
        raise FieldRefused("tls_certificate_file", f"{problem} ({reason})") from error
