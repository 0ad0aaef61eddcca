"""The replay window: each number counts once, out of order within the window, with the same bytes only."""

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


def test_what_is_older_than_the_window_is_refused_known_or_not() -> None:
    """The edge: the highest less the window is too old, the next one is not."""
    window = SequenceWindow()
    top = 10 * WINDOW
    assert window.judge(top, b"x") is Freshness.FRESH
    assert window.judge(top - WINDOW, b"x") is Freshness.TOO_OLD
    assert window.judge(top - WINDOW + 1, b"x") is Freshness.FRESH


def test_the_memory_of_a_session_is_bounded() -> None:
    """However long it lasts, no more than two windows are kept, and repeats within the window are still known."""
    window = SequenceWindow()
    for number in range(1, 5 * WINDOW):
        window.judge(number, b"x")
        assert len(window._seen) <= 2 * WINDOW
    assert window.judge(4 * WINDOW + 5, b"x") is Freshness.REPEAT
