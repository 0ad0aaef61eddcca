"""Images of the state in the object store: what bounds a restore. The log is the truth; an image may be missing.

An image is written while rounds go on, so it may hold rows newer than its offset. That does no harm: the tail from that
offset is applied over it, and the newest row of a key wins. Parts first, manifest last, digests in the manifest.

    placement/<pool>/image-<offset>/part-<i>      rows, each: length of key, length of value, key, value
    placement/<pool>/image-<offset>/manifest.json {offset, written_ms, state_version, parts: [{name, sha256}]}
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

from evenflow.core.errors import EvenflowError
from evenflow.placement.encoding import document_bytes, row_bytes, row_of
from evenflow.placement.memory.rows import STATE_VERSION, Row
from evenflow.platform.runtime import Runtime

ROWS_PER_PART: Final = 1_000
IMAGES_KEPT: Final = 2
IMAGES_TRIED: Final = 3
_LENGTHS: Final = struct.Struct(">II")


@dataclass(frozen=True, slots=True)
class Image:
    """A whole image: rows, and from which offset the tail continues it."""

    offset: int
    rows: list[tuple[str, Row]]


def _framed(key: bytes, value: bytes) -> bytes:
    return _LENGTHS.pack(len(key), len(value)) + key + value


def _unframed(data: bytes) -> Iterator[tuple[str, bytes]]:
    at = 0
    while at < len(data):
        key_length, value_length = _LENGTHS.unpack_from(data, at)
        at += _LENGTHS.size
        yield data[at : at + key_length].decode(), data[at + key_length : at + key_length + value_length]
        at += key_length + value_length


class Images:
    """Images of one pool."""

    def __init__(self, runtime: Runtime, pool: str) -> None:
        self._runtime = runtime
        self._prefix = f"placement/{pool}/"

    async def write(self, offset: int, keys: Sequence[str], row: Callable[[str], Row | None]) -> int:
        """Write an image that continues at `offset`; returns how many rows. Raises what the store raises."""
        runtime = self._runtime
        folder = f"{self._prefix}image-{offset:020d}/"
        await runtime.point(f"{runtime.name}.before-image")
        parts: list[dict[str, Any]] = []
        count = 0
        for start in range(0, max(1, len(keys)), ROWS_PER_PART):
            lines: list[bytes] = []
            for key in keys[start : start + ROWS_PER_PART]:
                found = row(key)
                if found is not None:
                    lines.append(_framed(key.encode(), row_bytes(found)))
            data = b"".join(lines)
            name = f"part-{len(parts)}"
            await runtime.objects.put(folder + name, data)
            parts.append({"name": name, "sha256": hashlib.sha256(data).hexdigest()})
            count += len(lines)
            await runtime.clock.sleep(0)
        manifest = {
            "offset": offset,
            "written_ms": runtime.clock.now_ms(),
            "state_version": STATE_VERSION,
            "parts": parts,
        }
        await runtime.objects.put(folder + "manifest.json", document_bytes(manifest))
        await runtime.point(f"{runtime.name}.after-image")
        await self._prune()
        return count

    async def newest(self, *, begin: int, end: int, age_ms_max: int) -> Image | None:
        """The newest image that is whole, not older than asked, and within the log's offsets."""
        runtime = self._runtime
        try:
            folders = await self._folders()
        except (EvenflowError, OSError) as error:
            runtime.log.warning("no state image read", problem=str(error))
            return None
        for folder in folders[-IMAGES_TRIED:][::-1]:
            try:
                image = await self._read(folder, begin=begin, end=end, age_ms_max=age_ms_max)
            except (EvenflowError, OSError, KeyError, ValueError, TypeError, struct.error) as error:
                runtime.log.warning("state image passed over", image=folder, problem=f"{type(error).__name__}: {error}")
                continue
            if image is not None:
                return image
        return None

    async def _read(self, folder: str, *, begin: int, end: int, age_ms_max: int) -> Image | None:
        objects, now_ms = self._runtime.objects, self._runtime.clock.now_ms()
        manifest: dict[str, Any] = from_json(await objects.get(folder + "manifest.json"))
        offset: int = manifest["offset"]
        if not begin <= offset <= end or manifest["state_version"] > STATE_VERSION:
            return None
        if abs(now_ms - manifest["written_ms"]) > age_ms_max:
            return None
        rows: list[tuple[str, Row]] = []
        for part in manifest["parts"]:
            data = await objects.get(folder + part["name"])
            if hashlib.sha256(data).hexdigest() != part["sha256"]:
                raise ValueError(f"{part['name']} has another digest than its manifest says")
            rows += [(key, row_of(key, value)) for key, value in _unframed(data)]
            await self._runtime.clock.sleep(0)
        return Image(offset, rows)

    async def _folders(self) -> list[str]:
        paths = await self._runtime.objects.paths(self._prefix)
        ending = "manifest.json"
        return sorted(path[: -len(ending)] for path in paths if path.endswith("/" + ending))

    async def _prune(self) -> None:
        """Delete all but the newest images: manifest first, so that none is ever half there."""
        for folder in (await self._folders())[:-IMAGES_KEPT]:
            await self._runtime.objects.delete(folder + "manifest.json")
            for path in await self._runtime.objects.paths(folder):
                await self._runtime.objects.delete(path)
