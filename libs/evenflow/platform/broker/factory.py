"""The log named by a URL: `embedded:` (memory), `embedded:/folder` (a durable file), `kafka://host:port[,…]`.

`kafka://host:port?replication=3` sets the replication of topics made by `provision`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from evenflow.core.errors import Refused
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.storage.memory import MemoryStorage
from evenflow.platform.broker.embedded.storage.sqlite import FileStorage
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.platform.broker.kafka import KafkaTransport

if TYPE_CHECKING:
    from evenflow.platform.broker.embedded.hooks import Hooks
    from evenflow.platform.clock import Clock, Ids
    from evenflow.platform.security.access import Access

CACHE_BYTES = 64 << 20
_WAYS = "use embedded:, embedded:/folder or kafka://host:port"


def make_log(url: str, *, clock: Clock, hooks: Hooks | None = None, cache_bytes: int = CACHE_BYTES) -> EmbeddedLog:
    """The embedded log of an `embedded:` URL. Raises Refused when its folder is in use or from another release.

    `cache_bytes`: how much of a folder's newest records stays in memory.
    """
    if not url.startswith("embedded:"):
        message = f"the URL names no embedded log: {_WAYS}"
        raise Refused(message)
    folder = url.removeprefix("embedded:")
    storage = FileStorage(Path(folder), cache_bytes=cache_bytes) if folder else MemoryStorage()
    return EmbeddedLog(clock=clock, storage=storage, hooks=hooks)


def kafka_of(url: str) -> tuple[str, int]:
    """Servers and replication of a `kafka:` URL. Raises Refused, never with the URL: there may be a password in it."""
    if not url.startswith("kafka://"):
        message = f"the log's URL is of an unknown kind: {_WAYS}"
        raise Refused(message)
    servers, _, query = url.removeprefix("kafka://").partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    replication = options.pop("replication", "1")
    if not servers or options or not replication.isdecimal() or int(replication) < 1:
        message = f"the log's URL names no Kafka: {_WAYS}, with nothing but ?replication=N behind it"
        raise Refused(message)
    return servers, int(replication)


def make_transport(
    url: str,
    *,
    clock: Clock,
    ids: Ids,
    hooks: Hooks | None = None,
    graceful_timeout_s: float = 10.0,
    access: Access | None = None,
) -> EmbeddedTransport | KafkaTransport:
    """The transport of one process. Raises Refused for a URL of another kind, and for files that are no certificates.

    Processes that share an embedded log each get their own `EmbeddedTransport` over one `make_log`.
    """
    if url.startswith("embedded:"):
        log = make_log(url, clock=clock, hooks=hooks)
        return EmbeddedTransport(log, clock=clock, ids=ids, graceful_timeout_s=graceful_timeout_s)
    servers, replication = kafka_of(url)
    return KafkaTransport(
        servers,
        clock=clock,
        ids=ids,
        replication=replication,
        graceful_timeout_s=graceful_timeout_s,
        access=access,
    )
