"""The manifest of a checkpoint: written last, so its presence says that every part was there.

    checkpoints/<tenant>/<task>/g<generation>/c<checkpoint>/part-<i> …
    checkpoints/<tenant>/<task>/g<generation>/c<checkpoint>/manifest.json

A checkpoint is good only if the manifest reads and every part is there with the length and SHA-256 it names.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from evenflow.core.errors import FieldRefused

PARTS_MAX: Final = 10_000
MANIFEST_NAME: Final = "manifest.json"


@dataclass(frozen=True, slots=True)
class ManifestPart:
    """One part: its name in the checkpoint's folder, stored length and SHA-256 in hexadecimal."""

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a checkpoint consists of. `size_bytes` is what it counts as (a simulated one stores less)."""

    tenant: str
    task: str
    attempt: int
    generation: int
    checkpoint: int
    progress_ms: int
    size_bytes: int
    parts: tuple[ManifestPart, ...]


def task_folder(tenant: str, task: str) -> str:
    """The folder of all of a task's checkpoints, ending in '/'."""
    return f"checkpoints/{tenant}/{task}/"


def generation_folder(tenant: str, task: str, generation: int) -> str:
    """The folder of all checkpoints that one generation wrote, ending in '/'."""
    return f"{task_folder(tenant, task)}g{generation:06d}/"


def folder(tenant: str, task: str, generation: int, checkpoint: int) -> str:
    """The folder of one checkpoint, ending in '/'."""
    return f"{generation_folder(tenant, task, generation)}c{checkpoint:06d}/"


def part_of(name: str, data: bytes) -> ManifestPart:
    """A part's line of the manifest."""
    return ManifestPart(name, len(data), hashlib.sha256(data).hexdigest())


def write_manifest(manifest: Manifest) -> bytes:
    """A manifest as bytes."""
    body = {
        "tenant": manifest.tenant,
        "task": manifest.task,
        "attempt": manifest.attempt,
        "generation": manifest.generation,
        "checkpoint": manifest.checkpoint,
        "progress_ms": manifest.progress_ms,
        "size_bytes": manifest.size_bytes,
        "parts": [{"name": p.name, "size_bytes": p.size_bytes, "sha256": p.sha256} for p in manifest.parts],
    }
    return json.dumps(body, separators=(",", ":"), sort_keys=True).encode()


def read_manifest(data: bytes) -> Manifest:
    """Bytes as a manifest; FieldRefused says what is wrong with them."""
    try:
        body: Mapping[str, Any] = json.loads(data)
        if len(body["parts"]) > PARTS_MAX:
            raise FieldRefused("manifest", f"names {len(body['parts'])} parts, at most {PARTS_MAX} are read")
        parts = tuple(ManifestPart(str(p["name"]), int(p["size_bytes"]), str(p["sha256"])) for p in body["parts"])
        return Manifest(
            tenant=str(body["tenant"]),
            task=str(body["task"]),
            attempt=int(body["attempt"]),
            generation=int(body["generation"]),
            checkpoint=int(body["checkpoint"]),
            progress_ms=int(body["progress_ms"]),
            size_bytes=int(body["size_bytes"]),
            parts=parts,
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise FieldRefused("manifest", f"can't be read: {type(error).__name__}") from None


def problem_of(part: ManifestPart, data: bytes | None) -> str:
    """What is wrong with a part's stored bytes (None = not there); empty when nothing is."""
    if data is None:
        return f"{part.name} is missing"
    if len(data) != part.size_bytes:
        return f"{part.name} has {len(data)} of {part.size_bytes} bytes"
    if hashlib.sha256(data).hexdigest() != part.sha256:
        return f"{part.name} has another digest"
    return ""
