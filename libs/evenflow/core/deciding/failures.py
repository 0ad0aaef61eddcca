"""What the end of an attempt means for its task: counted or not, ended or tried again, and after which pause.

Counted against `max_failures`: user-error, out-of-memory and unknown each time, a failed start once per task. What the
fleet did to a task never counts. A lost node, a drain or a preemption is tried again at once; a broken link or device,
which the next attempt may well meet again, after the same growing pause as a failure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from evenflow.core.lifecycle.attempt import COUNTED
from evenflow.core.lifecycle.causes import Cause

#: Causes that say the attempt never became ready.
START_CAUSES: Final = frozenset({Cause.START_FAILED, Cause.READY_TIMEOUT})

#: Causes that are not the task's fault and likely to come again at once.
PAUSED: Final = frozenset({Cause.LINK_LOST, Cause.DEVICE_BROKEN, Cause.LEFTOVER})

#: Doublings after which the pause no longer grows, whatever the policy's limit: keeps the shift small.
DOUBLINGS_MAX: Final = 40


@dataclass(frozen=True, slots=True)
class Tally:
    """What a task has used up. `setback_count` counts failed attempts in all, for the pause before the next."""

    failure_count: int = 0
    start_failed: bool = False
    setback_count: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows: the new tally, whether the task is over, the pause before it may be placed again."""

    tally: Tally
    ends: bool
    pause_ms: int
    start_failure: bool


def pause_ms(setback_count: int, first_ms: int, max_ms: int) -> int:
    """The pause after the n-th failed attempt (from 1): first, doubled each time, at most max. Milliseconds."""
    if setback_count < 1:
        return 0
    return min(max_ms, first_ms << min(setback_count - 1, DOUBLINGS_MAX))


def judge(cause: Cause, tally: Tally, *, max_failures: int, first_ms: int, max_ms: int) -> Verdict:
    """Judge an attempt that ended by `cause`; what is neither failure nor setback leaves the tally unchanged."""
    start_failure = cause in START_CAUSES
    if cause in PAUSED:
        later = replace(tally, setback_count=tally.setback_count + 1)
        pause = pause_ms(later.setback_count, first_ms, max_ms)
        return Verdict(later, ends=False, pause_ms=pause, start_failure=False)
    if not start_failure and cause not in COUNTED:
        return Verdict(tally, ends=False, pause_ms=0, start_failure=False)
    counts = not (start_failure and tally.start_failed)
    after = replace(
        tally,
        failure_count=tally.failure_count + (1 if counts else 0),
        start_failed=tally.start_failed or start_failure,
        setback_count=tally.setback_count + 1,
    )
    ends = counts and after.failure_count >= max_failures
    pause = 0 if ends else pause_ms(after.setback_count, first_ms, max_ms)
    return Verdict(after, ends=ends, pause_ms=pause, start_failure=start_failure)
