"""What `python -m evenflow.testkit.servers` does.

build       fetch and build what is missing, start nothing
up          build, start and leave running; the addresses are printed and kept in the folder's `environment`
down        stop what `up` left running, if anything
status      what runs, its id and memory; 1 when something is down

--folder DIR   data, logs and state (default .cache/local-servers)
--fresh        up: with empty data; without it what is there is kept
--only KINDS   some of kafka redis redis-cluster documents objects; without it all but redis-cluster
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from evenflow.core.errors import EvenflowError
from evenflow.platform.clock import SystemClock
from evenflow.testkit.servers.addresses import KINDS, NEEDED
from evenflow.testkit.servers.local import ENVIRONMENT, LocalServers, recorded, stop_recorded

FOLDER: Final = Path(".cache") / "local-servers"


def say(text: str) -> None:
    """A line, at once."""
    print(text, flush=True)  # noqa: T201  the command's own output


def build(folder: Path, kinds: Sequence[str]) -> int:
    """Everything that can be made beforehand."""
    servers = LocalServers(Path.cwd(), folder, SystemClock(), say, tied=False)
    for kind in kinds:
        servers.servers[kind].obtain(say)
    return 0


async def up(folder: Path, kinds: Sequence[str], *, fresh: bool) -> int:
    """Start and leave running."""
    servers = LocalServers(Path.cwd(), folder, SystemClock(), say, tied=False)
    addresses = await servers.start(kinds, fresh=fresh)
    say(f"\nall up; for a shell: . {folder / ENVIRONMENT}\n")
    for name, value in {**addresses.environment(), **addresses.host_environment()}.items():
        say(f"{name}={value}")
    return 0


async def down(folder: Path) -> int:
    """Stop what runs."""
    count = await stop_recorded(folder, SystemClock(), say)
    if not count:
        say(f"nothing of {folder} was up")
    return 0


def status(folder: Path) -> int:
    """What runs."""
    those = recorded(folder)
    for one in those:
        state = f"up, {one.memory_bytes() / 1e6:.0f} MB" if one.lives else "ended"
        say(f"{one.name:50} {one.pid:>8}  {state}")
    if not those:
        say(f"nothing of {folder} was up")
    return 0 if those and all(one.lives for one in those) else 1


def main(arguments: list[str]) -> int:
    """Run one of the commands; a refusal or a missing program is said in its own words."""
    parser = argparse.ArgumentParser(
        prog="evenflow.testkit.servers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("do", choices=["build", "up", "down", "status"])
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(NEEDED))
    chosen = parser.parse_args(arguments)
    try:
        if chosen.do == "build":
            return build(chosen.folder, chosen.only)
        if chosen.do == "up":
            return asyncio.run(up(chosen.folder, chosen.only, fresh=chosen.fresh))
        if chosen.do == "down":
            return asyncio.run(down(chosen.folder))
        return status(chosen.folder)
    except EvenflowError as error:
        say(f"{chosen.do}: {error}")
        return 1
