"""No secret and no unbounded value reaches a log line."""

from __future__ import annotations

import pytest

from evenflow.platform.observability.redaction import HIDDEN, hide_tokens, is_secret_key, redact, redact_text


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "db_passwd",
        "PASSPHRASE",
        "secrets",
        "clientSecret",
        "token",
        "join_token",
        "refresh-token",
        "Authorization",
        "set-cookie",
        "api_key",
        "apikey",
        "private_key",
        "session_key",
        "aws_access_key",
        "jwt",
        "dsn",
    ],
)
def test_a_field_with_a_secret_name_is_hidden_at_any_depth(key: str) -> None:
    """By name alone, whatever the value."""
    fields = redact({key: "hunter2", "outer": [{"inner": {key: ["hunter2"]}}]})
    assert fields == {key: HIDDEN, "outer": [{"inner": {key: HIDDEN}}]}


@pytest.mark.parametrize(
    "key", ["task", "token_count", "tokens_id", "passed", "key", "public_key", "tokenizer", "basis"]
)
def test_a_field_with_a_plain_name_is_shown(key: str) -> None:
    """Counting tokens or naming a key is no secret."""
    assert not is_secret_key(key)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mongodb://u:hunter2@db/x", "mongodb://u:[hidden]@db/x"),
        ("GET redis://:hunter2@h:1 failed", "GET redis://:[hidden]@h:1 failed"),
        ("sent Bearer abcdefgh.hunter2", "sent Bearer [hidden]"),
        ("evj_0123456789abcdef_" + "a" * 64, "evj_0123456789abcdef_[hidden]"),
        ("DELETE /tokens/evt_0123456789abcdef_" + "a" * 64, "DELETE /tokens/evt_0123456789abcdef_[hidden]"),
        ("x -----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY----- y", "x [hidden] y"),
        ("x -----BEGIN PRIVATE KEY-----\nhunter2", "x [hidden]"),
        ("http://host:80/path@2 stays", "http://host:80/path@2 stays"),
        ("basic fit", "basic fit"),
    ],
)
def test_secrets_inside_text_are_hidden(text: str, shown: str) -> None:
    """What always is a secret by its form, and nothing around it."""
    assert redact_text(text) == shown


def test_long_deep_and_wide_values_are_cut_and_say_so() -> None:
    """A line stays a line."""
    fields = redact(
        {
            "text": "x" * 100_000,
            "list": list(range(1000)),
            "map": {str(n): n for n in range(1000)},
            "deep": {"a": {"b": {"c": {"d": {"e": 1}}}}},
            "bytes": b"hunter2",
            "other": ValueError("x" * 5000),
        }
    )
    assert len(fields["text"]) == 2001
    assert fields["list"][-1] == "… 950 more"
    assert len(fields["list"]) == 51
    assert fields["map"]["…"] == "950 more"
    assert fields["deep"] == {"a": {"b": {"c": {"d": "[dict of 1]"}}}}
    assert fields["bytes"] == "[7 bytes]"
    assert len(fields["other"]) == 2001


def test_a_secret_cut_in_half_is_still_hidden() -> None:
    """The search comes before the cut."""
    assert "hunter2" not in redact_text("x" * 1980 + " Bearer " + "hunter2" * 20)


def test_a_token_in_a_persons_words_is_hidden_and_the_words_stay() -> None:
    """Proves that reasons keep their words, whatever a log line would take them for."""
    words = "basic maintenance of evt_0123456789abcdef_" + "a" * 64
    assert hide_tokens(words) == f"basic maintenance of evt_0123456789abcdef_{HIDDEN}"
