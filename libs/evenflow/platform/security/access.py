"""How a process logs in to a server: who it is, whom it believes, and where it may speak in the clear.

An `Access` belongs to one server. Passwords come as secrets; certificates are named by their files. TLS is 1.2 or
newer, and the server's name must stand in its certificate.
"""

from __future__ import annotations

import ipaddress
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, unquote_plus

from pydantic import SecretStr

from evenflow.core.errors import FieldRefused, Unavailable

NOBODY: Final = SecretStr("")
#: Schemes that reach a server, and whether they say TLS by themselves.
_SAYS_TLS: Final = {
    "kafka": False,
    "redis": False,
    "redis+cluster": False,
    "rediss": True,
    "rediss+cluster": True,
    "mongodb": False,
    "mongodb+srv": True,
}
#: A password may hold what ends a host elsewhere; paths of files begin with a slash and hold none.
_PASSWORD: Final = re.compile(r"://(?!/)[^@]*:[^@]*@")
_SECRET_OPTIONS: Final = re.compile(r"secret|passw|token|access_key|customer_key", re.IGNORECASE)
_SECRET_VALUES: Final = re.compile(r"session_token:", re.IGNORECASE)
#: Options by which a client would believe any certificate, or go without.
_UNVERIFIED: Final = re.compile(r"^ssl_|insecure|allow_?invalid|allow_http|^tlsdisable", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Access:
    """Credentials for one server; nothing given = nobody, in the clear unless the URL itself says TLS.

    `ca_file` holds the certificates (PEM) that are believed; None = the system's. A certificate and its key log in
    where the server asks for one. `field` is the setting of the server's URL, for messages: log, documents and so on.
    """

    field: str
    user: str = ""
    password: SecretStr = NOBODY
    tls: bool = False
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None

    @property
    def over_tls(self) -> bool:
        """Whether these credentials ask for TLS; a file of certificates does."""
        return self.tls or self.ca_file is not None or self.certificate_file is not None

    def context(self) -> ssl.SSLContext | None:
        """What TLS is spoken with; None in the clear.

        Raises FieldRefused for a file that holds no certificate, Unavailable for one that can't be read.
        """
        if not self.over_tls:
            return None
        context = ssl.create_default_context()
        if self.ca_file is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # believes the named ones alone
            self._load(f"{self.field}_ca_file", self.ca_file, context)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.certificate_file is not None:
            self._load(f"{self.field}_certificate_file", self.certificate_file, context)
        return context

    def _load(self, name: str, path: Path, context: ssl.SSLContext) -> None:
        try:
            if name.endswith("ca_file"):
                context.load_verify_locations(path)
            else:
                context.load_cert_chain(path, self.key_file)
        except ssl.SSLError as error:
            raise FieldRefused(name, f"{path} is not what it should be, PEM: {error.reason}") from error
        except OSError as error:
            raise Unavailable(f"{name}: {path} can't be read: {error.strerror}") from error

    def check(self) -> None:
        """Raises FieldRefused for halves: a password without a user, a key without its certificate."""
        user, password = f"{self.field}_user", f"{self.field}_password"
        if bool(self.user) != bool(self.password.get_secret_value()):
            missing, given = (password, user) if self.user else (user, password)
            raise FieldRefused(missing, f"is missing, though {given} is given")
        if self.key_file is not None and self.certificate_file is None:
            raise FieldRefused(f"{self.field}_certificate_file", f"is missing, though {self.field}_key_file is given")


def check_door(url: str, access: Access, *, plaintext_beyond_loopback: bool) -> None:
    """Raises FieldRefused for a URL that holds a secret, and for one that leaves this machine without TLS."""
    field = access.field
    if _PASSWORD.search(url) or _PASSWORD.search(unquote(url)):
        raise FieldRefused(
            field, f"may not hold a password: set {field}_user and {field}_password (or {field}_password_file)"
        )
    for name, value in _options(url):
        if _SECRET_OPTIONS.search(name) or _SECRET_VALUES.search(value):
            raise FieldRefused(field, f"may not hold {name[:80]!a}: keys of an object store come from the environment")
        if _UNVERIFIED.search(name):
            way_out = f"name the authority in {field}_ca_file" if field != "objects" else "let the system believe it"
            raise FieldRefused(field, f"may not hold {name[:80]!a}, which keeps TLS from checking: {way_out}")
    access.check()
    beyond = [host for host in clear_hosts(url, access) if not _is_loopback(host)]
    if beyond and not plaintext_beyond_loopback:
        raise FieldRefused(
            field,
            f"would go to {beyond[0][:255]} in the clear, which is for loopback only: {_way_to_tls(url, field)}, or "
            "set plaintext_beyond_loopback where the network itself is trusted",
        )


def _way_to_tls(url: str, field: str) -> str:
    scheme = url.partition(":")[0]
    if scheme == "s3":
        return "write https:// in its endpoint"
    if scheme.startswith("redis"):
        return f"write rediss in the place of redis, and {field}_ca_file for a CA of your own"
    return f"set {field}_tls" if scheme == "kafka" else f"set {field}_ca_file, or tls=true in the URL"


def tls_reason(text: str, field: str) -> str | None:
    """What is wrong with a certificate or with speaking TLS at all, and what to do, from a client's error; or None."""
    for sign, reason in (
        ("certificate has expired", "its certificate has expired: give it a new one; this goes on then"),
        ("not yet valid", "its certificate is not valid yet: compare the clocks of both machines"),
        ("IP address mismatch", "its certificate names another address: use one of those in its subjectAltName"),
        ("Hostname mismatch", "its certificate names another host: use one of those in its subjectAltName"),
        ("CERTIFICATE_VERIFY_FAILED", f"its certificate is of an unknown CA: name that in {field}_ca_file"),
        ("CERTIFICATE_REQUIRED", f"it asks for a certificate: set {field}_certificate_file and {field}_key_file"),
        ("WRONG_VERSION_NUMBER", "it does not speak TLS on this port: use its TLS port, or log in without TLS"),
    ):
        if sign in text:
            return reason
    return None


def clear_hosts(url: str, access: Access) -> list[str]:
    """Hosts that the URL reaches without TLS; none when it stays in the process or speaks TLS."""
    scheme, _, rest = url.partition("://")
    options = _options(url)
    if scheme == "s3":  # its endpoint has several names
        endpoints = [value for _, value in options if value.lower().startswith("http://")]
        return [_host(_authority(value.partition("://")[2])) for value in endpoints]
    if scheme not in _SAYS_TLS or access.over_tls:
        return []
    said = {value.lower() for name, value in options if name.lower() in ("tls", "ssl")}
    says_tls = "true" in said if scheme == "mongodb" else _SAYS_TLS[scheme]
    if says_tls and "false" not in said:
        return []
    return [_host(place) for place in _authority(rest).split(",")]


def _options(url: str) -> list[tuple[str, str]]:
    """Every option of a URL, as each of the clients may read it: some take a semicolon for an ampersand."""
    pairs = (pair.partition("=") for pair in re.split("[&;]", url.partition("?")[2]))
    return [(unquote_plus(name), unquote_plus(value)) for name, _, value in pairs]


def _authority(rest: str) -> str:
    """What stands between `://` and the path, without a user."""
    return re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]


def _host(place: str) -> str:
    if place.startswith("["):
        return place[1:].partition("]")[0]
    return place.partition(":")[0]


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
