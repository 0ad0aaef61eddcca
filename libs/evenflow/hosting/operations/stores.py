"""Stores whose calls are told as spans, where they belong to a trace: a request's, a record's, a batch's.

What services do by the clock (views, images) begins no trace of its own. Paths and ids are not told.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

from opentelemetry.trace import SpanKind

from evenflow.events.contract import Document
from evenflow.platform.observability.trace import Tracing, current_trace
from evenflow.platform.stores.ports import Documents, Objects, ObjectVersion, Stored

T = TypeVar("T")


class _Told:
    """Awaits a call inside a span."""

    def __init__(self, tracing: Tracing, system: str) -> None:
        self._tracing = tracing
        self._system = system

    async def __call__(self, operation: str, call: Awaitable[T], size: int = 0) -> T:
        trace = current_trace()
        if trace is None or not trace.trace_flags.sampled:
            return await call
        about: dict[str, str | int | bool] = {"evenflow.store": self._system}
        if size:
            about["evenflow.size_bytes"] = size
        with self._tracing.span(f"{self._system} {operation}", attributes=about, kind=SpanKind.CLIENT):
            return await call


class TracedDocuments:
    """A document store, told."""

    def __init__(self, inner: Documents, tracing: Tracing) -> None:
        self._inner = inner
        self._told = _Told(tracing, "documents")
        self.scan = inner.scan
        self.drop = inner.drop
        self.close = inner.close

    async def get(self, collection: str, id: str) -> Stored | None:
        """As the port says."""
        return await self._told("get", self._inner.get(collection, id))

    async def put(self, collection: str, id: str, body: Document, *, expect: int | None = None) -> int:
        """As the port says."""
        return await self._told("put", self._inner.put(collection, id, body, expect=expect))

    async def put_many(self, collection: str, bodies: Mapping[str, Document]) -> None:
        """As the port says."""
        await self._told("put many", self._inner.put_many(collection, bodies))

    async def delete(self, collection: str, id: str) -> bool:
        """As the port says."""
        return await self._told("delete", self._inner.delete(collection, id))


class TracedObjects:
    """An object store, told."""

    def __init__(self, inner: Objects, tracing: Tracing) -> None:
        self._inner = inner
        self._told = _Told(tracing, "objects")
        self.paths = inner.paths
        self.versions = inner.versions
        self.rollback = inner.rollback
        self.close = inner.close

    async def put(self, path: str, data: bytes, *, create: bool = False) -> None:
        """As the port says."""
        await self._told("put", self._inner.put(path, data, create=create), len(data))

    async def get(self, path: str) -> bytes:
        """As the port says."""
        return await self._told("get", self._inner.get(path))

    async def delete(self, path: str) -> None:
        """As the port says."""
        await self._told("delete", self._inner.delete(path))

    async def put_version(self, key: str, data: bytes, meta: Mapping[str, Any]) -> ObjectVersion:
        """As the port says."""
        return await self._told("put version", self._inner.put_version(key, data, meta), len(data))

    async def get_version(self, key: str, number: int | None = None) -> tuple[bytes, ObjectVersion]:
        """As the port says."""
        return await self._told("get version", self._inner.get_version(key, number))
