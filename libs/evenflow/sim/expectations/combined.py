"""`{any_of: […]}` and `{same: node, over: […]}`."""

from __future__ import annotations

from typing import Final

from evenflow.sim.expectations.form import AT, Answer, Expect
from evenflow.sim.observation.model import Observation
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Values


def _never(_values: Values, _model: Observation, _t_ms: int) -> Answer:
    """The runner judges the alternatives one by one, each at its own moment."""
    return Answer(holds=False, got=None)


ANY_OF: Final = Expect(
    "any_of",
    "one of several expectations, each with its own moment",
    (("any_of",),),
    Form(
        "any_of expectation",
        "alternatives",
        (Field("any_of", kinds.list_of(kinds.ANY_MAP, least=1), "expectations", required=True),),
    ),
    _never,
)


def _same(values: Values, model: Observation, t_ms: int) -> Answer:
    found: dict[str, list[str]] = {}
    for name in values["over"]:
        task = model.named(name)
        nodes: list[str] = []
        if task is not None:
            begun = [attempt for attempt in task.attempts.values() if attempt.assigned_ms <= t_ms]
            nodes = sorted({member.node for member in begun[-1].members.values()}) if begun else []
        if values["same"] == "site":
            nodes = sorted({model.nodes[node].site for node in nodes if node in model.nodes})
        found[name] = nodes
    first = found[values["over"][0]]
    return Answer(bool(first) and all(nodes == first for nodes in found.values()), found)


SAME: Final = Expect(
    "same",
    "several tasks had their newest attempt at the same place",
    (("same",), ("over",)),
    Form(
        "same expectation",
        "what is the same, over which tasks",
        (
            AT,
            Field("same", kinds.choice("node", "site"), "what is the same", required=True),
            Field("over", kinds.list_of(kinds.TEXT, least=1), "ids of tasks", required=True),
        ),
    ),
    _same,
)
