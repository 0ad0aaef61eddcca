"""`{task, attempts, failures, starts}`, `{task, attempt, resumes_at_s}`, `{task, verified}`, `{task, holds}`."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.sim.expectations.form import AT, Answer, Expect, one_moment
from evenflow.sim.observation.entities import TaskMoment
from evenflow.sim.observation.model import Observation
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.file import AMOUNTS
from evenflow.sim.scenario.schema import Field, Form, Values

_RANGE: Final = kinds.range_of(kinds.COUNT)
_STARTS: Final = Form(
    "starts",
    "start commands that reached a node",
    (
        Field("node", kinds.PATTERN, "the node; any unless said", default="*"),
        Field("min", kinds.COUNT, "at least"),
        Field("max", kinds.COUNT, "at most"),
    ),
)


def within(value: int, low: int | None, high: int | None) -> bool:
    """Whether a value lies in a range with open or closed ends."""
    return (low is None or value >= low) and (high is None or value <= high)


def _attempts(values: Values, model: Observation, t_ms: int) -> Answer:
    from fnmatch import fnmatchcase

    task = model.named(values["task"])
    if task is None:
        return Answer(holds=False, got="not seen yet")
    got: dict[str, Any] = {}
    holds = True
    if values.get("attempts") is not None:
        got["attempts"] = sum(attempt.assigned_ms <= t_ms for attempt in task.attempts.values())
        holds &= within(got["attempts"], *values["attempts"])
    if values.get("failures") is not None:
        got["failures"] = task.failure_count
        holds &= within(got["failures"], *values["failures"])
    if values.get("starts") is not None:
        wanted = values["starts"]
        got["starts"] = sum(
            entry.count == "start"
            and entry.task == task.shown
            and entry.t_ms <= t_ms
            and fnmatchcase(entry.node, wanted["node"])
            for entry in model.counts
        )
        holds &= within(got["starts"], wanted["min"], wanted["max"])
    return Answer(holds, got)


ATTEMPTS: Final = Expect(
    "attempts",
    "how often a task was tried, failed and started",
    (("task",), ("attempts", "failures", "starts")),
    Form(
        "attempts expectation",
        "tries of a task",
        (
            AT,
            Field("task", kinds.TEXT, "id of the task", required=True),
            Field("attempts", _RANGE, "attempts that were given a node"),
            Field("failures", _RANGE, "failures counted against its budget"),
            Field("starts", _STARTS.kind(), "start commands that reached a node"),
        ),
    ),
    _attempts,
)


def _resumes(values: Values, model: Observation, t_ms: int) -> Answer:
    task = model.named(values["task"])
    attempt = None if task is None else task.attempts.get(values["attempt"])
    if attempt is None or attempt.assigned_ms > t_ms:
        return Answer(holds=False, got="no such attempt")
    started = [member for member in attempt.members.values() if member.resumed_progress_ms is not None]
    if not started:
        return Answer(holds=False, got="never started")
    least = min(member.resumed_progress_ms or 0 for member in started)
    generation = min(member.resumed_generation for member in started)
    holds = True
    if values.get("resumes_at_s") is not None:
        holds &= within(least, *values["resumes_at_s"])
    if values.get("from_generation") is not None:
        holds &= generation == values["from_generation"]
    return Answer(holds, {"resumes_at_s": least / 1000, "from_generation": generation})


def _check_resumes(values: Values, path: str) -> None:
    if not {"resumes_at_s", "from_generation"} & values.keys():
        raise FieldRefused(path, "needs resumes_at_s or from_generation")


RESUMES: Final = Expect(
    "resumes",
    "where an attempt took up the work",
    (("task",), ("attempt",), ("resumes_at_s", "from_generation")),
    Form(
        "resume expectation",
        "the progress that an attempt started from",
        (
            AT,
            Field("task", kinds.TEXT, "id of the task", required=True),
            Field("attempt", kinds.COUNT, "number of the attempt", required=True),
            Field("resumes_at_s", kinds.range_of(kinds.SECONDS), "progress at its start"),
            Field("from_generation", kinds.COUNT, "generation that saved it; 0 = from the beginning"),
        ),
        check=_check_resumes,
    ),
    _resumes,
)


def _verified(values: Values, model: Observation, t_ms: int) -> Answer:
    found = sorted(
        view.progress_ms
        for (task, _, _), view in model.checkpoints.items()
        if task == values["task"] and view.history.at(t_ms) == "verified"
    )
    return Answer(found == sorted(values["verified"]), [progress / 1000 for progress in found])


VERIFIED: Final = Expect(
    "verified",
    "the usable checkpoints of a task, by progress",
    (("task",), ("verified",)),
    Form(
        "checkpoint expectation",
        "checkpoints that may be resumed from",
        (
            AT,
            Field("task", kinds.TEXT, "id of the task", required=True),
            Field("verified", kinds.list_of(kinds.SECONDS), "their progress", required=True),
        ),
        check=one_moment,
    ),
    _verified,
)


def _holds(values: Values, model: Observation, t_ms: int) -> Answer:
    task = model.named(values["task"])
    moment: TaskMoment | None = None if task is None else task.history.at(t_ms)
    held = dict(moment.held) if moment is not None else {}
    got = {name: held.get(name, 0) for name in values["holds"]}
    return Answer(got == values["holds"], got)


HOLDS: Final = Expect(
    "holds",
    "what a task's live attempt holds",
    (("task",), ("holds",)),
    Form(
        "holding expectation",
        "amounts held by a task",
        (
            AT,
            Field("task", kinds.TEXT, "id of the task", required=True),
            Field("holds", AMOUNTS.partial(), "amounts by dimension, exact", required=True),
        ),
    ),
    _holds,
)
