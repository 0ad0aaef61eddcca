"""The archive in the object store: what expires or is compacted away, as immutable objects with their offsets.

One object is one run of a partition's records: `archive/<topic>/<partition>/<first>-<last>-<sha256>.jsonl`, offsets in
twenty digits. Each line is one record; bytes that are not text are base64. The same run written again after a crash has
the same bytes and so the same name, which is no conflict. Rebuilding a view is reading the archive and then the log
from the offset behind it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from evenflow.core.errors import Conflict
from evenflow.platform.broker.embedded.records import LogRecord
from evenflow.platform.stores.ports import Damaged

if TYPE_CHECKING:
    from evenflow.platform.broker.ports import Record
    from evenflow.platform.stores.ports import Objects


class ObjectArchive:
    """An archive for `hooks.Archive`; `keeps` says which topics are archived."""

    def __init__(self, objects: Objects, keeps: Callable[[str], bool]) -> None:
        self._objects = objects
        self._keeps = keeps

    def keeps(self, topic: str) -> bool:
        """Whether this topic is archived."""
        return self._keeps(topic)

    async def archive(self, topic: str, partition: int, records: Sequence[Record]) -> None:
        """Write one object. Raises Unavailable when the store is away."""
        data = encode_records(records)
        digest = hashlib.sha256(data).hexdigest()
        name = f"{_folder(topic, partition)}{records[0].offset:020d}-{records[-1].offset:020d}-{digest}.jsonl"
        try:
            await self._objects.put(name, data, create=True)
        except Conflict:
            # The name holds the digest: what is there already is this run, unless the store damaged it.
            if hashlib.sha256(await self._objects.get(name)).hexdigest() != digest:
                await self._objects.put(name, data)


async def read_archive(objects: Objects, topic: str, partition: int, first: int = 0) -> AsyncIterator[LogRecord]:
    """The archived records of a partition from `first` on, each once. Raises Damaged for an object that was changed."""
    behind = first - 1
    for path in await objects.paths(_folder(topic, partition)):
        if int(path.rsplit("-", 2)[1]) <= behind:
            continue
        data = await objects.get(path)
        if hashlib.sha256(data).hexdigest() != path.rsplit("-", 1)[1].removesuffix(".jsonl"):
            message = f"the archive's object {path} is not what was written"
            raise Damaged(message)
        for record in decode_records(topic, partition, data):
            if record.offset > behind:
                behind = record.offset
                yield record


def _folder(topic: str, partition: int) -> str:
    return f"archive/{topic}/{partition}/"


def encode_records(records: Iterable[Record]) -> bytes:
    """Records as lines of JSON, the same bytes for the same records."""
    lines = [
        {
            "offset": record.offset,
            "timestamp_ms": record.timestamp,
            "key": _text(record.key),
            "value": _text(record.value),
            "headers": [[name, _text(content)] for name, content in record.headers],
        }
        for record in records
    ]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()


def decode_records(topic: str, partition: int, data: bytes) -> list[LogRecord]:
    """The reverse of `encode_records`."""
    records = []
    for line in data.decode().splitlines():
        row = json.loads(line)
        headers = [(name, _bytes(content)) for name, content in row["headers"]]
        key, value = _bytes(row["key"]), _bytes(row["value"])
        records.append(LogRecord(topic, partition, row["offset"], row["timestamp_ms"], key, value, headers))
    return records


def _text(content: bytes | None) -> Any:
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _bytes(content: Any) -> Any:
    if isinstance(content, dict):
        return base64.b64decode(content["base64"])
    return None if content is None else content.encode()
