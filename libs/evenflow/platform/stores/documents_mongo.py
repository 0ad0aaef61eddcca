"""Documents on MongoDB through motor; the only module that imports it.

A document is {_id, version, body}. Correctness rests on `_id` alone: a new document is an insert, a conditional write
is a find-and-modify on (_id, version). A write is acknowledged by a majority, and the driver repeats one once without
applying it twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bson.errors import InvalidDocument
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo import ReturnDocument, UpdateOne
from pymongo.errors import (
    BulkWriteError,
    DocumentTooLarge,
    DuplicateKeyError,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)
from pymongo.write_concern import WriteConcern

from evenflow.core.errors import Conflict, Refused, Unavailable
from evenflow.platform.security.access import Access, tls_reason
from evenflow.platform.stores import limits
from evenflow.platform.stores.pages import Page
from evenflow.platform.stores.ports import Document, Stored

DATABASE: Final = "evenflow"
CONNECT_MS: Final = 3_000
ANSWER_MS: Final = 10_000
POOL_COUNT_MAX: Final = 32
BULK_COUNT: Final = 1_000
UPSERT_TRIES: Final = 3

#: Codes by which the server says that the document itself is wrong; every other failure may pass.
_DOCUMENT_CODES: Final = frozenset({2, 9, 14, 52, 57, 121, 10334, 17280})

#: Codes by which the server says that it does not know us, or that we may not.
_LOGIN_CODES: Final = frozenset({13, 18, 8000})


class MongoDocuments:
    """The Documents port over one database."""

    def __init__(self, client: AsyncIOMotorClient[dict[str, Any]], database: str = DATABASE) -> None:
        """Take a client; `close` closes it."""
        self._client = client
        self._database = client.get_database(database, write_concern=WriteConcern(w="majority", wtimeout=ANSWER_MS))

    async def get(self, collection: str, id: str) -> Stored | None:
        """The document, or None."""
        limits.check_id(id)
        with store_errors():
            row = await self._collection(collection).find_one({"_id": id})
        return None if row is None else _stored(row)

    async def put(self, collection: str, id: str, body: Document, *, expect: int | None = None) -> int:
        """Write one document; see the port."""
        limits.check_id(id)
        rows = self._collection(collection)
        plain = limits.decode_body(limits.encode_body(body))
        with store_errors():
            if expect is None:
                return await self._upsert(rows, id, plain)
            if expect == 0:
                try:
                    await rows.insert_one({"_id": id, "version": 1, "body": plain})
                except DuplicateKeyError as error:
                    raise _conflict(collection, id, expect) from error
                return 1
            row = await rows.find_one_and_update(
                {"_id": id, "version": expect}, {"$set": {"body": plain, "version": expect + 1}}, {"_id": 1}
            )
        if row is None:
            raise _conflict(collection, id, expect)
        return expect + 1

    async def put_many(self, collection: str, bodies: Mapping[str, Document]) -> None:
        """Write all in unordered bulks of 1,000; others may see a part of them."""
        limits.check_batch(len(bodies))
        rows = self._collection(collection)
        writes = []
        for id_, body in bodies.items():
            limits.check_id(id_)
            plain = limits.decode_body(limits.encode_body(body))
            writes.append(UpdateOne({"_id": id_}, {"$set": {"body": plain}, "$inc": {"version": 1}}, upsert=True))
        with store_errors():
            for start in range(0, len(writes), BULK_COUNT):
                await rows.bulk_write(writes[start : start + BULK_COUNT], ordered=False)

    async def delete(self, collection: str, id: str) -> bool:
        """Remove; True when it was there."""
        limits.check_id(id)
        with store_errors():
            result = await self._collection(collection).delete_one({"_id": id})
        return bool(result.deleted_count)

    def scan(self, collection: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> Page:
        """One page in order of id."""
        limits.check_page(prefix, after, limit)
        rows = self._collection(collection)
        bounds: dict[str, str] = {"$gt": after, "$gte": prefix}
        end = limits.prefix_end(prefix)
        if end is not None:
            bounds["$lt"] = end

        async def load() -> list[Stored]:
            with store_errors():
                found = await rows.find({"_id": bounds}).sort("_id", 1).limit(limit).to_list(length=limit)
            return [_stored(row) for row in found]

        return Page(load)

    async def drop(self, collection: str) -> None:
        """Remove the collection."""
        with store_errors():
            await self._collection(collection).drop()

    async def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def _collection(self, name: str) -> Any:
        limits.check_collection(name)
        return self._database[name]

    async def _upsert(self, rows: Any, id_: str, body: Document) -> int:
        """Write whatever the version; two first writers may collide on `_id`, then the later one updates."""
        for _ in range(UPSERT_TRIES):
            with contextlib.suppress(DuplicateKeyError):
                row = await rows.find_one_and_update(
                    {"_id": id_},
                    {"$set": {"body": body}, "$inc": {"version": 1}},
                    {"version": 1},
                    upsert=True,
                    return_document=ReturnDocument.AFTER,
                )
                return int(row["version"])
        raise Unavailable(f"{id_}: lost {UPSERT_TRIES} races for its first write", id=id_)


def _login(url: str, access: Access | None) -> dict[str, Any]:
    """What the driver logs in with; users are in the database `admin` unless the URL's authSource says otherwise."""
    settings: dict[str, Any] = {}
    if access is not None and access.user:
        settings |= {"username": access.user, "password": access.password.get_secret_value()}
        settings |= {} if "authsource=" in url.lower() else {"authSource": "admin"}
    if access is not None and access.over_tls:
        access.context()  # says what is wrong with a file
        settings |= {"tls": True} | ({} if access.ca_file is None else {"tlsCAFile": str(access.ca_file)})
    return settings


def open_mongo(url: str, access: Access | None = None) -> MongoDocuments:
    """Documents on a server or replica set; the database is the URL's, or `evenflow`. Every wait is bounded."""
    client: AsyncIOMotorClient[dict[str, Any]] = AsyncIOMotorClient(
        url,
        connectTimeoutMS=CONNECT_MS,
        serverSelectionTimeoutMS=CONNECT_MS,
        socketTimeoutMS=ANSWER_MS,
        waitQueueTimeoutMS=CONNECT_MS,
        maxPoolSize=POOL_COUNT_MAX,
        retryWrites=True,
        retryReads=True,
        appname="evenflow",
        **_login(url, access),
    )
    return MongoDocuments(client, client.get_default_database(DATABASE).name)


def _stored(row: Mapping[str, Any]) -> Stored:
    return Stored(row["_id"], int(row["version"]), row["body"])


def _conflict(collection: str, id_: str, expect: int) -> Conflict:
    return Conflict(f"{collection}/{id_} is not at version {expect}", collection=collection, id=id_, expect=expect)


def _codes(error: OperationFailure) -> list[int]:
    """The codes of a failure; a bulk has one for each document that failed."""
    if isinstance(error, BulkWriteError):
        details: Any = error.details or {}
        return [int(item.get("code", 0)) for item in details.get("writeErrors", [])]
    return [error.code or 0]


@contextlib.contextmanager
def store_errors() -> Iterator[None]:
    """Wrong documents are Refused; all else, wrong passwords and lost primaries included, may pass: Unavailable."""
    try:
        yield
    except (DocumentTooLarge, InvalidDocument) as error:
        raise Refused(f"document store refuses the document: {str(error)[:200]}") from error
    except OperationFailure as error:
        codes = _codes(error)
        if codes and all(code in _DOCUMENT_CODES for code in codes):
            raise Refused(f"document store refuses the document: {str(error)[:200]}") from error
        raise Unavailable(f"document store: {_reason(error, codes)}") from error
    except PyMongoError as error:
        raise Unavailable(f"document store: {_reason(error, [])}") from error


def _reason(error: PyMongoError, codes: list[int]) -> str:
    """What is wrong and what to do, as far as the server or the driver says."""
    text = str(error).partition(", full error")[0]
    if any(code in _LOGIN_CODES for code in codes):
        return f"it refuses this user ({text[:100]}): set documents_user and documents_password to one with readWrite"
    if (reason := tls_reason(text, "documents")) is not None:
        return reason
    hint = "; if it speaks TLS, set documents_ca_file" if isinstance(error, ServerSelectionTimeoutError) else ""
    return f"{type(error).__name__}: {text[:200]}{hint}"
