"""Which servers a test run uses: those the environment names, else a container engine's, else local processes.

Each kind is chosen by itself, so one may name a real replica set and have the rest started. When neither is there it is
a failure that says what was tried, never a skip.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from evenflow.platform.clock import SystemClock
from evenflow.testkit.servers.addresses import Addresses, addresses_from
from evenflow.testkit.servers.artifacts import Say
from evenflow.testkit.servers.engine import EngineServers, engine_answers
from evenflow.testkit.servers.local import LocalServers


class Chosen:
    """Servers for one test run; `close` stops those that were started for it."""

    def __init__(self, addresses: Addresses, close: Callable[[bool], None]) -> None:
        self.addresses = addresses
        self._close = close

    def close(self, *, keep: bool = False) -> None:
        """Stop them; `keep` leaves logs and data of local ones for a look."""
        self._close(keep)


def choose(root: Path, environment: Mapping[str, str], say: Say) -> Chosen:
    """Servers of every kind, ready. Not for a running loop. Raises Unavailable when one is to be had nowhere."""
    named = addresses_from(environment)
    for kind, variable in named.origin.items():
        say(f"{kind}: the address in {variable}")
    if not named.missing:
        return Chosen(named, lambda _: None)
    closing: list[Callable[[bool], None]] = []
    if engine_answers():
        engine = EngineServers(root, say)
        named = named.joined(engine.start())
        closing.append(lambda _: engine.stop())
    else:
        say("no container engine answers")
    if named.missing:
        say(f"starting local processes for {', '.join(named.missing)}")
        try:
            named, close_local = _local(root, named, say)
        except BaseException:
            _close(closing, keep=False)
            raise
        closing.append(close_local)
    return Chosen(named, lambda keep: _close(closing, keep=keep))


def _close(closing: list[Callable[[bool], None]], *, keep: bool) -> None:
    for close in closing:
        close(keep)


def _local(root: Path, named: Addresses, say: Say) -> tuple[Addresses, Callable[[bool], None]]:
    import tempfile

    cache = root / ".cache"
    cache.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="test-servers-", dir=cache))
    servers = LocalServers(root, folder, SystemClock(), say, tied=True)
    found = asyncio.run(servers.start(named.missing))

    def close(keep: bool) -> None:  # noqa: FBT001  called by Chosen alone
        asyncio.run(servers.stop())
        if keep:
            say(f"logs and data of the servers are in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)

    return named.joined(found), close
