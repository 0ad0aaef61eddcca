"""What a drawn world is made of, and the scenario document that it becomes."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final

Document = dict[str, Any]

#: Faults begin within this time; tasks arrive in it.
FAULT_SPAN_S: Final = 120
#: Time after `settle` in which everything satisfiable must end.
SETTLED_SPAN_S: Final = 1_200


@dataclass(slots=True)
class Scene:
    """One drawn world. `chance` is the only source of draws; `steps` are put in order of time at the end."""

    seed: int
    chance: random.Random
    sites: list[Document] = field(default_factory=list)
    links: list[Document] = field(default_factory=list)
    nodes: list[Document] = field(default_factory=list)
    queues: list[Document] = field(default_factory=list)
    datasets: list[Document] = field(default_factory=list)
    settings: Document = field(default_factory=dict)
    policy: Document = field(default_factory=dict)
    tasks: list[Document] = field(default_factory=list)
    steps: list[Document] = field(default_factory=list)
    settle_s: float = FAULT_SPAN_S + 40

    def site_ids(self) -> list[str]:
        """Names of the sites."""
        return [site["id"] for site in self.sites]

    def node_ids(self) -> list[str]:
        """Names of the nodes that are there from the beginning."""
        return [node["id"] for node in self.nodes]

    def task_ids(self) -> list[str]:
        """Names of the tasks."""
        return [task["id"] for task in self.tasks]

    def moment(self, first_s: float = 1.0, last_s: float = FAULT_SPAN_S) -> float:
        """A moment, to the millisecond."""
        return float(round(self.chance.uniform(first_s, last_s), 3))

    def span(self, shortest_s: float, longest_s: float) -> float:
        """A duration, to the millisecond; short ones as often as long ones."""
        ratio = longest_s / shortest_s
        return float(round(shortest_s * ratio ** self.chance.random(), 3))

    def step(self, at_s: float, verb: str, arguments: Any) -> None:
        """One more step of the world."""
        self.steps.append({"at": round(at_s, 3), verb: arguments})

    def document(self, about: str) -> Document:
        """The world as a scenario document."""
        steps = sorted(self.steps, key=lambda step: float(step["at"]))
        return {
            "version": 1,
            "name": f"explored-{self.seed}",
            "about": about,
            "seed": self.seed,
            "until": self.settle_s + SETTLED_SPAN_S,
            "settings": self.settings,
            "policy": self.policy,
            "sites": self.sites,
            "links": self.links,
            "nodes": self.nodes,
            "queues": self.queues,
            "datasets": self.datasets,
            "impossible_steps": "skip",
            "steps": [*steps, {"at": self.settle_s, "settle": {}}],
        }
