"""Store ports: documents, live load, versioned objects. Views only; the log is the truth.

Each port has one behaviour suite in `tests/contract/stores`, run against every backend.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evenflow.core.errors import Refused

Document = dict[str, Any]


class Absent(Refused, KeyError):
    """No object has that path, or no version that number."""

    code = "absent"

    def __str__(self) -> str:
        """The message without the quotes that KeyError puts around it."""
        return self.message


class Damaged(Refused, ValueError):
    """The bytes in the store are not those that were written: digest, size or manifest differ."""

    code = "damaged"


@dataclass(frozen=True, slots=True)
class Stored:
    """A document with its version; versions start at 1 and grow by 1 with each write."""

    id: str
    version: int
    body: Document


class Documents(Protocol):
    """JSON documents by collection and id. No secondary index is needed for correctness."""

    async def get(self, collection: str, id: str) -> Stored | None: ...
    async def put(self, collection: str, id: str, body: Document, *, expect: int | None = None) -> int:
        """Write and return the new version.

        `expect` is the version that must be there (0 = must be absent); otherwise Conflict. Unavailable when the store
        is away.
        """

    async def put_many(self, collection: str, bodies: Mapping[str, Document]) -> None:
        """Write all, last one wins; one round trip."""

    async def delete(self, collection: str, id: str) -> bool: ...
    def scan(self, collection: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> AsyncIterator[Stored]:
        """Documents in order of id, ids greater than `after`, at most `limit`."""

    async def drop(self, collection: str) -> None: ...
    async def close(self) -> None: ...


class LiveLoad(Protocol):
    """Packed frames of live node load, one per site, with a version that grows by one with each write."""

    async def put_frame(self, site: str, frame: bytes, *, written_ms: int) -> int: ...
    async def frames(self, sites: Sequence[str]) -> dict[str, tuple[int, int, bytes]]:
        """site → (version, written_ms, frame); sites without a frame are absent."""

    async def sites(self) -> list[str]:
        """Sites that have a frame, in order of name."""

    async def clear(self) -> None: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """One version of a named object: numbered from 1, content by digest."""

    key: str
    number: int
    sha256: str
    size: int
    meta: Mapping[str, Any]


class Objects(Protocol):
    """Immutable bytes by path, and named objects with numbered versions made of them."""

    async def put(self, path: str, data: bytes, *, create: bool = False) -> None:
        """Write whole or not at all. With `create`, Conflict if the path exists."""

    async def get(self, path: str) -> bytes:
        """The bytes; Absent (a KeyError) when there are none, Unavailable when the store is away."""

    async def delete(self, path: str) -> None:
        """Remove; absent is no error."""

    async def paths(self, prefix: str) -> list[str]:
        """Paths under a prefix ending in '/', in order."""

    async def put_version(self, key: str, data: bytes, meta: Mapping[str, Any]) -> ObjectVersion: ...
    async def get_version(self, key: str, number: int | None = None) -> tuple[bytes, ObjectVersion]:
        """The newest, or the numbered one; verifies the digest. Raises Absent, or Damaged (a ValueError)."""

    async def versions(self, key: str) -> list[ObjectVersion]: ...
    async def rollback(self, key: str, number: int, meta: Mapping[str, Any]) -> ObjectVersion: ...
    async def close(self) -> None: ...
