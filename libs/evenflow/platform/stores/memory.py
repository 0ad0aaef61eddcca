"""The three ports in memory, deterministic, for the simulation: same suites as the real ones, with faults to switch on.

They keep encoded text and bytes, so no caller shares a mutable value with the store. A batch is applied in two parts
with a gap between them, because a real server's batch may be seen or cut half way.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Mapping, Sequence

from evenflow.core.errors import Conflict
from evenflow.platform.stores import limits
from evenflow.platform.stores.faults import Faults, Gap, no_gap
from evenflow.platform.stores.pages import Page
from evenflow.platform.stores.ports import Absent, Document, Stored
from evenflow.platform.stores.versions import VersionedObjects


class MemoryDocuments:
    """The Documents port over dictionaries; `faults` holds the switches."""

    def __init__(self, gap: Gap = no_gap) -> None:
        self.faults = Faults("documents", gap)
        self._rows: dict[str, dict[str, tuple[int, str]]] = {}

    def wipe(self) -> None:
        """Lose everything, at once."""
        self._rows.clear()

    async def get(self, collection: str, id: str) -> Stored | None:
        """The document, or None."""
        limits.check_collection(collection)
        limits.check_id(id)
        row = await self.faults.read(lambda: self._rows.get(collection, {}).get(id))
        return None if row is None else Stored(id, row[0], limits.decode_body(row[1]))

    async def put(self, collection: str, id: str, body: Document, *, expect: int | None = None) -> int:
        """Write one document; see the port."""
        limits.check_collection(collection)
        limits.check_id(id)
        text = limits.encode_body(body)

        def effect() -> int:
            version = self._rows.get(collection, {}).get(id, (0, ""))[0]
            if expect is not None and expect != version:
                raise Conflict(
                    f"{collection}/{id} is not at version {expect}", collection=collection, id=id, expect=expect
                )
            self._keep(collection, id, text)
            return version + 1

        return await self.faults.write([{**body, "collection": collection, "id": id}], effect, (expect or 0) + 1)

    async def put_many(self, collection: str, bodies: Mapping[str, Document]) -> None:
        """Write all, in two parts."""
        limits.check_collection(collection)
        limits.check_batch(len(bodies))
        rows: list[tuple[str, str]] = []
        subjects: list[dict[str, object]] = []
        for id_, body in bodies.items():
            limits.check_id(id_)
            rows.append((id_, limits.encode_body(body)))
            subjects.append({**body, "collection": collection, "id": id_})
        half = len(rows) // 2
        for start, end in ((0, half), (half, len(rows))):

            def effect(start: int = start, end: int = end) -> None:
                for id_, text in rows[start:end]:
                    self._keep(collection, id_, text)

            if start < end:
                await self.faults.write(subjects[start:end], effect, None)

    async def delete(self, collection: str, id: str) -> bool:
        """Remove; True when it was there."""
        limits.check_collection(collection)
        limits.check_id(id)
        return await self.faults.write(
            [{"collection": collection, "id": id}],
            lambda: self._rows.get(collection, {}).pop(id, None) is not None,
            swallowed=True,
        )

    def scan(self, collection: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> AsyncIterator[Stored]:
        """One page in order of id."""
        limits.check_collection(collection)
        limits.check_page(prefix, after, limit)

        def effect() -> list[Stored]:
            rows = self._rows.get(collection, {})
            ids = (id_ for id_ in sorted(rows) if id_ > after and id_.startswith(prefix))
            return [Stored(id_, rows[id_][0], limits.decode_body(rows[id_][1])) for id_ in itertools.islice(ids, limit)]

        return Page(lambda: self.faults.read(effect))

    async def drop(self, collection: str) -> None:
        """Remove every document of the collection."""
        limits.check_collection(collection)
        await self.faults.write([{"collection": collection}], lambda: self._rows.pop(collection, None), None)

    async def close(self) -> None:
        """Nothing to close: a restarted process finds what was written."""

    def _keep(self, collection: str, id_: str, text: str) -> None:
        rows = self._rows.setdefault(collection, {})
        rows[id_] = (rows.get(id_, (0, ""))[0] + 1, text)


class MemoryLiveLoad:
    """The LiveLoad port over a dictionary."""

    def __init__(self, gap: Gap = no_gap) -> None:
        self.faults = Faults("live", gap)
        self._frames: dict[str, tuple[int, int, bytes]] = {}

    def wipe(self) -> None:
        """Lose everything, at once."""
        self._frames.clear()

    async def put_frame(self, site: str, frame: bytes, *, written_ms: int) -> int:
        """Replace the site's frame and return its version."""
        limits.check_site(site)
        limits.check_frame(frame)

        def effect() -> int:
            version = self._frames.get(site, (0, 0, b""))[0] + 1
            self._frames[site] = (version, written_ms, bytes(frame))
            return version

        return await self.faults.write([{"site": site}], effect, self._frames.get(site, (0, 0, b""))[0] + 1)

    async def frames(self, sites: Sequence[str]) -> dict[str, tuple[int, int, bytes]]:
        """Frames of those sites that have one."""
        for site in sites:
            limits.check_site(site)
        return await self.faults.read(lambda: {site: self._frames[site] for site in sites if site in self._frames})

    async def sites(self) -> list[str]:
        """Sites that have a frame, in order."""
        return await self.faults.read(lambda: sorted(self._frames))

    async def clear(self) -> None:
        """Remove every frame."""
        await self.faults.write([{}], self._frames.clear, None)

    async def close(self) -> None:
        """Nothing to close."""


class MemoryObjects(VersionedObjects):
    """The Objects port over a dictionary."""

    def __init__(self, gap: Gap = no_gap) -> None:
        self.faults = Faults("objects", gap)
        self._data: dict[str, bytes] = {}

    def wipe(self) -> None:
        """Lose everything, at once."""
        self._data.clear()

    def contents(self, prefix: str) -> dict[str, bytes]:
        """What lies under users' paths, in order, seen past the store: whether it answers or not."""
        return {p: self._data[p] for p in sorted(self._data) if p.startswith(prefix) and not p.startswith("_")}

    def lay(self, path: str, data: bytes) -> None:
        """Put bytes there behind the store's back, whether it answers or not."""
        self._data[path] = data

    async def close(self) -> None:
        """Nothing to close."""

    async def _write(self, path: str, data: bytes, *, create: bool) -> None:
        def effect() -> None:
            if create and path in self._data:
                raise Conflict(f"{path} exists", path=path)
            self._data[path] = bytes(data)

        await self.faults.write([{"path": path}], effect, None)

    async def _read(self, path: str) -> bytes:
        data = await self.faults.read(lambda: self._data.get(path))
        if data is None:
            raise Absent(f"{path} is absent", path=path)
        return data

    async def _remove(self, path: str) -> None:
        await self.faults.write([{"path": path}], lambda: self._data.pop(path, None), None)

    async def _sizes(self, prefix: str) -> dict[str, int]:
        return await self.faults.read(
            lambda: {path: len(data) for path, data in self._data.items() if path.startswith(prefix)}
        )
