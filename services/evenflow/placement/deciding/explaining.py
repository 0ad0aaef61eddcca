"""Saying why tasks wait: `task.queued` when a task is first queued and when its set of blockers changes.

Bounded so that explaining never delays placing: so many per round, and each task at most once per period. What is left
over stays in line. The line is a shortcut: after a take-over every waiting task is looked at again.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Final

from evenflow.core.lifecycle.alerts import Alert
from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.reasons import Blocker, Reason
from evenflow.core.lifecycle.task import TaskState
from evenflow.core.placement.plan import Wait
from evenflow.placement.deciding.draft import Draft
from evenflow.placement.deciding.planning import Planned, crossing_document
from evenflow.placement.memory.rows import TaskRow

#: Pause between two rounds that only explain.
PAUSE_MS: Final = 20


class Explainer:
    """The line of tasks whose reasons may have to be said, and those who were said too recently."""

    def __init__(self) -> None:
        self._line: dict[str, None] = {}
        self._later: list[tuple[int, str]] = []

    def look_at(self, keys: Iterable[str]) -> None:
        """Put tasks in line."""
        self._line.update(dict.fromkeys(keys))

    def wake_ms(self, now_ms: int) -> int | None:
        """When this has something to do again."""
        if self._line:
            return now_ms + PAUSE_MS
        return self._later[0][0] if self._later else None

    def explain(self, draft: Draft, planned: Planned) -> None:
        """Say what there is to say of this round's refusals, newcomers and those still in line."""
        newcomers = [row.key for row in draft.fresh.values() if row.state is TaskState.QUEUED]
        if draft.frees:
            self.look_at(newcomers)
            return
        while self._later and self._later[0][0] <= draft.now_ms:
            self._line[heapq.heappop(self._later)[1]] = None
        self._line = {**dict.fromkeys(newcomers), **self._refusals(draft, planned), **self._line}
        limit = draft.settings.reasons_per_round_max
        for key in list(itertools.islice(self._line, limit)):
            del self._line[key]
            due_ms = self._explain_one(draft, key, planned.waits.get(key))
            if due_ms is not None:
                heapq.heappush(self._later, (due_ms, key))

    def _refusals(self, draft: Draft, planned: Planned) -> dict[str, None]:
        """Everybody refused, and their whole class where it is refused for other reasons than before."""
        waiting = draft.model.waiting
        keys: dict[str, None] = {}
        for key in planned.waits:
            keys[key] = None
            group = waiting.group_of(key)
            if group is None or group.told == (news := (signature(group.blockers), group.never_fits)):
                continue
            group.told = news
            keys.update(dict.fromkeys(waiting.in_class(group)))
        return keys

    def _explain_one(self, draft: Draft, key: str, wait: Wait | None) -> int | None:
        """Explain one task if there is something to say. Returns when to look again if it can't be said yet."""
        row = draft.task(key)
        if row is None or row.state is not TaskState.QUEUED:
            return None
        blockers, never_fits = self._blockers(draft, row, wait)
        if not blockers:
            return None if row.announced_ms else draft.now_ms + draft.settings.reasons_period_ms
        alerted = Alert.TASK_UNSATISFIABLE in row.alerts
        if row.announced_ms and alerted == never_fits and signature_of(row.reasons) == signature(blockers):
            return None
        due_ms = row.announced_ms + draft.settings.reasons_period_ms if row.announced_ms else draft.now_ms
        if due_ms > draft.now_ms:
            return due_ms
        announce(draft, draft.change(key), blockers, never_fits=never_fits, wait=wait)
        return None

    def _blockers(self, draft: Draft, row: TaskRow, wait: Wait | None) -> tuple[tuple[Blocker, ...], bool]:
        if row.emptying:
            there = ", ".join(dict.fromkeys(member.node for member in row.emptying))
            return (
                Blocker(Reason.RECLAIM_PENDING, "attempt", "the one before proven gone", f"still on {there}"),
            ), False
        if row.not_before_ms > draft.now_ms:
            pause_s = (row.not_before_ms - draft.now_ms + 999) // 1000
            return (Blocker(Reason.BACKING_OFF, "time", f"{pause_s} s", "0 s"),), False
        if wait is not None:
            return wait.blockers, wait.never_fits
        group = draft.model.waiting.group_of(row.key) or draft.model.waiting.find(row)
        if group is None or not group.blockers:
            return (), False
        return group.blockers, group.never_fits


def announce(draft: Draft, row: TaskRow, blockers: Sequence[Blocker], *, never_fits: bool, wait: Wait | None) -> None:
    """Say why a task waits, and raise or clear the alert for one that nothing here could ever hold."""
    row.reasons = [_document(blocker) for blocker in blockers]
    row.announced_ms = draft.now_ms
    body: dict[str, Any] = {
        "name": row.task.name if row.task is not None else "",
        "priority": row.priority,
        "reasons": row.reasons,
        "position": draft.model.waiting.position(row),
        "submitted_ms": row.submitted_ms,
    }
    if wait is not None and wait.crossing is not None:
        body["crossing"] = crossing_document(wait.crossing)
    draft.say(EventType.TASK_QUEUED, row, body)
    if never_fits:
        dimensions = ", ".join(dict.fromkeys(blocker.dimension or str(blocker.reason) for blocker in blockers))
        draft.raise_task_alert(row, Alert.TASK_UNSATISFIABLE, f"no node here could ever hold it: {dimensions}")
    else:
        draft.clear_task_alerts(row, [Alert.TASK_UNSATISFIABLE])


def _document(blocker: Blocker) -> dict[str, Any]:
    return dataclasses.asdict(blocker)


def signature(blockers: Sequence[Blocker]) -> tuple[tuple[str, str], ...]:
    """The set of blockers: reasons and dimensions, whatever their numbers."""
    return tuple(sorted({(str(blocker.reason), blocker.dimension) for blocker in blockers}))


def signature_of(reasons: Sequence[dict[str, Any]]) -> tuple[tuple[str, str], ...]:
    """The same of what was said last."""
    return tuple(sorted({(str(reason["reason"]), reason["dimension"]) for reason in reasons}))
