"""`{at, task, is, is_not, reason, node}` and `{all, are, reason, node, min, max}`: states of tasks."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.core.lifecycle.reasons import Reason
from evenflow.core.lifecycle.task import TaskState
from evenflow.sim.expectations.attempts import within
from evenflow.sim.expectations.form import AT, BY, Answer, Expect, one_moment
from evenflow.sim.observation.entities import TaskMoment, TaskView
from evenflow.sim.observation.model import Observation
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Values

UNREACHABLE: Final = "unreachable"
STATE: Final = kinds.choice(*(str(state) for state in TaskState), UNREACHABLE)
_STATES: Final = kinds.one_or_more(STATE)
_REASON: Final = kinds.choice(*(str(reason) for reason in Reason))


def _fits(moment: TaskMoment | None, values: Values) -> bool:
    if moment is None:
        return values.get("is") is None and values.get("is_not") is not None
    flags = (moment.state, UNREACHABLE) if moment.unreachable else (moment.state,)
    if values.get("is") is not None and not set(flags) & set(values["is"]):
        return False
    if values.get("is_not") is not None and set(flags) & set(values["is_not"]):
        return False
    if values.get("reason") is not None and values["reason"] not in moment.reasons:
        return False
    return values.get("node") is None or any(fnmatchcase(node, values["node"]) for node in moment.nodes)


def shown(moment: TaskMoment | None) -> Any:
    """A task's moment for a message."""
    if moment is None:
        return "not seen yet"
    found: dict[str, Any] = {"is": UNREACHABLE if moment.unreachable else moment.state}
    if moment.nodes:
        found["nodes"] = list(moment.nodes)
    if moment.reasons:
        found["reasons"] = list(moment.reasons)
    return found


def matching(model: Observation, pattern: str) -> Iterator[TaskView]:
    """Tasks whose shown name fits a pattern, in order of first sight."""
    for task in model.tasks.values():
        if task.id and fnmatchcase(task.shown, pattern):
            yield task


def _at(values: Values, model: Observation, t_ms: int) -> Answer:
    task = model.named(values["task"])
    moment = None if task is None else task.history.at(t_ms)
    return _named(values, task, Answer(_fits(moment, values), shown(moment)))


def _named(values: Values, task: TaskView | None, answer: Answer) -> Answer:
    """The answer, given that every view showed the name as it was submitted."""
    names = [] if task is None else list(task.names)
    if values.get("name") is None or not answer.holds or names == [values["name"]]:
        return answer
    return Answer(holds=False, got={"names": names})


def _by(values: Values, model: Observation, t_ms: int) -> Answer:
    task = model.named(values["task"])
    if task is None:
        return Answer(holds=False, got="not seen yet")
    holds = any(_fits(moment, values) for _, moment in task.history.until(t_ms))
    return _named(values, task, Answer(holds, shown(task.history.at(t_ms))))


def _check(values: Values, path: str) -> None:
    one_moment(values, path)
    if not {"is", "is_not", "reason", "node"} & values.keys():
        raise FieldRefused(path, "needs one of is, is_not, reason, node")


TASK: Final = Expect(
    "task",
    "the state of a task, its node, its reason for waiting",
    (("task",), ("is", "is_not", "reason", "node")),
    Form(
        "task expectation",
        "a task at a moment",
        (
            AT,
            BY,
            Field("task", kinds.TEXT, "id of the task", required=True),
            Field("is", _STATES, "one of these states"),
            Field("is_not", _STATES, "none of these states"),
            Field("reason", _REASON, "a reason held then"),
            Field("node", kinds.PATTERN, "any member's node"),
            Field("name", kinds.TEXT, "its name, and no other, in every record that shows one"),
        ),
        check=_check,
    ),
    _at,
    _by,
)


def _all_at(values: Values, model: Observation, t_ms: int) -> Answer:
    tasks = list(matching(model, values["all"]))
    fit = [task.shown for task in tasks if _fits(task.history.at(t_ms), _wanted(values))]
    return _all(values, tasks, fit, t_ms)


def _all_by(values: Values, model: Observation, t_ms: int) -> Answer:
    tasks = list(matching(model, values["all"]))
    wanted = _wanted(values)
    fit = [task.shown for task in tasks if any(_fits(moment, wanted) for _, moment in task.history.until(t_ms))]
    return _all(values, tasks, fit, t_ms)


def _wanted(values: Values) -> dict[str, Any]:
    return {"is": values["are"], "reason": values.get("reason"), "node": values.get("node")}


def _all(values: Values, tasks: list[TaskView], fit: list[str], t_ms: int) -> Answer:
    """Every task must fit, unless it is said how many."""
    wrong = {task.shown: shown(task.history.at(t_ms)) for task in tasks if task.shown not in fit}
    if values.get("min") is not None or values.get("max") is not None:
        return Answer(within(len(fit), values.get("min"), values.get("max")), {"fit": fit, "others": wrong})
    return Answer(bool(tasks) and not wrong, wrong or ("no such task" if not tasks else "all"))


ALL: Final = Expect(
    "all",
    "every task whose id fits a pattern, and there is one; or so many of them",
    (("all",),),
    Form(
        "all expectation",
        "several tasks at a moment",
        (
            AT,
            BY,
            Field("all", kinds.PATTERN, "ids", required=True),
            Field("are", _STATES, "one of these states", required=True),
            Field("reason", _REASON, "a reason held then"),
            Field("node", kinds.PATTERN, "any member's node"),
            Field("min", kinds.COUNT, "at least so many of them, instead of all"),
            Field("max", kinds.COUNT, "at most so many of them"),
        ),
        check=one_moment,
    ),
    _all_at,
    _all_by,
)
