"""The servers of one folder: started together, waited for, stopped together; found again by a later command.

A folder holds one set: data and log of each server, `state.json` (process ids, ports) and `environment` (addresses).
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from evenflow.core.errors import Refused, Unavailable
from evenflow.platform.clock import Clock
from evenflow.testkit.servers.addresses import Addresses
from evenflow.testkit.servers.artifacts import Say
from evenflow.testkit.servers.kinds.documents import DocumentServer
from evenflow.testkit.servers.kinds.kafka import Kafka, KafkaCluster
from evenflow.testkit.servers.kinds.objects import ObjectServer
from evenflow.testkit.servers.kinds.redis import RedisCluster, RedisServer
from evenflow.testkit.servers.kinds.server import Server
from evenflow.testkit.servers.process import Running, free_ports, is_free, spawn, stop

READY_S: Final = 180.0
STOP_S: Final = 15.0
LOOK_S: Final = 0.02
SERVERS: Final[tuple[type[Server], ...]] = (
    Kafka,
    KafkaCluster,
    RedisServer,
    RedisCluster,
    DocumentServer,
    ObjectServer,
)
STATE: Final = "state.json"
ENVIRONMENT: Final = "environment"
CACHE_VARIABLE: Final = "EVENFLOW_SERVERS_CACHE"


class LocalServers:
    """A set of servers under one folder. `tied` processes end with the one that starts them."""

    def __init__(
        self,
        root: Path,
        folder: Path,
        clock: Clock,
        say: Say,
        *,
        tied: bool,
        made_of: Sequence[type[Server]] = SERVERS,
    ) -> None:
        """Take the top of the source tree and a folder; nothing is started or written yet."""
        self.folder = folder.resolve()
        self._clock = clock
        self._say = say
        self._tied = tied
        cache = cache_folder(root)
        self.servers = {made.kind: made(root.resolve(), cache, self.folder / made.kind) for made in made_of}
        #: By kind, or kind/number where a server has several nodes.
        self.running: dict[str, Running] = {}

    async def start(self, kinds: Sequence[str], *, fresh: bool = True) -> Addresses:
        """Build, start and wait until each answers; all are stopped again when one does not.

        Raises Refused when servers of this folder are up, Unavailable when one can't be built or started.
        """
        with self._alone():
            if up := [one.name for one in recorded(self.folder) if one.lives]:
                raise Refused(f"already up in {self.folder}: {', '.join(up)}; stop them first (make down)")
            for kind in kinds:
                self.servers[kind].obtain(self._say)
            if fresh:
                for kind in kinds:
                    shutil.rmtree(self.folder / kind, ignore_errors=True)
            self._assign_ports(kinds)
            try:
                for kind in kinds:
                    self._begin(kind)
                await asyncio.gather(*(self.ready(kind) for kind in kinds))
            except BaseException:
                await self.stop()
                raise
            return self.addresses(kinds)

    async def stop(self) -> None:
        """Stop what was started here, and say what had to be killed."""
        killed = await stop(self.running.values(), self._clock, within_s=STOP_S)
        if killed:
            self._say(f"did not stop within {STOP_S:.0f} s and was killed: {', '.join(killed)}")
        self.running.clear()
        (self.folder / STATE).unlink(missing_ok=True)
        (self.folder / ENVIRONMENT).unlink(missing_ok=True)

    async def kill(self, kind: str) -> None:
        """Kill the processes of one server at once, or of one node (kind/number), and wait until they are gone."""
        killed = [running for name, running in self.running.items() if kind in (name, name.partition("/")[0])]
        for running in killed:
            running.tell(signal.SIGKILL)
        while any(running.lives for running in killed):
            await self._clock.sleep(LOOK_S)

    async def restart(self, kind: str) -> None:
        """Start again, on their ports and data, those of its nodes that ended."""
        self._begin(kind)
        await self.ready(kind)

    async def ready(self, kind: str) -> None:
        """Wait for its answer while its own processes live, with a word on what is waited for."""
        server = self.servers[kind]
        self._say(f"waiting for {server.name} on port {server.port} (log: {server.log()})")
        begun_ms = self._clock.monotonic_ms()
        while True:
            await server.form()
            answered = await server.answers()
            for node in range(server.node_count):  # also after an answer: another program may have given it
                running = self.running[_key(server, node)]
                if not running.lives:
                    raise Unavailable(f"{server.name} ended while starting; the end of its log:\n{running.said()}")
            if answered:
                break
            if self._clock.monotonic_ms() - begun_ms > READY_S * 1000:
                raise Unavailable(f"{server.name} did not answer within {READY_S:.0f} s; its log is {server.log()}")
            await self._clock.sleep(LOOK_S)
        self._say(f"{server.name} is ready after {(self._clock.monotonic_ms() - begun_ms) / 1000:.1f} s")

    def addresses(self, kinds: Sequence[str]) -> Addresses:
        """Of those servers, as environment settings."""
        keys: dict[str, str] = {}
        for kind in kinds:
            keys |= self.servers[kind].keys()
        urls = {kind: self.servers[kind].url() for kind in kinds}
        found = Addresses(urls, keys, {kind: self.servers[kind].name for kind in kinds})
        rows = [f"{name}={value}" for name, value in {**found.environment(), **found.host_environment()}.items()]
        (self.folder / ENVIRONMENT).write_text("".join(f"export {row!s}\n" for row in map(_quoted, rows)))
        return found

    def _begin(self, kind: str) -> None:
        server = self.servers[kind]
        down = [node for node in range(server.node_count) if not self._lives(_key(server, node))]
        if len(down) == server.node_count:
            for port in server.listens_on:
                if not is_free(port):
                    raise Unavailable(f"{server.name}: another program listens on port {port} of loopback")
        server.folder.mkdir(parents=True, exist_ok=True)
        server.prepare()
        for node in down:
            started = spawn(server.name, server.command(node), server.log(node), tied=self._tied)
            self.running[_key(server, node)] = started
        self._record()

    def _lives(self, key: str) -> bool:
        return key in self.running and self.running[key].lives

    def _assign_ports(self, kinds: Sequence[str]) -> None:
        wanted = [self.servers[kind] for kind in kinds]
        ports = iter(free_ports(sum(server.port_count for server in wanted)))
        for server in wanted:
            server.ports = [next(ports) for _ in range(server.port_count)]

    def _record(self) -> None:
        rows = {
            kind: {"name": one.name, "pid": one.pid, "ticks": one.ticks, "log": str(one.log)}
            for kind, one in self.running.items()
        }
        whole = self.folder / f"{STATE}.new"
        whole.write_text(json.dumps(rows, indent=2), encoding="utf-8")
        whole.replace(self.folder / STATE)

    def _alone(self) -> _Alone:
        return _Alone(self.folder)


class _Alone:
    """One starting command a folder at a time. Raises Refused for the second one."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "lock"

    def __enter__(self) -> None:
        self._file = self._path.open("w")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise Refused(f"another command is starting servers in {self._path.parent}") from error

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _key(server: Server, node: int) -> str:
    return server.kind if server.node_count == 1 else f"{server.kind}/{node}"


def recorded(folder: Path) -> list[Running]:
    """The processes that a command started in a folder and left running; they may have ended since."""
    try:
        rows = json.loads((folder / STATE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    return [Running(row["name"], row["pid"], row["ticks"], Path(row["log"])) for row in rows.values()]


async def stop_recorded(folder: Path, clock: Clock, say: Say) -> int:
    """Stop what a command left running in a folder; how many lived."""
    those = [one for one in recorded(folder) if one.lives]
    killed = await stop(those, clock, within_s=STOP_S)
    for one in those:
        say(f"{one.name} ({one.pid}) {'was killed' if one.name in killed else 'stopped'}")
    for name in (STATE, ENVIRONMENT):
        (folder / name).unlink(missing_ok=True)
    return len(those)


def cache_folder(root: Path) -> Path:
    """Where finished artifacts are kept: EVENFLOW_SERVERS_CACHE, else an ignored folder of the tree."""
    named = os.environ.get(CACHE_VARIABLE)
    return Path(named).resolve() if named else root.resolve() / ".cache" / "servers"


def _quoted(row: str) -> str:
    name, _, value = row.partition("=")
    return f"{name}='{value}'"
