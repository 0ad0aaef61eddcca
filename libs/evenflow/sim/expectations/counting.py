"""`{between, count, task, queue, node, min, max}`: how often something happened."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

from evenflow.core.errors import FieldRefused
from evenflow.sim.expectations.attempts import within
from evenflow.sim.expectations.form import BETWEEN, Answer, Expect
from evenflow.sim.observation.model import Observation
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Values

COUNTS: Final = (
    "started", "queued", "preempted", "requeued", "rejected", "refused", "lost", "stopped", "moved", "crossed",
    "parked", "ended", "exited",
)  # fmt: skip


def _count(values: Values, model: Observation, t_ms: int) -> Answer:
    low, high = values["between"] or (0, t_ms)
    filters = {name: values[name] for name in ("task", "queue", "node") if values[name] is not None}
    if values["count"] == "parked":
        filters = {}
    entries = [
        entry
        for entry in model.counts
        if entry.count == values["count"]
        and low <= entry.t_ms <= high
        and all(fnmatchcase(getattr(entry, name), pattern) for name, pattern in filters.items())
    ]
    if values["count"] == "rejected":
        found = len({(entry.task, entry.t_ms) if not entry.task else (entry.task, 0) for entry in entries})
    else:
        found = len(entries)
    return Answer(within(found, values["min"], values["max"]), found)


def _check(values: Values, path: str) -> None:
    if not {"min", "max"} & values.keys():
        raise FieldRefused(path, "needs min or max")


COUNT: Final = Expect(
    "count",
    "how often something happened",
    (("count",),),
    Form(
        "count expectation",
        "what is counted, about whom, in which time",
        (
            BETWEEN,
            Field("count", kinds.choice(*COUNTS), "what", required=True),
            Field("task", kinds.PATTERN, "about these tasks"),
            Field("queue", kinds.PATTERN, "in these queues"),
            Field("node", kinds.PATTERN, "on these nodes"),
            Field("min", kinds.COUNT, "at least"),
            Field("max", kinds.COUNT, "at most"),
        ),
        check=_check,
    ),
    _count,
)
