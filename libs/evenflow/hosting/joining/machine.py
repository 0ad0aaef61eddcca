"""This machine as a node: its document, and the process that `evenflow agent` runs."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import string
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evenflow.agent.main import run_agent as run_agent_service
from evenflow.agent.service import AgentService
from evenflow.core.errors import FieldRefused
from evenflow.events.documents.node import parse_node
from evenflow.events.documents.reading import read_document
from evenflow.hosting.joining.watched import Watched
from evenflow.hosting.joining.ways import HttpWay, Way
from evenflow.hosting.signals import until_told
from evenflow.platform.clock import SystemClock
from evenflow.platform.observability.logs import make_log

GATEWAY: Final = "gateway"
KAFKA: Final = "kafka"
TRANSPORTS: Final = (GATEWAY, KAFKA)
GIB: Final = 2**30
GB: Final = 10**9


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """What the command line says. An empty `node` = the machine's name; no `folder` = one under the home folder.

    `transport` kafka: over a gateway of its own instead of the one at `url`. `operations_port`: where /health, /ready
    and /metrics are answered, 0 = any free port, None = nowhere, since many agents may share a machine.
    `ca` is a file of certificates to trust instead of the usual ones.
    """

    url: str
    token: str
    node: str = ""
    site: str = "local"
    document: Path | None = None
    folder: Path | None = None
    transport: str = GATEWAY
    operations_port: int | None = None
    ca: str = ""


def run_agent(options: AgentOptions) -> int:
    """Run this machine's agent until told to stop; its members live on. Raises Refused."""
    document = node_document(options)
    name = str(document["id"])
    folder = options.folder or Path.home() / ".local" / "share" / "evenflow" / "nodes" / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return asyncio.run(_run(options, document, folder))


async def _run(options: AgentOptions, document: dict[str, Any], folder: Path) -> int:
    told = until_told()
    clock = SystemClock()
    log = make_log(service=f"agent-{document['id']}", instance=str(os.getpid()), clock=clock, level="info")
    way: Way = HttpWay(options.url, options.token, options.ca) if options.transport == GATEWAY else _own_way(folder)
    doors = Watched(way, document["id"], clock, options.operations_port)
    await doors.open()

    def started(agent: AgentService) -> None:
        doors.agent = agent
        place = {"node": document["id"], "site": document["site"], "folder": str(folder)}
        log.info("joining", pid=os.getpid(), url=way.url, **place, **doors.urls)

    way.begin()
    work = asyncio.create_task(run_agent_service(way.exchange, way.token, document, folder, log=log, started=started))
    parts = [work, asyncio.create_task(told.wait()), asyncio.create_task(way.failed())]
    try:
        done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        for one in done:
            one.result()
        return 0
    finally:
        for one in parts:
            one.cancel()
        await asyncio.gather(*parts, return_exceptions=True)
        await way.close()
        await doors.close()


def _own_way(folder: Path) -> Way:
    from evenflow.hosting.joining.own_door import OwnDoor  # an agent behind a gateway loads no client of the log

    return OwnDoor(folder)


def node_document(options: AgentOptions) -> dict[str, Any]:
    """The node document to announce, checked by the same door as everywhere. Raises FieldRefused."""
    if options.document is not None:
        try:
            data = options.document.read_bytes()
        except OSError as error:
            raise FieldRefused("--document", f"{options.document} can't be read: {error.strerror}") from error
        given = read_document(data, source=str(options.document))
        if not isinstance(given, dict):
            raise FieldRefused("--document", "must hold a map of fields")
        document = {**this_machine(options), **given}
    else:
        document = this_machine(options)
    parse_node(document)
    return document


def this_machine(options: AgentOptions) -> dict[str, Any]:
    """This machine by its cores, its memory in whole GiB and its free disk in whole GB; devices are not looked for."""
    return {
        "id": options.node or machine_name(socket.gethostname()),
        "site": options.site,
        "cpu": len(os.sched_getaffinity(0)),
        "memory": f"{max(1, _memory_bytes() // GIB)}GiB",
        "disk": f"{max(1, shutil.disk_usage(Path.home()).free // GB)}GB",
    }


def machine_name(text: str) -> str:
    """A host's name in the grammar of ids."""
    known = string.ascii_lowercase + string.digits + "._-"
    kept = "".join(letter if letter in known else "-" for letter in text.lower())
    return kept.strip("._-")[:128] or "node"


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
