"""Servers that are away or answer with an error: Unavailable in bounded time, Refused only for a wrong document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from bson.errors import InvalidDocument
from pymongo.errors import AutoReconnect, BulkWriteError, OperationFailure, PyMongoError, WriteConcernError

from evenflow.core.errors import EvenflowError, Refused, Unavailable
from evenflow.platform.stores import documents_mongo, objects_obstore
from evenflow.platform.stores.factory import open_documents, open_live, open_objects

Call = Callable[[], Awaitable[object]]


async def _unavailable(*calls: Call) -> None:
    for call in calls:
        with pytest.raises(Unavailable) as caught:
            await call()
        assert "hunter2" not in str(caught.value)


async def test_an_absent_mongodb_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the connection's bound, and no message holds the password."""
    monkeypatch.setattr(documents_mongo, "CONNECT_MS", 100)
    store = open_documents("mongodb://u:hunter2@127.0.0.1:1/x")

    async def scan() -> object:
        return [row async for row in store.scan("tasks")]

    await _unavailable(
        lambda: store.get("tasks", "t"),
        lambda: store.put("tasks", "t", {}),
        lambda: store.put_many("tasks", {"t": {}}),
        scan,
    )
    await store.close()


@pytest.mark.parametrize("url", ["redis://:hunter2@127.0.0.1:1/0", "redis+cluster://:hunter2@127.0.0.1:1,127.0.0.1:2"])
async def test_an_absent_redis_is_unavailable(url: str) -> None:
    """The library's own defaults would take most of a minute."""
    store = open_live(url)
    await _unavailable(
        lambda: store.put_frame("east", b"", written_ms=1),
        lambda: store.frames(["east"]),
        store.sites,
        store.clear,
    )
    await store.close()


async def test_an_absent_bucket_server_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call of the port."""
    monkeypatch.setattr(objects_obstore, "RETRY_COUNT", 0)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    store = open_objects("s3://bucket/prefix?endpoint=http://127.0.0.1:1&region=r1")
    await _unavailable(
        lambda: store.put("a", b""),
        lambda: store.get("a"),
        lambda: store.delete("a"),
        lambda: store.paths(""),
        lambda: store.put_version("a", b"", {}),
        lambda: store.get_version("a"),
    )
    await store.close()


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (AutoReconnect("gone"), Unavailable),
        (OperationFailure("not authorised", 13), Unavailable),
        (OperationFailure("authentication failed", 18), Unavailable),
        (OperationFailure("no code"), Unavailable),
        (WriteConcernError("majority is away", 64), Unavailable),
        (OperationFailure("fails validation", 121), Refused),
        (OperationFailure("too large", 10334), Refused),
        (BulkWriteError({"writeErrors": [{"code": 121}]}), Refused),
        (BulkWriteError({"writeErrors": [{"code": 121}, {"code": 11600}]}), Unavailable),
        (BulkWriteError({"writeErrors": [], "writeConcernErrors": [{"code": 64}]}), Unavailable),
        (InvalidDocument("no such type"), Refused),
    ],
    ids=str,
)
def test_an_error_of_mongodb_is_retried_unless_the_document_is_wrong(
    raised: PyMongoError | InvalidDocument, expected: type[EvenflowError]
) -> None:
    """A record must not be dead-lettered because a password changed or a primary was lost."""
    with pytest.raises(expected), documents_mongo.store_errors():
        raise raised
