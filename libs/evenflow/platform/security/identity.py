"""The identity of a node: an Ed25519 key pair whose private half never leaves the node's disk."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from evenflow.core.errors import Conflict, FieldRefused, Refused, Unavailable

PUBLIC_KEY_BYTES: Final = 32
KEY_FILE_BYTES_MAX: Final = 4_096


def new_key() -> Ed25519PrivateKey:
    """A key pair from the operating system's randomness."""
    return Ed25519PrivateKey.generate()


def key_from_seed(seed: str) -> Ed25519PrivateKey:
    """The same key for the same text, for the simulation alone: who knows the text knows the key."""
    return Ed25519PrivateKey.from_private_bytes(
        hashlib.blake2b(seed.encode(), digest_size=32, person=b"evenflow-sim-key").digest()
    )


def save_key(path: Path, key: Ed25519PrivateKey) -> None:
    """Write the private key, readable by its owner alone. Raises Conflict when the file exists: no key is replaced.

    The bytes are on the disk before the name appears, so a crash leaves a whole key or none.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    draft = path.with_name(f"{path.name}.draft-{os.getpid()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            os.write(descriptor, text)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.link(draft, path)
    except FileExistsError as error:
        raise Conflict(f"{path} exists; a node keeps its key, move it away to get a new identity") from error
    except OSError as error:
        raise Unavailable(f"can't write {path}: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


def load_key(path: Path) -> Ed25519PrivateKey:
    """Read a private key. Raises Refused when the file is absent, open to others, or no Ed25519 key."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            mode = os.fstat(descriptor).st_mode
            text = os.read(descriptor, KEY_FILE_BYTES_MAX)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Refused(f"can't read the key {path}: {error.strerror}") from error
    if stat.S_IMODE(mode) & 0o077:
        raise Refused(f"{path} may be read by others (mode {stat.S_IMODE(mode):o}); run: chmod 600 {path}")
    try:
        key = load_pem_private_key(text, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise Refused(f"{path} holds no private key in PEM form") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise Refused(f"{path} holds another kind of key; Ed25519 is needed")
    return key


def load_or_make_key(path: Path) -> Ed25519PrivateKey:
    """The key in the file, made at the first start."""
    if not path.exists():
        try:
            save_key(path, new_key())
        except Conflict:  # a second agent started at the same moment; the first one's key counts
            return load_key(path)
    return load_key(path)


def public_text(key: Ed25519PrivateKey | Ed25519PublicKey) -> str:
    """The public key as 64 hexadecimal digits."""
    public = key.public_key() if isinstance(key, Ed25519PrivateKey) else key
    return public.public_bytes_raw().hex()


def public_key(text: str) -> Ed25519PublicKey:
    """The inverse of `public_text`; raises FieldRefused."""
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(raw) != PUBLIC_KEY_BYTES or raw.hex() != text:
        raise FieldRefused("public_key", f"must be {2 * PUBLIC_KEY_BYTES} lower-case hexadecimal digits")
    return Ed25519PublicKey.from_public_bytes(raw)


def fingerprint(key: Ed25519PrivateKey | Ed25519PublicKey) -> str:
    """16 hexadecimal digits by which people tell keys apart."""
    return hashlib.blake2b(bytes.fromhex(public_text(key)), digest_size=8).hexdigest()
