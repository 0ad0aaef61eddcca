"""A real checkpoint: what a task put into its checkpoint folder, cut into parts, and put back at a resume.

The contract with the task: write aside (a name that begins with a dot or ends in `.tmp`), then rename. A file or folder
that appears under another name is complete. Part 1 is an index of the files; the others are their bytes in order.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from evenflow.core.errors import FieldRefused, Refused

PART_BYTES: Final = 8 * 1024 * 1024
FILES_MAX: Final = 10_000
SNAPSHOT_BYTES_MAX: Final = 2 * 1024**3
UNFINISHED: Final = (".tmp", ".part", ".partial")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One complete entry. `identity` tells it from another one that took its name later."""

    path: Path
    identity: str
    size_bytes: int
    parts: tuple[Callable[[], bytes], ...]


def appeared(folder: Path, known: Sequence[str]) -> tuple[Path | None, list[str]]:
    """The newest complete entry that is not known, and the identities of all that are there now."""
    newest: tuple[int, str, Path] | None = None
    identities: list[str] = []
    if not folder.is_dir():
        return None, identities
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name.endswith(UNFINISHED) or path.is_symlink():
            continue
        status = path.stat()
        identity = f"{path.name}:{status.st_ino}:{status.st_mtime_ns}"
        identities.append(identity)
        if identity not in known and (newest is None or (status.st_mtime_ns, path.name) > newest[:2]):
            newest = (status.st_mtime_ns, path.name, path)
    return (newest[2] if newest is not None else None), identities


def snapshot_of(path: Path) -> Snapshot:
    """Cut an entry into parts; raises Refused when it is too large, OSError when it vanishes."""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file() and not p.is_symlink())
    if len(files) > FILES_MAX:
        raise Refused(f"checkpoint {path.name} has {len(files)} files, at most {FILES_MAX}")
    rows: list[dict[str, object]] = []
    parts: list[Callable[[], bytes]] = []
    total = 0
    for file in files:
        status = file.stat()
        name = file.name if path.is_file() else file.relative_to(path).as_posix()
        total += status.st_size
        if total > SNAPSHOT_BYTES_MAX:
            raise Refused(f"checkpoint {path.name} is larger than {SNAPSHOT_BYTES_MAX} bytes")
        offsets = range(0, status.st_size, PART_BYTES)
        rows.append({"path": name, "mode": stat.S_IMODE(status.st_mode), "parts": len(offsets)})
        parts += [_reader(file, offset, min(PART_BYTES, status.st_size - offset)) for offset in offsets]
    status = path.stat()
    index = json.dumps({"name": path.name, "files": rows}, separators=(",", ":")).encode()
    identity = f"{path.name}:{status.st_ino}:{status.st_mtime_ns}"
    return Snapshot(path, identity, total, (lambda: index, *parts))


def _reader(file: Path, offset: int, size: int) -> Callable[[], bytes]:
    def read() -> bytes:
        with file.open("rb") as source:
            source.seek(offset)
            data = source.read(size)
        if len(data) != size:
            raise OSError(f"{file.name} changed while it was saved")
        return data

    return read


def _within(folder: Path, path: PurePosixPath) -> Path:
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{path} leads outside")
    return folder / path


def restore(parts: Sequence[bytes], folder: Path) -> None:
    """Put a snapshot's files under `folder`; raises FieldRefused when the parts are no snapshot."""
    try:
        rows = json.loads(parts[0])["files"]
        taken = 1
        for row in rows:
            path, count = PurePosixPath(row["path"]), int(row["parts"])
            target = _within(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as sink:
                for data in parts[taken : taken + count]:
                    sink.write(data)
            target.chmod(int(row["mode"]) & 0o777)
            taken += count
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise FieldRefused("checkpoint", f"holds no files of a process: {error}") from error
