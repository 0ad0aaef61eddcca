"""How an agent reaches the pool: over a gateway's HTTP, or over a gateway of its own (`own_door`)."""

from __future__ import annotations

import asyncio
from typing import Protocol

from evenflow.agent.clients.exchange import Exchange
from evenflow.agent.clients.http import HttpExchange


class Way(Protocol):
    """`exchange` carries the agent's requests, `token` is shown at the first of them."""

    url: str
    token: str

    @property
    def exchange(self) -> Exchange: ...
    def waits_for(self) -> dict[str, str]:
        """Servers that did not answer yet, each with what it said last."""

    def begin(self) -> None: ...
    async def failed(self) -> None:
        """Raise what keeps it from ever working; never return."""

    async def close(self) -> None: ...


class HttpWay:
    """To a gateway somewhere; `ca` is a file of certificates to trust. Raises FieldRefused for a URL that is none."""

    def __init__(self, url: str, token: str, ca: str = "") -> None:
        self.url = url
        self.token = token
        self.exchange = HttpExchange(url, ca)

    def waits_for(self) -> dict[str, str]:
        """The agent itself knows whether its gateway answers."""
        return {}

    def begin(self) -> None:
        """Connections are made when they are needed."""

    async def failed(self) -> None:
        """A gateway that is away may come."""
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Let connections go."""
        await self.exchange.close()
