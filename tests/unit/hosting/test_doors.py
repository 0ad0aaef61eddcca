"""Doors beyond loopback: refused without TLS and tokens, served over HTTPS with them."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from evenflow.agent.clients.exchange import HttpRequest
from evenflow.agent.clients.http import HttpExchange
from evenflow.cli import connection, main
from evenflow.client.api import AsyncClient, Client
from evenflow.client.calls import condition, listing
from evenflow.client.errors import Unreachable
from evenflow.console.settings import ConsoleSettings
from evenflow.core.errors import FieldRefused, Unavailable
from evenflow.gateway.settings import GatewaySettings
from evenflow.hosting.composition import Composition
from evenflow.hosting.doors import check_door
from evenflow.hosting.single import configure
from evenflow.hosting.surroundings import HostSettings, Surroundings
from evenflow.platform.security.channels import is_loopback, may_carry_secrets

OWNER_TOKEN = "o" * 40


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate of 127.0.0.1 that vouches for itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "evenflow test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(made.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return str(folder / "cert.pem"), str(folder / "key.pem")


def host(**settings: Any) -> HostSettings:
    return HostSettings(documents="memory:", live="memory:", **settings)


@pytest.mark.parametrize(
    "address", ["0.0.0.0", "10.1.2.3", "::", "example.org", "localhost.example.org", "127.0.0.1.x"]
)
def test_a_console_beyond_loopback_needs_tls_and_tokens(certificate, address):
    """Proves that each missing half is named with the setting that mends it, and that both together are enough."""
    pair = {"tls_certificate_file": certificate[0], "tls_key_file": certificate[1]}
    open_host, owned = host(address=address), ConsoleSettings(owner_token=OWNER_TOKEN)
    with pytest.raises(FieldRefused, match=r"tls_certificate_file.*EVENFLOW_CONSOLE_OWNER_TOKEN_FILE"):
        check_door("console", open_host, ConsoleSettings())
    with pytest.raises(FieldRefused, match="tls_certificate_file"):
        check_door("console", open_host, owned)
    with pytest.raises(FieldRefused, match="EVENFLOW_CONSOLE_OWNER_TOKEN_FILE"):
        check_door("console", open_host.with_changes(**pair), ConsoleSettings())
    check_door("console", open_host.with_changes(**pair), owned)
    with pytest.raises(FieldRefused, match="tls_certificate_file"):
        check_door("gateway", open_host, GatewaySettings())
    check_door("gateway", open_host.with_changes(**pair), GatewaySettings())
    check_door("placement", open_host, None)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_on_loopback_nothing_is_asked_for(address):
    """Proves that the embedded profile stays as it is."""
    assert is_loopback(address)
    check_door("console", host(address=address), ConsoleSettings())


def test_a_wrong_certificate_is_refused_by_its_setting(certificate, tmp_path):
    """Proves that an absent half, an absent file, another key and plain rubbish are told before anything is opened."""
    rubbish = tmp_path / "rubbish.pem"
    rubbish.write_text("no certificate")
    for settings, field in (
        ({"tls_certificate_file": certificate[0]}, "tls_key_file"),
        ({"tls_key_file": certificate[1]}, "tls_certificate_file"),
        ({"tls_certificate_file": certificate[0], "tls_key_file": "nowhere.pem"}, "tls_key_file"),
        ({"tls_certificate_file": str(rubbish), "tls_key_file": certificate[1]}, "tls_certificate_file"),
        ({"tls_certificate_file": certificate[0], "tls_key_file": str(rubbish)}, "tls_certificate_file"),
    ):
        with pytest.raises(FieldRefused) as caught:
            check_door("console", host(**settings), ConsoleSettings())
        assert caught.value.path == field


def test_run_checks_the_door_before_it_opens_anything(monkeypatch):
    """Proves that `evenflow run console --check-config` says the same as the start would."""
    monkeypatch.setenv("EVENFLOW_HOST_ADDRESS", "0.0.0.0")
    with pytest.raises(FieldRefused, match="beyond loopback"):
        configure("console", None)


@pytest.fixture
async def served(certificate) -> Any:
    """A console and a gateway in one process, over HTTPS and with tokens."""
    settings = host(console_port=0, gateway_port=0, tls_certificate_file=certificate[0], tls_key_file=certificate[1])
    composition = Composition(Surroundings(settings.with_changes(level="error")))
    composition.add_doors("console", "gateway")
    composition.add_service("gateway")
    composition.add_service("console", ConsoleSettings(owner_token=OWNER_TOKEN))
    await composition.start()
    yield composition
    await composition.stop()


async def ready(client: AsyncClient) -> None:
    for _ in range(200):
        try:
            await client.send(condition("ready"))
        except Exception:  # noqa: BLE001  whatever it is: it is asked again
            await asyncio.sleep(0.02)
        else:
            return
    pytest.fail("the console never served")


async def test_the_client_speaks_https_with_its_token(served, certificate):
    """Proves the whole way: certificate checked, token taken; another authority and plain HTTP get nothing."""
    url = served.servers["console"].url
    assert url.startswith("https://127.0.0.1:")
    async with AsyncClient(url, token=OWNER_TOKEN, ca=certificate[0]) as client:
        await ready(client)
        assert await client.send(listing("tokens")) == []
    async with AsyncClient(url, token=OWNER_TOKEN) as stranger:
        with pytest.raises(Unreachable, match=r"(?i)certificate"):
            await stranger.send(listing("tokens"))
    async with AsyncClient(url.replace("https", "http"), token=OWNER_TOKEN) as plain:
        with pytest.raises(Unreachable):
            await plain.send(listing("tokens"))


async def test_an_agent_reaches_its_gateway_over_https(served, certificate):
    """Proves that agents check the gateway's certificate too."""
    url = served.servers["gateway"].url
    for ca, reached in ((certificate[0], True), ("", False)):
        exchange = HttpExchange(url, ca)
        try:
            if reached:
                assert (await exchange(HttpRequest("GET", "/healthz", {}, b""), timeout_ms=5_000)).status == 200
            else:
                with pytest.raises(Unavailable, match=r"(?i)certificate"):
                    await exchange(HttpRequest("GET", "/healthz", {}, b""), timeout_ms=5_000)
        finally:
            await exchange.close()


@pytest.mark.parametrize(
    "url", ["http://example.org", "http://10.0.0.1:7070", "http://localhost.example.org", "http://[::"]
)
def test_a_token_never_goes_over_plain_http_beyond_this_machine(url):
    """Proves that client and agent refuse before they send anything."""
    assert not may_carry_secrets(url)
    with pytest.raises(FieldRefused, match="https://"):
        Client(url, token=OWNER_TOKEN)
    with pytest.raises(FieldRefused, match="https://"):
        HttpExchange(url)


def test_a_file_without_certificates_is_refused(tmp_path):
    """Proves that a wrong --ca is told by name, not as a server that does not answer."""
    (tmp_path / "ca.pem").write_text("nothing")
    for path in (tmp_path / "ca.pem", tmp_path / "absent.pem"):
        with pytest.raises(FieldRefused, match="certificates in PEM form"):
            Client("https://localhost", ca=str(path))


# --- the command line ---------------------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch) -> Iterator[list[httpx.Request]]:
    """What a command sends, answered with an empty list."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"items": []})

    plain = httpx.Client

    def client(**settings: Any) -> httpx.Client:
        return plain(**{**settings, "transport": httpx.MockTransport(answer)})

    monkeypatch.setattr(httpx, "Client", client)
    for name in [name for name in os.environ if name.startswith("EVENFLOW_")]:
        monkeypatch.delenv(name)
    yield seen
    connection.SHOWN.token_file = connection.SHOWN.ca = ""


def ran(*arguments: str) -> int:
    try:
        main.run(list(arguments))
    except SystemExit as left:
        return int(left.code or 0)
    return 0


def test_the_command_takes_the_token_from_file_or_environment(asked, monkeypatch, tmp_path):
    """Proves both ways in, that the file is stronger, and that without either only the user's name is sent."""
    assert ran("tokens", "list") == 0
    assert "authorization" not in asked[-1].headers
    assert asked[-1].headers["x-evenflow-who"]
    monkeypatch.setenv("EVENFLOW_TOKEN", "from-environment")
    assert ran("tokens", "list") == 0
    assert asked[-1].headers["authorization"] == "Bearer from-environment"
    (tmp_path / "token").write_text("from-file\n")
    monkeypatch.setenv("EVENFLOW_TOKEN_FILE", str(tmp_path / "token"))
    assert ran("tokens", "list") == 0
    assert asked[-1].headers["authorization"] == "Bearer from-file"


def test_a_token_file_that_is_none_stops_the_command(asked, monkeypatch, tmp_path, capsys):
    """Proves that nothing is sent with half a secret."""
    (tmp_path / "empty").write_text("\n")
    for name in ("absent", "empty"):
        monkeypatch.setenv("EVENFLOW_TOKEN_FILE", str(tmp_path / name))
        assert ran("tokens", "list", "-o", "json") == 2
        assert json.loads(capsys.readouterr().err)["path"] == "--token-file"
    assert asked == []


@pytest.mark.parametrize("span", ["30", "0d", "d", "-1d", "1w", "1.5h", "٣d"])
def test_a_wrong_span_is_refused(asked, span):
    """Proves that a token never lives for another time than was written."""
    assert ran("tokens", "issue", "--name", "n", "--role", "viewer", "--expires", span) == 2
    assert asked == []


def test_a_private_key_is_made_for_its_owner_alone(asked, tmp_path, capsys):
    """Proves that `signers new-key` shows the public half and keeps the private one from others."""
    file: Path = tmp_path / "submit.key"
    assert ran("signers", "new-key", str(file)) == 0
    assert len(capsys.readouterr().out.strip()) == 64
    assert file.stat().st_mode & 0o077 == 0
    assert ran("signers", "new-key", str(file)) != 0
    assert asked == []
