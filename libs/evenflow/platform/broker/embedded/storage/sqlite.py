"""Storage in one SQLite file, in write-ahead mode: what was acknowledged survives the process being killed.

With `survives="power-loss"` each change also waits for the disk, which costs about a millisecond a change.
The view `events` shows the records in plain columns, for readers outside of the product.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import sqlite3
from pathlib import Path
from typing import IO, Any, Literal

from aiokafka.errors import KafkaStorageError

from evenflow.core.errors import Refused
from evenflow.platform.broker.embedded.headers import decode_headers, encode_headers
from evenflow.platform.broker.embedded.records import LogRecord, record_size
from evenflow.platform.broker.embedded.storage.checkpointing import PAGE_BYTES, Checkpointer
from evenflow.platform.broker.embedded.storage.port import Change, Loaded, StoredPartition, StoredTransaction

FORMAT = 1
# A record's row id is its partition's id and its offset, so that a partition is one run of the table.
OFFSET_BITS = 40
# Pages of the file that SQLite keeps are a quarter of the records that the log keeps, and at least these, in KiB.
PAGES_KIB_MIN = 512
OFFSET_MASK = (1 << OFFSET_BITS) - 1
_SCHEMA = """
create table if not exists topic(name text primary key, configs text not null) without rowid;
create table if not exists part(id integer primary key, topic text not null, number integer not null,
    start_offset integer not null, next_offset integer not null, archived_offset integer not null);
create table if not exists record(id integer primary key, ts integer not null, key blob, value blob,
    headers blob not null, kind integer not null, producer integer not null);
create table if not exists committed(grp text not null, topic text not null, number integer not null,
    off integer not null, metadata text not null, primary key(grp, topic, number)) without rowid;
create table if not exists identity(id text primary key, producer integer not null, epoch integer not null,
    timeout_ms integer not null) without rowid;
create table if not exists opened(id text not null, part integer not null, first integer not null,
    primary key(id, part)) without rowid;
create view if not exists events(topic, partition, offset, timestamp_ms, key, value, headers) as
    select part.topic, part.number, record.id & 0xFFFFFFFFFF, record.ts, record.key, record.value, record.headers
    from record join part on part.id = record.id >> 40 where record.kind = 0;
"""


class FileStorage:
    """The log of one folder. One process at a time may hold it."""

    def __init__(
        self, directory: Path, *, survives: Literal["kill", "power-loss"] = "kill", cache_bytes: int = 64 << 20
    ) -> None:
        self.cache_bytes: int | None = cache_bytes
        self._lock: IO[str] | None = None
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._lock = _hold(directory / "log.lock")
            self._database = sqlite3.connect(directory / "log.sqlite", isolation_level=None)
            self._checkpointer = Checkpointer(directory / "log.sqlite", self._database)
            self._prepare(directory, synchronous="full" if survives == "power-loss" else "normal")
        except (OSError, sqlite3.Error) as error:
            if self._lock is not None:
                self._lock.close()
            message = f"{directory} holds no usable log ({error}); mend the folder's rights or choose another folder"
            raise Refused(message) from error

    def _prepare(self, directory: Path, *, synchronous: str) -> None:
        run = self._database.execute
        run("pragma journal_mode=wal")
        run(f"pragma synchronous={synchronous}")
        run(f"pragma cache_size=-{max(PAGES_KIB_MIN, (self.cache_bytes or 0) // 4096)}")
        run("pragma wal_autocheckpoint=0")  # See `checkpointing`.
        (version,) = run("pragma user_version").fetchone()
        if version not in {0, FORMAT}:
            self.close()
            message = f"{directory} was written by another release (format {version}, this one reads {FORMAT})"
            raise Refused(message)
        self._database.executescript(_SCHEMA)
        run(f"pragma user_version={FORMAT}")

    def load(self) -> Loaded:
        """Topics, partitions, committed offsets, transactional ids."""
        run = self._database.execute
        loaded = Loaded(topics={name: json.loads(text) for name, text in run("select name, configs from topic")})
        for row in run("select id, topic, number, start_offset, next_offset, archived_offset from part order by id"):
            stored = StoredPartition(*row)
            span = (_row(stored.partition_id, 0), _row(stored.partition_id + 1, 0))
            (last,) = run("select max(id) from record where id>=? and id<?", span).fetchone()
            if last is not None:
                stored.next_offset = max(stored.next_offset, last - span[0] + 1)
            loaded.partitions.append(stored)
        loaded.offsets = list(run("select grp, topic, number, off, metadata from committed"))
        by_id = {row[0]: StoredTransaction(*row) for row in run("select * from identity order by producer")}
        for name, part, first in run("select id, part, first from opened order by id, part"):
            by_id[name].first_offsets[part] = first
        loaded.transactions = list(by_id.values())
        return loaded

    def write(self, change: Change) -> None:
        """One SQLite transaction. Raises KafkaStorageError when the file can't take it; nothing is stored then."""
        database = self._database
        try:
            database.execute("begin immediate")
            try:
                self._apply(change)
            except BaseException:
                database.execute("rollback")
                raise
            database.execute("commit")
            self._checkpointer.wrote(sum(record.size for _, record in change.records) // PAGE_BYTES + 1)
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                if database.in_transaction:
                    database.execute("rollback")
            message = f"the log's file could not be written: {error}"
            raise KafkaStorageError(message) from error

    def _apply(self, change: Change) -> None:
        many = self._database.executemany
        if change.records:
            many(
                "insert into record values(?,?,?,?,?,?,?)",
                [
                    (
                        *(
                            part << OFFSET_BITS | r.offset,
                            r.timestamp,
                            r.key,
                            r.value,
                            encode_headers(r.headers),
                            r.kind,
                        ),
                        -1 if r.transaction is None else r.producer_id,
                    )
                    for part, r in change.records
                ],
            )
        if change.offsets:
            many("insert or replace into committed values(?,?,?,?,?)", change.offsets)
        if change.opened:
            many("insert into opened values(?,?,?)", change.opened)
        if change.ended:
            many("delete from opened where id=?", [(name,) for name in change.ended])
        if change.aborted:
            spans = [(_row(part, first), _row(part, end), producer) for part, first, end, producer in change.aborted]
            many("update record set kind=1 where id>=? and id<? and producer=? and kind=0", spans)
        if change.identities:
            rows = [(t.transactional_id, t.producer_id, t.epoch, t.timeout_ms) for t in change.identities]
            many("insert or replace into identity values(?,?,?,?)", rows)
        for name, configs, partitions in change.topics:
            many("insert or replace into topic values(?,?)", [(name, json.dumps(dict(configs), sort_keys=True))])
            many("insert into part values(?,?,?,0,0,0)", [(p.partition_id, p.topic, p.number) for p in partitions])
        if change.trimmed:
            many(
                "delete from record where id>=? and id<?",
                [(_row(p.partition_id, 0), _row(p.partition_id, p.start_offset)) for p in change.trimmed],
            )
            many(
                "update part set start_offset=?, next_offset=?, archived_offset=? where id=?",
                [(p.start_offset, p.next_offset, p.archived_offset, p.partition_id) for p in change.trimmed],
            )
        if change.compacted:
            many("delete from record where id=?", [(_row(part, offset),) for part, offset in change.compacted])

    def read(self, partition_id: int, topic: str, number: int, start: int, end: int, limit: int) -> list[LogRecord]:
        """Read a range by row id. Raises KafkaStorageError."""
        query = self._select(
            "select id, ts, key, value, headers, kind, producer from record where id>=? and id<? order by id limit ?",
            (_row(partition_id, start), _row(partition_id, end), limit),
        )
        records = []
        for row, timestamp, key, value, text, kind, producer in query:
            offset = row & OFFSET_MASK
            headers = decode_headers(text)
            size = record_size(key, value, headers)
            record = LogRecord(topic, number, offset, timestamp, key, value, headers, kind, size)
            record.producer_id = producer
            records.append(record)
        return records

    def _select(self, text: str, values: tuple[int, ...]) -> list[tuple[Any, ...]]:
        try:
            return self._database.execute(text, values).fetchall()
        except sqlite3.Error as error:
            message = f"the log's file could not be read: {error}"
            raise KafkaStorageError(message) from error

    def close(self) -> None:
        """Close the file and give the folder free."""
        self._checkpointer.stop()
        self._database.close()
        if self._lock is not None:
            self._lock.close()


def _row(partition_id: int, offset: int) -> int:
    return partition_id << OFFSET_BITS | offset


def _hold(path: Path) -> IO[str]:
    """The folder's lock, held while the file stays open; the system frees it when the process ends in any way."""
    lock = path.open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        message = f"{path.parent} is in use by another process; stop it, or choose another folder"
        raise Refused(message) from error
    return lock
