"""The newest records in memory: reading ranges, cutting, holes."""

from __future__ import annotations

import weakref

from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.platform.broker.embedded.records import LogRecord
from evenflow.platform.broker.embedded.storage.tail import Tail


def tail_of(offsets):
    tail = Tail()
    tail.extend([LogRecord("t", 0, offset, 0, None, b"") for offset in offsets])
    return tail


@settings(max_examples=40)
@given(
    st.sets(st.integers(0, 300), max_size=200),
    st.integers(-5, 310),
    st.integers(-5, 310),
    st.integers(1, 50),
    st.integers(0, 310),
)
def test_a_range_is_what_a_plain_list_would_give(offsets, start, end, limit, cut):
    """Proves reading with holes, at any border, after the front was cut."""
    tail = tail_of(sorted(offsets))
    tail.cut_before(cut)
    expected = [offset for offset in sorted(offsets) if offset >= cut and start <= offset < end][:limit]
    assert [record.offset for record in tail.slice(start, end, limit)] == expected
    assert len(tail) == len([offset for offset in offsets if offset >= cut])
    assert tail.first_offset() == min((offset for offset in offsets if offset >= cut), default=None)


def test_single_records_can_be_taken_out():
    """Proves what compaction needs."""
    tail = tail_of(range(10))
    tail.cut_before(2)
    tail.remove({3, 4, 9})
    assert [record.offset for record in tail.all()] == [2, 5, 6, 7, 8]
    tail.extend([LogRecord("t", 0, 10, 0, None, b"")])
    assert [record.offset for record in tail.slice(7, 11, 10)] == [7, 8, 10]


def test_what_was_cut_is_let_go_however_short_the_tail():
    """Found: every partition held up to 64 records that had left the cache, and there are hundreds of partitions."""
    kept = []

    class Record(LogRecord):
        __slots__ = ("__weakref__",)

    tail = Tail()
    for offset in range(10):
        record = Record("t", 0, offset, 0, None, b"")
        kept.append(weakref.ref(record))
        tail.extend([record])
    del record
    tail.cut_before(4)
    assert sum(one() is not None for one in kept) == 10  # four of them dead
    tail.cut_before(5)
    assert [one() is not None for one in kept] == [False] * 5 + [True] * 5
    tail.cut_before(10)
    assert sum(one() is not None for one in kept) == 0
