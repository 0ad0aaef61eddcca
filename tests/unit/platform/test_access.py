"""How a process logs in: halves are refused, secrets have no place in a URL, and the clear is for loopback."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from evenflow.core.errors import FieldRefused, Unavailable
from evenflow.hosting.surroundings import HostSettings
from evenflow.platform.security.access import Access, check_door
from evenflow.platform.security.kafka_login import client_security, why_not
from evenflow.platform.settings import load_settings, shown

WORD = "hush-hush-hush"


@pytest.mark.parametrize(
    ("field", "url"),
    [
        ("log", f"kafka://me:{WORD}@127.0.0.1:9092"),
        ("live", f"redis://:{WORD}@127.0.0.1/0"),
        ("live", f"redis+cluster://me:{WORD}@127.0.0.1:1,127.0.0.1:2"),
        ("documents", f"mongodb://me:{WORD}@127.0.0.1/evenflow"),
        ("objects", f"s3://b?secret_access_key={WORD}"),
        ("objects", f"s3://b?endpoint=http%3A%2F%2Fme%3A{WORD}%40127.0.0.1%3A9000"),
        ("objects", f"s3://b?sse_customer_key_base64={WORD}"),
        ("live", f"redis://:pa/{WORD}@127.0.0.1/0"),
        ("live", f"redis://:pa?{WORD}@127.0.0.1/0"),
        ("live", f"redis://127.0.0.1/0?pass%77ord={WORD}"),
        ("log", f"KAFKAS://me:pa/{WORD}@127.0.0.1:9092"),
        ("documents", f"mongodb://me%3A{WORD}@127.0.0.1/evenflow"),
        ("documents", f"mongodb://127.0.0.1/?appname=a;tlsCertificateKeyFilePassword={WORD}"),
        ("documents", f"mongodb://127.0.0.1/?authMechanismProperties=AWS_SESSION_TOKEN:{WORD}"),
    ],
)
def test_a_url_with_a_secret_is_refused_with_the_setting_to_use(field: str, url: str) -> None:
    """Proves that no URL that is shown or logged can hold a password, and that the message does not repeat it."""
    with pytest.raises(FieldRefused) as refusal:
        HostSettings(**{field: url}).access()
    assert refusal.value.path == field
    assert WORD not in refusal.value.message
    assert "environment" in refusal.value.message or f"{field}_password_file" in refusal.value.message


@pytest.mark.parametrize(
    ("field", "url", "way"),
    [
        ("log", "kafka://10.0.0.7:9092", "log_tls"),
        ("log", "kafka://127.0.0.1:9092,broker-2:9092?replication=3", "log_tls"),
        ("live", "redis://cache:6379/0", "rediss"),
        ("live", "redis+cluster://127.0.0.1:1,10.0.0.2:2", "rediss"),
        ("documents", "mongodb://db/evenflow", "documents_ca_file"),
        ("documents", "mongodb://[::1]:1,[fd00::1]:27017/evenflow?tls=false", "documents_ca_file"),
        ("objects", "s3://b?endpoint=http://store:9000", "https://"),
        ("log", "kafka://127.0.0.1.example.org:9092", "log_tls"),
        ("log", "kafka://0.0.0.0:9092", "log_tls"),
        ("log", "kafka://127.0.0.1@broker:9092", "log_tls"),
        ("live", "redis://cache#@127.0.0.1/0", "rediss"),
        ("live", "redis://[::ffff:10.0.0.1]/0", "rediss"),
        ("documents", "mongodb+srv://db.example.org/evenflow?tls=false", "documents_ca_file"),
        ("documents", "mongodb://db/evenflow?tls=true&ssl=false", "documents_ca_file"),
        ("documents", "mongodb://db/evenflow?tls=true;tls=false", "documents_ca_file"),
        ("objects", "s3://b?endpoint=HTTP://store:9000", "https://"),
        ("objects", "s3://b?aws_endpoint_url=http%3A//store:9000", "https://"),
    ],
)
def test_a_server_beyond_loopback_is_refused_in_the_clear(field: str, url: str, way: str) -> None:
    """Proves that leaving the machine without TLS takes a setting that says so."""
    with pytest.raises(FieldRefused, match=way) as refusal:
        HostSettings(**{field: url}).access()
    assert "plaintext_beyond_loopback" in refusal.value.message
    assert HostSettings(**{field: url}, plaintext_beyond_loopback=True).access()[field].field == field


@pytest.mark.parametrize(
    ("field", "url"),
    [
        ("live", "rediss://cache/0?ssl_cert_reqs=none"),
        ("live", "rediss://cache/0?ssl_check_hostname=False"),
        ("documents", "mongodb://db/evenflow?tls=true&tlsInsecure=true"),
        ("documents", "mongodb://db/evenflow?tls=true&tlsAllowInvalidCertificates=true"),
        ("documents", "mongodb+srv://db/evenflow?tlsallowinvalidhostnames=true"),
        ("objects", "s3://b?endpoint=https://store&allow_invalid_certificates=true"),
        ("objects", "s3://b?allow_http=true"),
    ],
)
def test_a_url_can_not_have_any_certificate_believed(field: str, url: str) -> None:
    """Proves that TLS always means a believed certificate with the server's name in it."""
    with pytest.raises(FieldRefused, match="keeps TLS from checking"):
        HostSettings(**{field: url}, plaintext_beyond_loopback=True).access()


@pytest.mark.parametrize(
    "settings",
    [
        {"log": "kafka://b:9092", "log_tls": True},
        {"log": "kafka://localhost:9092,127.8.0.1:1,[::1]:2"},
        {"live": "rediss://cache/0"},
        {"documents": "mongodb+srv://db.example.org/evenflow"},
        {"documents": "mongodb://db/evenflow?replicaSet=r&tls=true"},
        {"documents": "mongodb://db/evenflow", "documents_ca_file": "ca.pem"},
        {"objects": "s3://bucket"},
        {"objects": "s3://b?endpoint=https://store"},
    ],
)
def test_tls_and_loopback_need_no_word(settings: dict[str, object]) -> None:
    """Proves that what is safe is not refused."""
    HostSettings(**settings).access()


@pytest.mark.parametrize(
    ("field", "url"),
    [
        ("log", f"kafkas://{WORD}"),
        ("log", WORD),
        ("log", f"kafka://127.0.0.1:1?user={WORD}"),
        ("log", "kafka://127.0.0.1:1?replication=0"),
        ("documents", f"mysql://127.0.0.1/{WORD}"),
        ("live", f"REDIS://cache/{WORD}"),
        ("objects", f"gs://bucket/{WORD}"),
        ("objects", WORD),
    ],
)
def test_a_url_of_no_known_kind_is_refused_before_anything_is_opened(field: str, url: str) -> None:
    """Proves that --check-config finds it, and that the URL is not repeated: there may be a secret in it."""
    with pytest.raises(FieldRefused) as refusal:
        HostSettings(**{field: url}, plaintext_beyond_loopback=True).access()
    assert refusal.value.path == field
    assert WORD not in refusal.value.message


def test_half_a_login_is_refused(tmp_path: Path) -> None:
    """Proves that a forgotten half is named."""
    with pytest.raises(FieldRefused, match="log_password: is missing, though log_user is given"):
        HostSettings(log_user="me").access()
    with pytest.raises(FieldRefused, match="live_user: is missing"):
        HostSettings(live_password=SecretStr(WORD)).access()
    with pytest.raises(FieldRefused, match="log_certificate_file: is missing"):
        HostSettings(log_key_file=tmp_path / "key.pem").access()


def test_a_password_comes_from_a_file_and_is_never_shown(tmp_path: Path) -> None:
    """Proves that settings as people see them hold no secret."""
    (tmp_path / "word").write_text(WORD + "\n")
    environment = {
        "EVENFLOW_HOST_LOG": "kafka://127.0.0.1:1",
        "EVENFLOW_HOST_LOG_USER": "me",
        "EVENFLOW_HOST_LOG_PASSWORD_FILE": str(tmp_path / "word"),
    }
    host = load_settings(HostSettings, "host", environment=environment)
    login = host.access()["log"]
    assert client_security(login, None) == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "me",
        "sasl_plain_password": WORD,
    }
    assert WORD not in f"{shown(host)} {host!r} {login!r}"


def test_a_file_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    """Proves that a wrong file is told from one that is not there (yet)."""
    (tmp_path / "ca.pem").write_text("nothing of the kind")
    with pytest.raises(FieldRefused, match="live_ca_file"):
        Access("live", ca_file=tmp_path / "ca.pem").context()
    with pytest.raises(Unavailable, match="live_ca_file"):
        Access("live", ca_file=tmp_path / "absent.pem").context()


def test_what_the_client_did_not_explain_is_passed_on() -> None:
    """Proves that an unknown reason is not swallowed, and that the likely ones are hinted at."""
    said = why_not(['Unable connect to "127.0.0.1:1": [Errno 71] Odd'], Access("log"))
    assert "Errno 71" in said
    assert "log_tls" in said
    assert "log_user" in said


def test_the_door_is_checked_before_the_host_is_asked() -> None:
    """Proves that a name that looks like loopback is not taken for it."""
    with pytest.raises(FieldRefused):
        check_door("redis://localhost.example.org/0", Access("live"), plaintext_beyond_loopback=False)
