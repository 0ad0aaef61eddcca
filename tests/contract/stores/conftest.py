"""Every backend of every store port, so that one suite runs on all of them.

Memory, SQLite, the fake Redis and a folder are always there. Real servers join when their URL stands in the
environment (EVENFLOW_TEST_MONGODB_URL or MONGODB_URI, EVENFLOW_TEST_REDIS_URL,
EVENFLOW_TEST_REDIS_CLUSTER_URL, EVENFLOW_TEST_S3_URL), and are the only
ones with --servers.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evenflow.platform.stores.factory import open_documents, open_live, open_objects
from evenflow.platform.stores.ports import Documents, LiveLoad, Objects
from evenflow.testkit.servers.plugin import backends


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    sqlite = {"sqlite": "sqlite::memory:", "sqlite-file": "sqlite://DIR/documents.db"}
    backends(metafunc, "documents", {"memory": "memory:", **sqlite}, {"mongodb": "documents"})
    redis = {"redis": "redis", "redis-cluster": "redis-cluster"}
    backends(metafunc, "live", {"memory": "memory:", "fake": "fake:"}, redis)
    backends(metafunc, "objects", {"memory": "memory:", "folder": "file://DIR/objects"}, {"s3": "objects"})


@pytest.fixture
async def documents(backend_url: str, tmp_path: Path) -> AsyncIterator[Documents]:
    """An empty document store of each kind."""
    store = open_documents(backend_url.replace("DIR", str(tmp_path)))
    for collection in ("tasks", "nodes"):
        await store.drop(collection)
    yield store
    await store.close()


@pytest.fixture
async def live(backend_url: str) -> AsyncIterator[LiveLoad]:
    """An empty live-load store of each kind."""
    store = open_live(backend_url)
    await store.clear()
    yield store
    await store.close()


@pytest.fixture
async def objects(backend_url: str, tmp_path: Path) -> AsyncIterator[Objects]:
    """An empty object store of each kind; in a bucket, under a prefix that no other test has."""
    url = backend_url.replace("DIR", str(tmp_path))
    if url.startswith("s3:"):
        base, question, options = url.partition("?")
        url = f"{base.rstrip('/')}/{os.getpid():x}-{tmp_path.stat().st_mtime_ns}{question}{options}"
    store = open_objects(url)
    yield store
    await store.close()
