"""Documents on SQLite: the embedded profile's store, in a file or in memory.

One table holds every collection, so no name ever becomes part of a statement. Ids compare as bytes of UTF-8, as in
MongoDB. `synchronous=NORMAL` is enough: documents are a view that the log rebuilds.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Final

from evenflow.core.errors import Conflict, Refused, Unavailable
from evenflow.platform.stores import limits
from evenflow.platform.stores.pages import Page
from evenflow.platform.stores.ports import Document, Stored

BUSY_MS: Final = 2_000

_SCHEMA: Final = """
create table if not exists documents (
    collection text not null, id text not null, version integer not null, body text not null,
    primary key (collection, id)
) without rowid
"""
_UPSERT: Final = """
insert into documents values (?, ?, 1, ?)
on conflict (collection, id) do update set version = version + 1, body = excluded.body
returning version
"""


class SqliteDocuments:
    """The Documents port over one connection, used from one event loop."""

    def __init__(self, path: str | Path) -> None:
        """Open or create the file; ':memory:' keeps all in memory.

        Raises Refused when the file is no database of ours, Unavailable when it can't be opened.
        """
        self._path = str(path)
        if self._path != ":memory:":
            Path(self._path).parent.mkdir(parents=True, exist_ok=True)
        try:
            self._db = sqlite3.connect(self._path, isolation_level=None, timeout=BUSY_MS / 1000)
            try:
                self._db.execute("pragma journal_mode = wal")
                self._db.execute("pragma synchronous = normal")
                self._db.execute(_SCHEMA)
            except BaseException:
                self._db.close()
                raise
        except sqlite3.OperationalError as error:
            raise Unavailable(f"can't open {self._path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise Refused(
                f"{self._path} is damaged or no document store ({error}); move it away, the log rebuilds it"
            ) from error

    async def get(self, collection: str, id: str) -> Stored | None:
        """The document, or None."""
        limits.check_collection(collection)
        limits.check_id(id)
        with self._errors():
            row = self._db.execute(
                "select version, body from documents where collection = ? and id = ?", (collection, id)
            ).fetchone()
        return None if row is None else Stored(id, row[0], limits.decode_body(row[1]))

    async def put(self, collection: str, id: str, body: Document, *, expect: int | None = None) -> int:
        """Write one document; see the port."""
        limits.check_collection(collection)
        limits.check_id(id)
        text = limits.encode_body(body)
        with self._errors():
            if expect is None:
                row = self._db.execute(_UPSERT, (collection, id, text)).fetchone()
            elif expect == 0:
                row = self._db.execute(
                    "insert into documents values (?, ?, 1, ?) on conflict do nothing returning version",
                    (collection, id, text),
                ).fetchone()
            else:
                row = self._db.execute(
                    "update documents set version = version + 1, body = ?"
                    " where collection = ? and id = ? and version = ? returning version",
                    (text, collection, id, expect),
                ).fetchone()
        if row is None:
            raise Conflict(f"{collection}/{id} is not at version {expect}", collection=collection, id=id, expect=expect)
        return int(row[0])

    async def put_many(self, collection: str, bodies: Mapping[str, Document]) -> None:
        """Write all in one transaction."""
        limits.check_collection(collection)
        limits.check_batch(len(bodies))
        rows = []
        for id_, body in bodies.items():
            limits.check_id(id_)
            rows.append((collection, id_, limits.encode_body(body)))
        with self._errors(), self._transaction():
            for row in rows:
                self._db.execute(_UPSERT, row).fetchone()

    async def delete(self, collection: str, id: str) -> bool:
        """Remove; True when it was there."""
        limits.check_collection(collection)
        limits.check_id(id)
        with self._errors():
            cursor = self._db.execute("delete from documents where collection = ? and id = ?", (collection, id))
        return cursor.rowcount == 1

    def scan(self, collection: str, *, prefix: str = "", after: str = "", limit: int = 1000) -> AsyncIterator[Stored]:
        """One page in order of id."""
        limits.check_collection(collection)
        limits.check_page(prefix, after, limit)

        async def load() -> list[Stored]:
            statement = "select id, version, body from documents where collection = ? and id > ? and id >= ?"
            values: list[str | int] = [collection, after, prefix]
            end = limits.prefix_end(prefix)
            if end is not None:
                statement += " and id < ?"
                values.append(end)
            with self._errors():
                rows = self._db.execute(f"{statement} order by id limit ?", (*values, limit)).fetchall()
            return [Stored(id_, version, limits.decode_body(text)) for id_, version, text in rows]

        return Page(load)

    async def drop(self, collection: str) -> None:
        """Remove every document of the collection."""
        limits.check_collection(collection)
        with self._errors():
            self._db.execute("delete from documents where collection = ?", (collection,))

    async def close(self) -> None:
        """Close the file; closing twice is no error."""
        self._db.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._db.execute("rollback")
            raise
        self._db.execute("commit")

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Every failure of the database is one of the store, never of the document: those were checked before."""
        try:
            yield
        except sqlite3.Error as error:
            raise Unavailable(f"document store {self._path}: {error}") from error
