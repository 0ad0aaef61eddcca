"""The object store as one node reaches it: away while the node's site is cut off."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evenflow.core.errors import Unavailable
from evenflow.platform.stores.ports import Objects, ObjectVersion


class SiteObjects:
    """Passes every call on while `reached` says so. See `platform.stores.ports.Objects`."""

    def __init__(self, objects: Objects, reached: Callable[[], bool]) -> None:
        self._objects = objects
        self._reached = reached

    def _check(self) -> None:
        if not self._reached():
            raise Unavailable("the object store can't be reached from here", store="objects")

    async def put(self, path: str, data: bytes, *, create: bool = False) -> None:
        """Write whole or not at all."""
        self._check()
        await self._objects.put(path, data, create=create)

    async def get(self, path: str) -> bytes:
        """The bytes."""
        self._check()
        return await self._objects.get(path)

    async def delete(self, path: str) -> None:
        """Remove."""
        self._check()
        await self._objects.delete(path)

    async def paths(self, prefix: str) -> list[str]:
        """Paths under a prefix."""
        self._check()
        return await self._objects.paths(prefix)

    async def put_version(self, key: str, data: bytes, meta: Mapping[str, Any]) -> ObjectVersion:
        """Write one more version."""
        self._check()
        return await self._objects.put_version(key, data, meta)

    async def get_version(self, key: str, number: int | None = None) -> tuple[bytes, ObjectVersion]:
        """Read a version."""
        self._check()
        return await self._objects.get_version(key, number)

    async def versions(self, key: str) -> list[ObjectVersion]:
        """All versions."""
        self._check()
        return await self._objects.versions(key)

    async def rollback(self, key: str, number: int, meta: Mapping[str, Any]) -> ObjectVersion:
        """An old version again."""
        self._check()
        return await self._objects.rollback(key, number, meta)

    async def close(self) -> None:
        """Nothing of its own to close."""
