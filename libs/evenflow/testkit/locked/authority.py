"""A certificate authority for tests: makes its own certificate and those of servers, valid or expired."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from evenflow.platform.clock import Clock

DAY: Final = timedelta(days=1)


class Authority:
    """Writes `ca.pem` into a folder, and for each server NAME.key, NAME.crt and NAME.pem (the key, then both)."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._now = datetime.fromtimestamp(clock.now_ms() / 1000, UTC)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Evenflow tests")])
        self._certificate = (
            self._draft(self._name, self._key, self._now - DAY, self._now + DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.KeyUsage(*(False,) * 5, True, True, False, False), critical=True)  # noqa: FBT003  signs certificates and lists
            .sign(self._key, hashes.SHA256())
        )
        self.ca_file = folder / "ca.pem"
        self.ca_file.write_bytes(self._certificate.public_bytes(Encoding.PEM))

    def issue(self, name: str, *, expired: bool = False) -> Path:
        """A server's key and certificate for loopback; the path of NAME.pem."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        until = self._now + (-DAY / 2 if expired else DAY)
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = (
            self._draft(subject, key, self._now - DAY, until)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(issuer_key, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        chain = certificate.public_bytes(Encoding.PEM) + self.ca_file.read_bytes()
        whole = self._folder / f"{name}.pem"
        for path, data in ((whole.with_suffix(".key"), secret), (whole, secret + chain)):
            path.touch(mode=0o600)
            path.write_bytes(data)
        whole.with_suffix(".crt").write_bytes(chain)
        return whole

    def _draft(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, begin: datetime, until: datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(until)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
