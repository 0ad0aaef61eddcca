"""Key files: private to their owner, whole or absent, never replaced."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from evenflow.core.errors import Conflict, FieldRefused, Refused, Unavailable
from evenflow.platform.security import identity


def test_a_saved_key_loads_as_the_same_key(tmp_path: Path) -> None:
    """The folder is made, the file is for its owner alone whatever the mask, and no draft stays."""
    path = tmp_path / "keys" / "node.pem"
    key = identity.new_key()
    mask = os.umask(0)
    try:
        identity.save_key(path, key)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["node.pem"]
    assert identity.public_text(identity.load_key(path)) == identity.public_text(key)


def test_a_key_is_never_replaced(tmp_path: Path) -> None:
    """Saving over a key is a Conflict; load_or_make keeps the first."""
    path = tmp_path / "node.pem"
    first = identity.load_or_make_key(path)
    with pytest.raises(Conflict):
        identity.save_key(path, identity.new_key())
    assert identity.public_text(identity.load_or_make_key(path)) == identity.public_text(first)


def test_of_two_agents_starting_at_once_both_use_the_first_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loser of the race reads the winner's key."""
    path = tmp_path / "node.pem"
    winner = identity.new_key()
    identity.save_key(path, winner)
    monkeypatch.setattr(Path, "exists", lambda _path: False)
    assert identity.public_text(identity.load_or_make_key(path)) == identity.public_text(winner)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_key_open_to_others_is_refused_with_the_command_to_run(tmp_path: Path, mode: int) -> None:
    """As ssh does."""
    path = tmp_path / "node.pem"
    identity.save_key(path, identity.new_key())
    path.chmod(mode)
    with pytest.raises(Refused, match="chmod 600"):
        identity.load_key(path)


def test_a_file_that_is_no_ed25519_key_is_refused(tmp_path: Path) -> None:
    """Absent, garbage, empty, and a key of another kind."""
    path = tmp_path / "node.pem"
    with pytest.raises(Refused, match="can't read"):
        identity.load_key(path)
    other = X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for content, message in ((b"", "no private key"), (b"garbage", "no private key"), (other, "another kind")):
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(Refused, match=message):
            identity.load_key(path)


def test_a_folder_that_takes_no_file_is_unavailable(tmp_path: Path) -> None:
    """The path's name may be too long for the file system."""
    with pytest.raises(Unavailable):
        identity.save_key(tmp_path / ("x" * 250), identity.new_key())
    assert list(tmp_path.iterdir()) == []


def test_a_seed_gives_one_key_for_ever() -> None:
    """Simulated receipts must be byte for byte the same in every process."""
    assert identity.public_text(identity.key_from_seed("n1")) == identity.public_text(identity.key_from_seed("n1"))
    assert identity.public_text(identity.key_from_seed("n1")) != identity.public_text(identity.key_from_seed("n2"))
    assert identity.fingerprint(identity.key_from_seed("n1")) == "b533eaae181698b8"


def test_public_keys_are_written_in_one_way_only() -> None:
    """Two texts never mean the same key: no capitals, spaces or prefixes."""
    key = identity.key_from_seed("n1")
    text = identity.public_text(key)
    assert identity.public_text(identity.public_key(text)) == text
    for wrong in ("", text[:-1], text + "0", text.upper(), " " + text, "zz" * 32, text[:2] + " " + text[2:]):
        with pytest.raises(FieldRefused, match="public_key"):
            identity.public_key(wrong)
