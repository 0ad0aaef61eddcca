"""Named objects with numbered versions, on any store that can create a path once.

    _blobs/<2 hex>/<sha256>                 the bytes, shared by all versions with that content
    _versions/<key>/_/<10 digits>.json      {"sha256": …, "size": …, "meta": {…}}, created, never overwritten

The manifest is written last and creating it is the commit: two writers can't take one number. Users' paths never start
with '_', so no key can be mistaken for one of these. Nothing here needs a bucket with versioning.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final

from evenflow.core.errors import Conflict, Unavailable
from evenflow.platform.stores import limits
from evenflow.platform.stores.ports import Absent, Damaged, ObjectVersion

_MANIFEST: Final = re.compile(r"[0-9]{10}\.json")


class VersionedObjects(ABC):
    """The Objects port, given four primitive operations on unchecked paths."""

    @abstractmethod
    async def _write(self, path: str, data: bytes, *, create: bool) -> None: ...
    @abstractmethod
    async def _read(self, path: str) -> bytes: ...
    @abstractmethod
    async def _remove(self, path: str) -> None: ...
    @abstractmethod
    async def _sizes(self, prefix: str) -> dict[str, int]:
        """path → bytes of every object under the prefix, in any order."""

    async def put(self, path: str, data: bytes, *, create: bool = False) -> None:
        """Write whole or not at all; see the port."""
        limits.check_path(path)
        limits.check_object(data)
        await self._write(path, data, create=create)

    async def get(self, path: str) -> bytes:
        """The bytes; raises Absent."""
        limits.check_path(path)
        return await self._read(path)

    async def delete(self, path: str) -> None:
        """Remove; absent is no error."""
        limits.check_path(path)
        await self._remove(path)

    async def paths(self, prefix: str) -> list[str]:
        """Users' paths under the prefix, in order."""
        limits.check_prefix(prefix)
        return sorted(path for path in await self._sizes(prefix) if not path.startswith("_"))

    async def put_version(self, key: str, data: bytes, meta: Mapping[str, Any]) -> ObjectVersion:
        """Add a version with the next number; raises Unavailable after too many lost races."""
        limits.check_path(key)
        limits.check_object(data)
        digest = hashlib.sha256(data).hexdigest()
        folder = f"_blobs/{digest[:2]}/"
        # A blob of another size is damaged; writing it again heals it for every version that shares it.
        if (await self._sizes(folder)).get(folder + digest) != len(data):
            await self._write(folder + digest, data, create=False)
        return await self._commit(key, digest, len(data), meta)

    async def get_version(self, key: str, number: int | None = None) -> tuple[bytes, ObjectVersion]:
        """The newest or the numbered version, its digest verified."""
        limits.check_path(key)
        if number is None:
            numbers = await self._numbers(key)
            if not numbers:
                raise Absent(f"{key} has no version", key=key)
            number = numbers[-1]
        version = await self._manifest(key, number)
        try:
            data = await self._read(f"_blobs/{version.sha256[:2]}/{version.sha256}")
        except Absent as error:
            raise Damaged(f"{key} version {number}: its content is gone", key=key, number=number) from error
        if len(data) != version.size or hashlib.sha256(data).hexdigest() != version.sha256:
            raise Damaged(f"{key} version {number}: content does not match its digest", key=key, number=number)
        return data, version

    async def versions(self, key: str) -> list[ObjectVersion]:
        """Every version, oldest first."""
        limits.check_path(key)
        return [await self._manifest(key, number) for number in await self._numbers(key)]

    async def rollback(self, key: str, number: int, meta: Mapping[str, Any]) -> ObjectVersion:
        """Add a version with an older one's content, after verifying it; its meta gains `rollback_of`."""
        _, old = await self.get_version(key, number)
        return await self._commit(key, old.sha256, old.size, {**meta, "rollback_of": number})

    async def _commit(self, key: str, digest: str, size: int, meta: Mapping[str, Any]) -> ObjectVersion:
        manifest = limits.encode_body({"sha256": digest, "size": size, "meta": dict(meta)}).encode()
        numbers = await self._numbers(key)
        number = numbers[-1] + 1 if numbers else 1
        for _ in range(limits.VERSION_TRIES_MAX):
            try:
                await self._write(_manifest_path(key, number), manifest, create=True)
            except Conflict:
                number += 1
            else:
                return ObjectVersion(key, number, digest, size, dict(meta))
        raise Unavailable(f"{key}: {limits.VERSION_TRIES_MAX} version numbers in a row were taken by others", key=key)

    async def _numbers(self, key: str) -> list[int]:
        folder = f"_versions/{key}/_/"
        names = (path[len(folder) :] for path in await self._sizes(folder))
        return sorted(int(name[:-5]) for name in names if _MANIFEST.fullmatch(name))  # what else lies there is not ours

    async def _manifest(self, key: str, number: int) -> ObjectVersion:
        try:
            text = await self._read(_manifest_path(key, number))
        except Absent as error:
            raise Absent(f"{key} has no version {number}", key=key, number=number) from error
        try:
            value = json.loads(text)
            return ObjectVersion(key, number, str(value["sha256"]), int(value["size"]), dict(value["meta"]))
        except (ValueError, KeyError, TypeError) as error:
            raise Damaged(f"{key} version {number}: unreadable manifest", key=key, number=number) from error


def _manifest_path(key: str, number: int) -> str:
    return f"_versions/{key}/_/{number:010d}.json"
