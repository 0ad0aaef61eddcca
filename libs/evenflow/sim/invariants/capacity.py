"""INV1 capacity: no device above 1, no dimension of a node above its capacity, nothing negative."""

from __future__ import annotations

from collections.abc import Iterator

from evenflow.core.lifecycle.event_types import EventType
from evenflow.sim.invariants.invariant import attempt_of
from evenflow.sim.observation.entities import DIMENSIONS, NodeView
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen

WHOLE: int = 1000


class Capacity:
    """Checked for every node that an assignment uses, and for every node that a receipt frees."""

    name = "INV1"

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """Look at the nodes that this record touched."""
        if record.type not in (EventType.TASK_ASSIGNED, EventType.ATTEMPT_RECLAIMED):
            return
        found = attempt_of(model, record)
        if found is None:
            return
        for name in dict.fromkeys(member.node for member in found[1].members.values()):
            node = model.nodes.get(name)
            if node is None:
                yield f"{found[0].shown} was given node {name}, which nobody registered"
            else:
                yield from self._node(node, found[0].shown)

    @staticmethod
    def _node(node: NodeView, task: str) -> Iterator[str]:
        # A removed node has nothing; what it held stands in the books until placement gives it up, a round later.
        for dimension in DIMENSIONS:
            used, capacity = node.used[dimension], node.capacity[dimension]
            if used < 0:
                yield f"{node.id} holds {used} of {dimension} after {task}"
            if used > capacity and not node.removed:
                yield f"{node.id} holds {used} of {dimension}, it has {capacity}, after {task}"
        for index, milli in node.device_used.items():
            if not 0 <= milli <= WHOLE or (index >= node.device_count and not node.removed):
                yield f"device {node.id}/{index} of {node.device_count} holds {milli} of {WHOLE} after {task}"

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """Nothing may be held when nothing lives."""
        if settled and all(task.current is None for task in model.tasks.values()):
            for node in model.nodes.values():
                answers = node.reach == "ok" or node.removed
                if answers and any(node.used.values()) and "held" not in node.device_states.values():
                    yield f"{node.id} still holds {node.used} although nothing lives"
