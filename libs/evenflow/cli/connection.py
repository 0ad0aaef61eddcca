"""Talking to a console: one client for each command, answers as the API gave them.

The access token comes from a file (`--token-file`, EVENFLOW_TOKEN_FILE) or from EVENFLOW_TOKEN, never from an
argument: arguments are seen by everybody on the machine and stay in the shell's history.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from evenflow.cli.exits import WRONG, Stop

if TYPE_CHECKING:
    from evenflow.client.api import Client
    from evenflow.client.calls import Call


TOKEN_BYTES_MAX: Final = 4_096


@dataclass
class Shown:
    """What the command line says of access, before the command's name."""

    token_file: str = ""
    ca: str = ""


SHOWN: Final = Shown()


def access(
    token_file: Annotated[
        str, typer.Option("--token-file", envvar="EVENFLOW_TOKEN_FILE", help="A file with your access token.")
    ] = "",
    ca: Annotated[
        str, typer.Option("--ca", envvar="EVENFLOW_CA", help="Certificates to trust, PEM; instead of the usual ones.")
    ] = "",
) -> None:
    """Take the options that all commands share."""
    SHOWN.token_file, SHOWN.ca = token_file, ca


def shown_token() -> str:
    """The access token to show; empty = none. Raises Stop when its file can't be read."""
    if not SHOWN.token_file:
        return os.environ.get("EVENFLOW_TOKEN", "").strip()
    return secret_in(SHOWN.token_file, "--token-file")


def secret_in(path: str, option: str) -> str:
    """A secret's text from a file of its own. Raises Stop."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(TOKEN_BYTES_MAX + 1).decode()
    except OSError as error:
        raise Stop(WRONG, f"{path} can't be read: {error.strerror}", path=option, way_out="Name the file.") from error
    except UnicodeDecodeError:
        text = ""
    if not text.strip() or len(text) > TOKEN_BYTES_MAX or not text.strip().isascii() or not text.strip().isprintable():
        raise Stop(WRONG, f"{path} holds no token", path=option, way_out="It must hold one line: the token.")
    return text.strip()


def caller() -> str:
    """The name under which changes are recorded: the user's on this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "local"


@contextmanager
def connected(url: str) -> Generator[Client, None, None]:
    """A client of the console at this address."""
    from evenflow.client.api import Client

    if not url.startswith(("http://", "https://")):
        raise Stop(WRONG, f"{url!r} is no address", path="--url", way_out="Write http://host:port, or https://.")
    with Client(url, who=caller(), token=shown_token(), ca=SHOWN.ca) as client:
        yield client


def raw(client: Client, call: Call[Any]) -> dict[str, Any]:
    """An answer as the API gave it: what -o json prints."""
    from evenflow.client.calls import untyped

    return client.send(untyped(call))


def fetch(url: str, call: Call[Any]) -> dict[str, Any]:
    """One call by itself."""
    with connected(url) as client:
        return raw(client, call)
