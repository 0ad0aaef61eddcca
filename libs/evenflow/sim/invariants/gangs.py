"""INV3 gang: all members or none, beyond a bounded time for binding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.task import TERMINAL
from evenflow.sim.invariants.invariant import attempt_of
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen

#: Time within which every member of an attempt must be desired on its node.
BIND_MS: Final = 5_000


class Gangs:
    """Checked at every assignment and every desired state."""

    name = "INV3"

    def __init__(self) -> None:
        self._bound: dict[tuple[str, int], tuple[int, dict[int, None]]] = {}
        self._told: dict[str, None] = {}

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """An assignment names every member once; soon after, every member is desired."""
        if record.type == EventType.TASK_ASSIGNED and (found := attempt_of(model, record)) is not None:
            if record.id in self._told:
                return  # delivered once more, it binds nobody anew
            self._told[record.id] = None
            task, attempt = found
            numbers = sorted(attempt.members)
            if numbers != list(range(len(record.body.get("members", ())))) or not numbers:
                yield f"attempt {attempt.number} of {task.shown} has members {numbers}"
            self._bound[task.shown, attempt.number] = (model.now_ms, {})
        elif record.type == EventType.ATTEMPT_DESIRED and (found := attempt_of(model, record)) is not None:
            task, attempt = found
            yield from self._desired(task, attempt, record)
        yield from self._late(model)

    def _desired(self, task: object, attempt: object, record: Seen) -> Iterator[str]:
        shown, number = task.shown, attempt.number  # type: ignore[attr-defined]  # views of the observer
        place = record.body.get("place") or {}
        members = attempt.members  # type: ignore[attr-defined]  # a view of the observer
        nodes = [members[index].node for index in sorted(members)]
        if len(members) > 1 and record.body.get("wish") == "run" and list(record.body.get("peers", ())) != nodes:
            told = list(record.body.get("peers", ()))
            yield f"member {place.get('member')} of attempt {number} of {shown} is told of {told}, they are on {nodes}"
        if record.body.get("wish") == "run" and (shown, number) in self._bound:
            self._bound[shown, number][1][int(place.get("member", 0))] = None
            document = task.document or {}  # type: ignore[attr-defined]  # a view of the observer
            wanted = document.get("members", 1)
            if isinstance(wanted, int) and "min_members" not in document and len(members) != wanted:
                yield f"attempt {number} of {shown} has {len(members)} members, {wanted} were asked for"
                del self._bound[shown, number]

    def _late(self, model: Observation) -> Iterator[str]:
        for (shown, number), (since_ms, desired) in list(self._bound.items()):
            task = model.named(shown)
            attempt = None if task is None else task.attempts.get(number)
            over = attempt is None or attempt.ended_ms is not None or attempt.stopping
            if (
                over
                or task is None
                or task.state in TERMINAL
                or len(desired) == len(attempt.members if attempt else ())
            ):
                del self._bound[shown, number]
            elif model.now_ms - since_ms > BIND_MS:
                del self._bound[shown, number]
                yield f"only members {list(desired)} of attempt {number} of {shown} were bound within {BIND_MS} ms"

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """Nothing more."""
        del settled
        yield from self._late(model)
