"""What every server has: a folder, ports, a command line, and a question that only a ready one answers."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import ClassVar

from evenflow.testkit.servers.artifacts import Say
from evenflow.testkit.servers.process import LOOPBACK

ANSWER_S = 1.0


class Server(ABC):
    """One server on loopback. `folder` is its own: data, settings and log.

    `root` is the top of the source tree, `cache` the folder of finished artifacts.
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    port_count: ClassVar[int] = 1
    node_count: ClassVar[int] = 1

    def __init__(self, root: Path, cache: Path, folder: Path) -> None:
        self.root = root
        self.cache = cache
        self.folder = folder
        self.ports: Sequence[int] = ()

    @property
    def port(self) -> int:
        """The port that clients use."""
        return self.ports[0]

    @property
    def listens_on(self) -> Sequence[int]:
        """The ports that its own processes take."""
        return self.ports

    def log(self, node: int = 0) -> Path:
        """What a node writes."""
        return self.folder / ("output.log" if self.node_count == 1 else f"output-{node}.log")

    @abstractmethod
    def obtain(self, say: Say) -> None:
        """Fetch or build what is missing, and look for its programs. Raises Unavailable with the way out."""

    @abstractmethod
    def prepare(self) -> None:
        """Write its settings for the ports it was given, and make its data folder where there is none."""

    @abstractmethod
    def command(self, node: int = 0) -> list[str]:
        """The command line of a node."""

    async def form(self) -> None:  # noqa: B027  most servers have one node and nothing to form
        """Make one server of its nodes, as far as can be done now; called again until it answers."""

    @abstractmethod
    async def answers(self) -> bool:
        """Whether it is ready, within a second."""

    @abstractmethod
    def url(self) -> str:
        """Its address, as the product takes it."""

    def keys(self) -> dict[str, str]:
        """Environment settings that clients need besides the address."""
        return {}


Exchange = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bool]]


async def ask(port: int, exchange: Exchange) -> bool:
    """Connect and hold a short exchange; False when nobody listens, nobody answers or the answer is cut off."""
    try:
        async with asyncio.timeout(ANSWER_S):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                return await exchange(reader, writer)
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return False
