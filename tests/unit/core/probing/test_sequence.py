"""The replay window: each number counts once, with the same bytes only; what a full window can't know is refused."""

from __future__ import annotations

import random

from evenflow.core.probing.sequence import WINDOW, Freshness, SequenceWindow


def test_a_number_counts_once_and_its_bytes_are_remembered() -> None:
    """The same again is a repeat, other bytes are a conflict; neither changes what is remembered."""
    window = SequenceWindow()
    assert window.judge(1, b"a") is Freshness.FRESH
    assert window.judge(1, b"a") is Freshness.REPEAT
    assert window.judge(1, b"b") is Freshness.CONFLICT
    assert window.judge(1, b"a") is Freshness.REPEAT


def test_numbers_may_come_out_of_order_within_the_window() -> None:
    """Records of a session come over several partitions: any order is fresh once."""
    numbers = list(range(1, WINDOW + 1))
    random.Random(7).shuffle(numbers)
    window = SequenceWindow()
    assert {window.judge(number, b"x") for number in numbers} == {Freshness.FRESH}
    assert {window.judge(number, b"x") for number in numbers} == {Freshness.REPEAT}


def test_what_is_below_all_that_a_full_window_knows_is_refused() -> None:
    """Holes in between are fresh, for a session's numbers go to several readers; what was let go can't be told."""
    window = SequenceWindow(3)
    assert {window.judge(number, b"x") for number in (10, 20, 30)} == {Freshness.FRESH}
    assert window.judge(9, b"x") is Freshness.TOO_OLD
    assert window.judge(25, b"x") is Freshness.FRESH
    assert window.judge(10, b"x") is Freshness.TOO_OLD
    assert window.judge(20, b"x") is Freshness.REPEAT


def test_the_memory_of_a_session_is_bounded() -> None:
    """However long it lasts, no more than a window is kept, and repeats within the window are still known."""
    window = SequenceWindow()
    for number in range(1, 5 * WINDOW):
        window.judge(number, b"x")
        assert len(window._seen) <= WINDOW
    assert window.judge(4 * WINDOW + 5, b"x") is Freshness.REPEAT
