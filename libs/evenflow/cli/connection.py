"""Talking to a console: one client for each command, answers as the API gave them."""

from __future__ import annotations

import getpass
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evenflow.cli.exits import WRONG, Stop

if TYPE_CHECKING:
    from evenflow.client.api import Client
    from evenflow.client.calls import Call


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
        raise Stop(WRONG, f"{url!r} is no address", path="--url", way_out="Write http://host:port.")
    with Client(url, who=caller()) as client:
        yield client


def raw(client: Client, call: Call[Any]) -> dict[str, Any]:
    """An answer as the API gave it: what -o json prints."""
    from evenflow.client.calls import untyped

    return client.send(untyped(call))


def fetch(url: str, call: Call[Any]) -> dict[str, Any]:
    """One call by itself."""
    with connected(url) as client:
        return raw(client, call)
