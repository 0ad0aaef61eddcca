"""Redis, as the system installs it: one server, or a cluster of three. Nothing is kept: live load is written again."""

from __future__ import annotations

import asyncio
import shutil

from evenflow.core.errors import Unavailable
from evenflow.testkit.servers.artifacts import Say
from evenflow.testkit.servers.kinds.server import Server, ask
from evenflow.testkit.servers.process import LOOPBACK

SLOT_COUNT = 16_384
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

    def command(self, node: int = 0) -> list[str]:
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


class RedisCluster(RedisServer):
    """Three masters that share the slots, without replicas."""

    kind = "redis-cluster"
    name = "the Redis Cluster of three"
    node_count = 3
    port_count = 6

    def prepare(self) -> None:
        """A folder a node."""
        for node in range(self.node_count):
            (self.folder / str(node)).mkdir(exist_ok=True)

    def command(self, node: int = 0) -> list[str]:
        """A node; what it knows of the others is kept for its ports alone, so other ports make a new cluster."""
        kept = ("--save", "", "--appendonly", "no", "--dir", str(self.folder / str(node)))
        port = str(self.ports[node])
        cluster = ("--cluster-enabled", "yes", "--cluster-config-file", f"nodes-{port}.conf")
        bus = ("--cluster-port", str(self.ports[self.node_count + node]), "--cluster-node-timeout", "2000")
        return [self.program(), "--port", port, "--bind", LOOPBACK, "--maxmemory", "64mb", *kept, *cluster, *bus]

    async def form(self) -> None:
        """Share the slots and introduce the nodes, once all are up and none has slots yet."""
        known = [await self._tell(node, "CLUSTER INFO") for node in range(self.node_count)]
        if not all("cluster_slots_assigned:0\r" in text for text in known):
            return
        bounds = [SLOT_COUNT * node // self.node_count for node in range(self.node_count + 1)]
        for node in range(self.node_count):
            await self._tell(node, f"CLUSTER SET-CONFIG-EPOCH {node + 1}")
            await self._tell(node, f"CLUSTER ADDSLOTSRANGE {bounds[node]} {bounds[node + 1] - 1}")
        for node in range(1, self.node_count):
            place = f"{LOOPBACK} {self.ports[node]} {self.ports[self.node_count + node]}"
            await self._tell(0, f"CLUSTER MEET {place}")

    async def answers(self) -> bool:
        """Whether every node knows all others and who has which slot."""
        for node in range(self.node_count):
            text = await self._tell(node, "CLUSTER INFO")
            if "cluster_state:ok\r" not in text or f"cluster_known_nodes:{self.node_count}\r" not in text:
                return False
        return True

    def url(self) -> str:
        """For `open_live`."""
        return "redis+cluster://" + ",".join(f"{LOOPBACK}:{port}" for port in self.ports[: self.node_count])

    async def _tell(self, node: int, command: str) -> str:
        """The answer to a command; empty when there is none."""
        answer = ""

        async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
            nonlocal answer
            writer.write(command.encode() + b"\r\n")
            first = await reader.readline()
            bulk = await reader.readexactly(int(first[1:]) + 2) if first.startswith(b"$") else first
            answer = bulk.decode()
            return True

        await ask(self.ports[node], exchange)
        return answer
