"""A collection that follows rows by revision: what changed is written, and nothing waits for a refused document."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass, field
from typing import Any

import pytest

from evenflow.core.errors import Unavailable
from evenflow.platform.stores.limits import BATCH_COUNT_MAX
from evenflow.platform.stores.memory import MemoryDocuments
from evenflow.platform.stores.views.marks import MARK_ID, PERIOD_MS
from evenflow.platform.stores.views.revisions import BATCH_COUNT, RevisionView, batches


@dataclass
class Row:
    revision: int
    body: dict[str, Any] = field(default_factory=dict)

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        return {**self.body, "revision": self.revision}


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def error(self, event: str, **fields: Any) -> None:
        self.lines.append(f"{event}: {fields['id']}")

    def warning(self, event: str, **fields: Any) -> None:
        self.lines.append(f"{event}: {fields['collection']}")


class Time:
    def __init__(self) -> None:
        self.ms = 0

    def monotonic_ms(self) -> int:
        return self.ms


def view(documents: MemoryDocuments, time: Any = None) -> tuple[RevisionView, Log]:
    log = Log()
    return RevisionView(documents, time or Time(), log, "rows"), log


async def revisions(documents: MemoryDocuments) -> dict[str, int]:
    return {row.id: row.body["revision"] async for row in documents.scan("rows") if row.id != MARK_ID}


async def test_only_rows_of_another_revision_are_written() -> None:
    """Each write grows a document's version, so a row that stayed is still at its first."""
    documents = MemoryDocuments()
    rows, _ = view(documents)
    await rows.flush({"a": Row(1), "b": Row(1)})
    await rows.flush({"a": Row(1), "b": Row(2)})
    assert await revisions(documents) == {"a": 1, "b": 2}
    assert [stored.version async for stored in documents.scan("rows") if stored.id != MARK_ID] == [1, 2]


async def test_more_rows_than_a_store_takes_at_once_are_all_written() -> None:
    """A pool of any size is written; the store refuses batches above its bound."""
    documents = MemoryDocuments()
    rows, log = view(documents)
    await rows.flush({f"n{number}": Row(1) for number in range(BATCH_COUNT_MAX + 1)})
    assert len(documents._rows["rows"]) == BATCH_COUNT_MAX + 1 + len([MARK_ID])
    assert log.lines == []
    assert [len(batch) for batch in batches(dict.fromkeys("abcde"), 2)] == [2, 2, 1]
    assert BATCH_COUNT <= BATCH_COUNT_MAX


async def test_a_document_that_the_store_refuses_holds_nobody_up() -> None:
    """The others of its batch are written, it is told once, and its next revision may be better."""
    documents = MemoryDocuments()
    rows, log = view(documents)
    for _ in range(3):
        await rows.flush({"a": Row(1), "bad": Row(1, {"$key": 1}), "c": Row(1)})
    assert await revisions(documents) == {"a": 1, "c": 1}
    assert log.lines == ["document refused: bad"]
    await rows.flush({"a": Row(1), "bad": Row(2), "c": Row(1)})
    assert await revisions(documents) == {"a": 1, "bad": 2, "c": 1}


async def test_a_store_that_was_away_is_made_up_for() -> None:
    """What was not written is written by a later flush."""
    documents = MemoryDocuments()
    rows, _ = view(documents)
    documents.faults.down()
    with pytest.raises(Unavailable):
        await rows.flush({"a": Row(1)})
    documents.faults.up()
    await asyncio.gather(rows.flush({"a": Row(1)}))
    assert await revisions(documents) == {"a": 1}


async def test_an_emptied_store_gets_every_row_again() -> None:
    """Rows that did not change are not written, but for a store that lost them; it is looked at once a period."""
    documents, time = MemoryDocuments(), Time()
    rows, log = view(documents, time)
    whole = {"a": Row(1), "b": Row(2)}
    await rows.flush(whole)
    await documents.drop("rows")
    await rows.flush(whole)
    assert await revisions(documents) == {}
    time.ms += PERIOD_MS
    await rows.flush(whole)
    assert await revisions(documents) == {"a": 1, "b": 2}
    assert log.lines == ["view lost by its store: rows"]


async def test_a_store_put_back_to_an_older_state_gets_every_row_again() -> None:
    """Each look makes the mark's version grow, so an older state is known by a lower one."""
    documents, time = MemoryDocuments(), Time()
    rows, _ = view(documents, time)
    await rows.flush({"a": Row(1)})
    backup = copy.deepcopy(documents._rows)
    for revision in (2, 3):
        time.ms += PERIOD_MS
        await rows.flush({"a": Row(revision)})
    documents._rows = backup
    time.ms += PERIOD_MS
    await rows.flush({"a": Row(3)})
    assert await revisions(documents) == {"a": 3}


async def test_two_copies_that_write_one_collection_do_not_take_each_other_for_a_loss() -> None:
    """Each finds what the other wrote, which is never less than it saw."""
    documents, time = MemoryDocuments(), Time()
    (one, first), (two, second) = view(documents, time), view(documents, time)
    for _ in range(5):
        await asyncio.gather(one.flush({"a": Row(1)}), two.flush({"a": Row(1)}))
        time.ms += PERIOD_MS
    assert not first.lines
    assert not second.lines
