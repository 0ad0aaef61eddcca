"""The operations door of an agent's process, where one is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evenflow.agent.service import AgentService
from evenflow.hosting.joining.ways import Way
from evenflow.platform.clock import Clock
from evenflow.platform.versions import installed

if TYPE_CHECKING:
    from evenflow.hosting.http import HttpServer

ADDRESS: Final = "127.0.0.1"


class Watched:
    """Open before the agent, so that it can be seen waiting. Its libraries are loaded only where it is opened."""

    def __init__(self, way: Way, node: str, clock: Clock, port: int | None) -> None:
        self.agent: AgentService | None = None
        self.urls: dict[str, str] = {}
        self._way = way
        self._about = {"service": f"agent-{node}", "version": installed(), "since_ms": clock.now_ms()}
        self._port = port
        self._server: HttpServer | None = None

    def waits_for(self) -> dict[str, str]:
        """What the way waits for, or the gateway itself."""
        waits = self._way.waits_for()
        if not waits and self.agent is not None and not self.agent.uplink.in_session:
            return {"gateway": f"no session at {self._way.url}"}
        return waits

    def services(self) -> dict[str, str]:
        """How the agent does."""
        serves = self.agent is not None and self.agent.uplink.in_session
        return {"agent": "serving" if serves else "starting"}

    async def measure(self) -> None:
        """An agent has no levels that wait to be asked for."""

    async def open(self) -> None:
        """Listen. Raises Refused when the port is taken."""
        if self._port is None:
            return
        from evenflow.hosting.http import HttpServer
        from evenflow.hosting.operations.door import OperationsDoor
        from evenflow.hosting.operations.measures import Measures

        door = OperationsDoor(self, Measures("agent"), self._about)
        self._server = HttpServer(door, name="operations", address=ADDRESS, port=self._port)
        self._server.bind()
        await self._server.start()
        self.urls = {"operations": f"http://{ADDRESS}:{self._server.port}"}

    async def close(self) -> None:
        """Answer no more."""
        if self._server is not None:
            await self._server.stop()
