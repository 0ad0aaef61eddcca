"""What a failure costs."""

from __future__ import annotations

import pytest

from evenflow.core.deciding.failures import Tally, Verdict, judge, pause_ms
from evenflow.core.lifecycle.causes import Cause


def _judge(cause: Cause, tally: Tally, max_failures: int = 3) -> Verdict:
    return judge(cause, tally, max_failures=max_failures, first_ms=5_000, max_ms=300_000)


@pytest.mark.parametrize(
    ("count", "pause"), [(0, 0), (1, 5_000), (2, 10_000), (3, 20_000), (7, 300_000), (1_000_000, 300_000)]
)
def test_pauses_double_up_to_the_limit(count: int, pause: int) -> None:
    """However often it fails, the number stays small."""
    assert pause_ms(count, 5_000, 300_000) == pause


@pytest.mark.parametrize("cause", [Cause.USER_ERROR, Cause.OUT_OF_MEMORY, Cause.UNKNOWN])
def test_counted_causes_end_the_task_at_the_limit(cause: Cause) -> None:
    """The third of three, and not before."""
    assert not _judge(cause, Tally(failure_count=1)).ends
    assert _judge(cause, Tally(failure_count=2)).ends
    assert _judge(cause, Tally(), max_failures=1).ends


def test_a_failed_start_counts_once() -> None:
    """The second costs only a longer pause, so it can't end the task."""
    first = _judge(Cause.START_FAILED, Tally())
    second = _judge(Cause.READY_TIMEOUT, first.tally)
    assert (first.tally.failure_count, second.tally.failure_count) == (1, 1)
    assert (first.pause_ms, second.pause_ms) == (5_000, 10_000)
    assert not _judge(Cause.START_FAILED, Tally(failure_count=2, start_failed=True)).ends


@pytest.mark.parametrize(
    "cause", [Cause.NODE_LOST, Cause.DRAINED, Cause.PREEMPTED, Cause.MAINTENANCE, Cause.MOVED, Cause.PEER_LOST]
)
def test_what_the_fleet_does_costs_nothing(cause: Cause) -> None:
    """Tried again at once, however often."""
    tally = Tally(failure_count=2, setback_count=5)
    assert _judge(cause, tally) == Verdict(tally, ends=False, pause_ms=0, start_failure=False)


@pytest.mark.parametrize("cause", [Cause.LINK_LOST, Cause.DEVICE_BROKEN, Cause.LEFTOVER])
def test_what_would_come_again_at_once_is_paused_but_not_counted(cause: Cause) -> None:
    """Else the same broken link would be tried many times a second."""
    verdict = _judge(cause, Tally(failure_count=2, setback_count=1))
    assert (verdict.tally.failure_count, verdict.ends, verdict.pause_ms) == (2, False, 10_000)
