"""A gateway inside the agent's own process: how a node on a trusted network reaches the log without one in between.

The agent speaks to it as to any gateway, in the same process instead of over HTTP, so there is one behaviour and one
suite. What it reads of the log is every node's desired state, which only a trusted network allows. The node's identity
and the secret of its sessions stay in the agent's folder; the log says whether another key holds the name.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from evenflow.agent.clients.exchange import Direct
from evenflow.core.errors import Refused
from evenflow.gateway.settings import GatewaySettings
from evenflow.hosting.composition import Composition
from evenflow.hosting.development.keeping import kept_secret
from evenflow.hosting.operations.reaching import Reaching
from evenflow.hosting.surroundings import HostSettings, Surroundings
from evenflow.platform.settings import load_settings


class OwnDoor:
    """Started before the agent, stopped after it. Raises FieldRefused for a wrong setting, Refused without servers."""

    def __init__(self, folder: Path) -> None:
        host = load_settings(HostSettings, "host", environment=os.environ)
        if not host.log.startswith("kafka://") or host.objects == "memory:":
            raise Refused("--transport kafka needs a Kafka in EVENFLOW_HOST_LOG and a store in EVENFLOW_HOST_OBJECTS")
        self.token = kept_secret(folder / "join.token")
        chosen: dict[str, Any] = {"token": self.token, "secret": kept_secret(folder / "gateway.secret")}
        settings = load_settings(GatewaySettings, "gateway", environment=os.environ, overrides=chosen)
        # What the pool's services share stays theirs: nodes' identities are read from the log.
        own = host.with_changes(documents=f"sqlite://{folder.resolve()}/door.db", live="memory:")
        self._surroundings = Surroundings(own)
        self._composition = Composition(self._surroundings)
        self._composition.add_service("gateway", settings)
        log = self._surroundings.logger("gateway")
        self._reaching = Reaching(self._surroundings.clock, log)
        door = self._composition.doors["gateway"]
        self.exchange = Direct(lambda: door.app)
        self.url = own.log
        self._starting: asyncio.Task[None] | None = None

    def waits_for(self) -> dict[str, str]:
        """Servers that did not answer yet."""
        return self._reaching.waits_for

    def begin(self) -> None:
        """Reach log and object store, then serve; nobody waits for it: an agent tries again until its gateway answers.

        What can't ever be comes out of `failed`.
        """
        self._starting = asyncio.create_task(self._start(), name="the agent's own gateway")

    async def _start(self) -> None:
        servers = self._surroundings.servers()
        await self._reaching.all({name: servers[name] for name in ("log", "objects")})
        await self._composition.supervisor.start()

    async def failed(self) -> None:
        """Raise what keeps it from ever starting; return never."""
        if self._starting is not None:
            await asyncio.shield(self._starting)
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Stop serving and close what it opened."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        await self._composition.stop()
