"""Redis, as the system installs it. Nothing is kept: live load is written again within a second."""

from __future__ import annotations

import asyncio
import shutil

from evenflow.core.errors import Unavailable
from evenflow.testkit.servers.artifacts import Say
from evenflow.testkit.servers.kinds.server import Server, ask
from evenflow.testkit.servers.process import LOOPBACK

PROGRAMS = ("redis-server", "valkey-server")


class RedisServer(Server):
    """One server without persistence."""

    kind = "redis"
    name = "Redis"

    def obtain(self, say: Say) -> None:
        """Nothing is built; one of the programs must be there."""
        self.program()

    def program(self) -> str:
        """The path of the server. Raises Unavailable when none is installed."""
        found = next((path for path in map(shutil.which, PROGRAMS) if path is not None), None)
        if found is None:
            raise Unavailable("Redis needs redis-server: install your system's redis-server package")
        return found

    def prepare(self) -> None:
        """All its settings are in the command line."""

    def command(self) -> list[str]:
        """In the foreground, on loopback alone."""
        kept = ("--save", "", "--appendonly", "no", "--dir", str(self.folder))
        return [self.program(), "--port", str(self.port), "--bind", LOOPBACK, "--maxmemory", "256mb", *kept]

    async def answers(self) -> bool:
        """Whether it answers a ping."""

        async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
            writer.write(b"PING\r\n")
            return await reader.readexactly(7) == b"+PONG\r\n"

        return await ask(self.port, exchange)

    def url(self) -> str:
        """For `open_live`."""
        return f"redis://{LOOPBACK}:{self.port}/0"
