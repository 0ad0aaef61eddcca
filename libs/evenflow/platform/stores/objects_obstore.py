"""Objects on obstore: a local folder, or any S3-compatible store.

A folder is called synchronously (a put of 64 KiB is well below a millisecond), which works on every event loop, the
virtual-time one included. A remote store is awaited: a synchronous call would hold the service's loop, and with it
heartbeats and consumer groups, for a network's time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, cast

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    InvalidPathError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import LocalStore, S3Store

from evenflow.core.errors import Conflict, Refused, Unavailable
from evenflow.platform.stores.ports import Absent
from evenflow.platform.stores.versions import VersionedObjects

REQUEST_S: Final = 30
CONNECT_S: Final = 3
RETRY_S: Final = 20
RETRY_COUNT: Final = 3
LIST_CHUNK_COUNT: Final = 1000


class ObstoreObjects(VersionedObjects):
    """The Objects port over one obstore store."""

    def __init__(self, store: LocalStore | S3Store) -> None:
        self._store = store
        self._local = isinstance(store, LocalStore)

    async def close(self) -> None:
        """Nothing to close."""

    async def _write(self, path: str, data: bytes, *, create: bool) -> None:
        mode: Any = "create" if create else "overwrite"
        with _errors(path):
            if self._local:
                obstore.put(self._store, path, data, mode=mode)
            else:
                await obstore.put_async(self._store, path, data, mode=mode)

    async def _read(self, path: str) -> bytes:
        with _errors(path):
            if self._local:
                return bytes(obstore.get(self._store, path).bytes())
            result = await obstore.get_async(self._store, path)
            return bytes(await result.bytes_async())

    async def _remove(self, path: str) -> None:
        with contextlib.suppress(Absent), _errors(path):
            if self._local:
                obstore.delete(self._store, path)
            else:
                await obstore.delete_async(self._store, path)

    async def _sizes(self, prefix: str) -> dict[str, int]:
        found: dict[str, int] = {}
        with _errors(prefix):
            stream = obstore.list(self._store, prefix or None, chunk_size=LIST_CHUNK_COUNT)
            if self._local:
                for chunk in stream:
                    found.update((meta["path"], meta["size"]) for meta in chunk)
            else:
                async for chunk in stream:
                    found.update((meta["path"], meta["size"]) for meta in chunk)
        return found


def open_folder(root: Path) -> ObstoreObjects:
    """Objects in a folder, made if absent; raises Unavailable when it can't be."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        return ObstoreObjects(LocalStore(root))
    except (OSError, BaseError) as error:
        raise Unavailable(f"object folder {root}: {_first_line(error)}") from error


def open_bucket(bucket: str, *, prefix: str = "", options: dict[str, str] | None = None) -> ObstoreObjects:
    """Objects in a bucket. `options` are obstore's S3 settings, as endpoint; keys come from the environment."""
    config = cast("Any", options or {})
    store = S3Store(
        bucket,
        prefix=prefix or None,
        config=config,
        client_options={
            "timeout": timedelta(seconds=REQUEST_S),
            "connect_timeout": timedelta(seconds=CONNECT_S),
            "allow_http": (options or {}).get("endpoint", "").startswith("http://"),
        },
        retry_config={"max_retries": RETRY_COUNT, "retry_timeout": timedelta(seconds=RETRY_S)},
    )
    return ObstoreObjects(store)


@contextlib.contextmanager
def _errors(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise Absent(f"{path} is absent", path=path) from error
    except AlreadyExistsError as error:
        raise Conflict(f"{path} exists", path=path) from error
    except (InvalidPathError, NotSupportedError) as error:
        raise Refused(f"{path}: {_first_line(error)}", path=path) from error
    except (PermissionDeniedError, UnauthenticatedError, PermissionError) as error:
        raise Unavailable(
            f"object store, {path}: it may only be read, or not even that: give our keys leave to write there; this "
            f"goes on then ({_first_line(error)})",
            path=path,
        ) from error
    except (BaseError, OSError) as error:
        raise Unavailable(f"object store, {path}: {_first_line(error)}", path=path) from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
