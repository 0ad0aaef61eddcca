"""The three stores from their URLs.

    documents   memory:   sqlite::memory:   sqlite:///dir/file (absolute)   sqlite:dir/file   mongodb://…   mongodb+srv://…
    live load   memory:   fake:   redis://…   rediss://…   redis+cluster://host:port,host:port   rediss+cluster://…
    objects     memory:   file:///dir (absolute)   file:dir   s3://bucket/prefix?endpoint=…&region=…

Client libraries are imported where their URL asks for them, so a node agent does not load them. Messages name the
scheme and never the URL, which may hold a password.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from evenflow.core.errors import FieldRefused
from evenflow.platform.security.access import Access
from evenflow.platform.stores.ports import Documents, LiveLoad, Objects

_KINDS: Final = {
    "documents": ("sqlite", "mongodb", "mongodb+srv", "memory"),
    "live": ("fake", "redis", "rediss", "redis+cluster", "rediss+cluster", "memory"),
    "objects": ("file", "s3", "memory"),
}


def check_kind(field: str, url: str) -> None:
    """Raises FieldRefused unless a store's URL is of a kind that `open_stores` knows; opens nothing."""
    scheme, _ = _split(url, field)
    if scheme not in _KINDS[field]:
        raise _unknown(field, scheme, ", ".join(_KINDS[field]))


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of one process."""

    documents: Documents
    live: LiveLoad
    objects: Objects

    async def close(self) -> None:
        """Close all three, even when one fails."""
        try:
            await self.documents.close()
        finally:
            try:
                await self.live.close()
            finally:
                await self.objects.close()


def open_stores(*, documents: str, live: str, objects: str, access: Mapping[str, Access] | None = None) -> Stores:
    """Open all three; raises FieldRefused naming the field whose URL is wrong. `access` is by field."""
    keys = access or {}
    return Stores(
        open_documents(documents, keys.get("documents")),
        open_live(live, keys.get("live")),
        open_objects(objects),
    )


def open_documents(url: str, access: Access | None = None) -> Documents:
    """Documents by URL; see the module."""
    scheme, rest = _split(url, "documents")
    if scheme == "memory":
        from evenflow.platform.stores.memory import MemoryDocuments

        return MemoryDocuments()
    if scheme == "sqlite":
        from evenflow.platform.stores.documents_sqlite import SqliteDocuments

        return SqliteDocuments(":memory:" if rest == ":memory:" else _path(rest, "documents"))
    if scheme in ("mongodb", "mongodb+srv"):
        from evenflow.platform.stores.documents_mongo import open_mongo

        return open_mongo(url, access)
    raise _unknown("documents", scheme, "sqlite:///dir/file, sqlite::memory:, mongodb://host or memory:")


def open_live(url: str, access: Access | None = None) -> LiveLoad:
    """Live load by URL; see the module."""
    scheme, _ = _split(url, "live")
    if scheme == "memory":
        from evenflow.platform.stores.memory import MemoryLiveLoad

        return MemoryLiveLoad()
    if scheme == "fake":
        from fakeredis import FakeAsyncRedis, FakeServer

        from evenflow.platform.stores.live_redis import RedisLiveLoad

        return RedisLiveLoad(FakeAsyncRedis(server=FakeServer()))
    if scheme in ("redis", "rediss"):
        from evenflow.platform.stores.live_redis import open_redis

        return open_redis(url, access)
    if scheme in ("redis+cluster", "rediss+cluster"):
        from evenflow.platform.stores.live_redis import open_redis_cluster

        return open_redis_cluster(url, access)
    raise _unknown("live", scheme, "fake:, redis://host, redis+cluster://host:port,host:port or memory:")


def open_objects(url: str) -> Objects:
    """Objects by URL; see the module."""
    scheme, rest = _split(url, "objects")
    if scheme == "memory":
        from evenflow.platform.stores.memory import MemoryObjects

        return MemoryObjects()
    if scheme == "file":
        from evenflow.platform.stores.objects_obstore import open_folder

        return open_folder(_path(rest, "objects"))
    if scheme == "s3":
        from evenflow.platform.stores.objects_obstore import open_bucket

        parts = urlsplit(url)
        if not parts.netloc:
            raise FieldRefused("objects", "s3 needs a bucket, as s3://bucket/prefix")
        return open_bucket(parts.netloc, prefix=parts.path.strip("/"), options=dict(parse_qsl(parts.query)))
    raise _unknown("objects", scheme, "file:///dir, s3://bucket or memory:")


def _split(url: str, field: str) -> tuple[str, str]:
    scheme, colon, rest = url.partition(":")
    if not colon:
        raise FieldRefused(field, "must be a URL with a scheme")
    return scheme, rest


def _path(rest: str, field: str) -> Path:
    """`///dir` is absolute, `dir` relative; a host between slashes is refused."""
    if rest.startswith("//"):
        if not rest.startswith("///"):
            raise FieldRefused(field, "takes no host: write three slashes before an absolute path")
        rest = rest[2:]
    if not rest.strip("/"):
        raise FieldRefused(field, "needs a path")
    return Path(unquote(rest))


def _unknown(field: str, scheme: str, known: str) -> FieldRefused:
    return FieldRefused(field, f"scheme {scheme[:20]!r} is unknown; use {known}")
