"""Every backend of every store port, so that one suite runs on all of them.

Memory, SQLite, the fake Redis and a folder are always there. Real servers join when their URL stands in the
environment: EVENFLOW_TEST_MONGODB_URL, EVENFLOW_TEST_REDIS_URL, EVENFLOW_TEST_S3_URL.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evenflow.platform.stores.factory import open_documents, open_live, open_objects
from evenflow.platform.stores.ports import Documents, LiveLoad, Objects


def _urls(here: list[str], variable: str) -> list[str]:
    server = os.environ.get(variable)
    return [*here, server] if server else here


def _name(url: str) -> str:
    return url.split("DIR", maxsplit=1)[0].split("//", maxsplit=1)[0].strip(":") + ("-file" if "DIR" in url else "")


def _placed(request: pytest.FixtureRequest, folder: Path) -> str:
    return str(request.param).replace("DIR", str(folder))


@pytest.fixture(
    params=_urls(["memory:", "sqlite::memory:", "sqlite://DIR/documents.db"], "EVENFLOW_TEST_MONGODB_URL"), ids=_name
)
async def documents(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Documents]:
    """An empty document store of each kind."""
    store = open_documents(_placed(request, tmp_path))
    for collection in ("tasks", "nodes"):
        await store.drop(collection)
    yield store
    await store.close()


@pytest.fixture(params=_urls(["memory:", "fake:"], "EVENFLOW_TEST_REDIS_URL"), ids=_name)
async def live(request: pytest.FixtureRequest) -> AsyncIterator[LiveLoad]:
    """An empty live-load store of each kind."""
    store = open_live(str(request.param))
    await store.clear()
    yield store
    await store.close()


@pytest.fixture(params=_urls(["memory:", "file://DIR/objects"], "EVENFLOW_TEST_S3_URL"), ids=_name)
async def objects(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Objects]:
    """An empty object store of each kind; in a bucket, under a prefix that no other test has."""
    url = _placed(request, tmp_path)
    if url.startswith("s3:"):
        base, question, options = url.partition("?")
        url = f"{base.rstrip('/')}/{tmp_path.stat().st_mtime_ns}{question}{options}"
    store = open_objects(url)
    yield store
    await store.close()
