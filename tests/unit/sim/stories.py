"""Stories for the observer and the invariants: records told by hand, folded as the world does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evenflow.events.envelope import time_text
from evenflow.sim.expectations.runner import Judge
from evenflow.sim.invariants import Guardian
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen
from evenflow.sim.scenario.file import Expectation
from evenflow.sim.scenario.parse import read_expectation
from evenflow.sim.scenario.schema import Reading

PLACE: dict[str, Any] = {
    "member": 0,
    "node": "n1",
    "site": "east",
    "devices": [{"index": 0, "milli": 300}],
    "cpu_milli": 1000,
    "memory_bytes": 2**30,
    "disk_bytes": 0,
    "price_per_hour_micro": 4_000_000,
}
SPECIFICATION = {"id": "t1", "queue": "q", "resources": {"devices": {"share": 0.3}}}


class Story:
    """Writes records and folds them, as the world does."""

    def __init__(self) -> None:
        self.model = Observation()
        self.guardian = Guardian(silence_tolerance_ms=30_000, blind_max_ms=900_000)
        self.records: list[Seen] = []

    def say(
        self, t_s: float, event_type: str, body: Mapping[str, Any] | None = None, *, fact: str = "", **more: object
    ) -> None:
        """One record; every fact has its own id unless given, and said so many seconds after 1970."""
        number = len(self.records)
        said = {"ce_type": event_type, "ce_id": fact or f"id-{number}", "ce_time": time_text(round(t_s * 1000)), **more}
        headers = tuple((name, str(value).encode()) for name, value in said.items())
        record = Seen(round(t_s * 1000), "topic", 0, number, b"default/t1", json.dumps(body or {}).encode(), headers)
        self.records.append(record)
        self.model.apply(record)
        self.guardian.after(self.model, record)

    def node(self, name: str = "n1", **changes: Any) -> None:
        """A node with one device."""
        body = {
            "node": name,
            "document": {"id": name, "site": "east", "devices": {"model": "a100-80g", "count": 1}},
            "reach": "ok",
            "administration": "open",
            "health": "ok",
            "devices": [{"index": 0, "state": "ok"}],
        }
        self.say(changes.pop("at", 0), "node.registered", {**body, **changes})

    def queue(self, **limit: Any) -> None:
        """Queue q with a limit."""
        document = {"id": "q", "parent": "root", "limit": limit}
        self.say(0, "document.published", {"kind": "queue", "name": "q", "version": 1, "document": document})

    def task(
        self, t_s: float, event_type: str, task: str = "t1", *, fact: str = "", session: str = "", **more: Any
    ) -> None:
        """A decision about a task, or what an agent says of it in a session."""
        body = {"tenant": "default", "task": task, "queue": "q", **more}
        self.say(t_s, event_type, body, fact=fact, **({"session": session} if session else {}))

    def assign(self, t_s: float, task: str = "t1", *, attempt: int = 1, waits: bool = False, **place: Any) -> None:
        """A place for one member, and its desired state. `waits`: its node is waited for."""
        where = {**PLACE, **place}
        self.task(t_s, "task.assigned", task, attempt=attempt, generation=attempt, epoch=1, members=[where])
        document = {**SPECIFICATION, "id": task, **({"reschedule_on_lost": False} if waits else {})}
        self.task(t_s, "attempt.desired", task, attempt=attempt, wish="run", place=where, specification=document)

    def set_back(self, t_s: float, pause_s: float, *, fact: str = "") -> None:
        """A failed attempt, and when the next may begin at the earliest."""
        due_ms, use = round((t_s + pause_s) * 1000), {"attempt": 1, "end": "failed"}
        self.task(t_s, "task.requeued", fact=fact, use=use, failure_count=1, not_before_ms=due_ms)

    def beat(self, t_s: float, sequence: int, node: str = "n1", *, session: str = "s") -> None:
        """A node's life sign; the first of a session announces it."""
        kind = "node.heartbeat" if sequence > 1 else "node.announced"
        self.say(t_s, kind, {"node": node}, session=session, sequence=sequence)

    def lost(self, t_s: float, node: str = "n1") -> None:
        """The observer, awake all the while, gives a node up."""
        for moment in range(0, round(t_s), 5):
            self.say(moment, "observer.beacon", {"observer": "inventory"})
        self.say(t_s, "node.changed", {"node": node, "reach": "lost"})

    def receipt(self, t_s: float, kind: str, task: str = "t1", *, attempt: int = 1, **more: Any) -> None:
        """A receipt of member 0 on n1."""
        body = {"attempt": attempt, "member": 0, "node": "n1", **more}
        self.task(t_s, f"attempt.{kind}", task, **body)

    def violations(self) -> list[str]:
        """Names of the invariants that broke."""
        return [violation.invariant for violation in self.guardian.violations]

    def judge(self, *written: dict[str, Any], until_s: float = 100) -> list[Any]:
        """What was found by the expectations that do not hold."""
        reading = Reading()
        expectations: list[Expectation] = [
            read_expectation(entry, f"expect[{number}]", number, reading) for number, entry in enumerate(written)
        ]
        judge = Judge(expectations, round(until_s * 1000))
        judge.finish(self.model)
        return [broken.number for broken in judge.broken]


def whole_life() -> Story:
    """One task from its queue to its bill."""
    story = Story()
    story.node()
    story.queue(devices="0.3")
    story.task(1, "task.queued", reasons=[], submitted_ms=5)
    story.assign(1)
    story.receipt(1.5, "accepted")
    story.receipt(2, "started", resumed_progress_ms=0)
    story.receipt(12, "succeeded")
    story.receipt(12.5, "reclaimed")
    story.task(
        12.6, "task.ended", end="succeeded", use={"attempt": 1, "end": "succeeded"}, failure_count=0, submitted_ms=5
    )
    usage = {"entry": "default/t1/1/0/work", "kind": "work", "device_milli": 300, "device_milli_ms": 3_000_000}
    story.say(13, "usage.measured", {**usage, "price_per_hour_micro": 4_000_000})
    charge = {
        "entry": "default/t1/1/0/work",
        "kind": "work",
        "tenant": "default",
        "task": "t1",
        "attempt": 1,
        "member": 0,
    }
    story.say(
        13,
        "charge.recorded",
        {**charge, "queue": "q", "amount_micro": 3_333, "duration_ms": 10_000, "device_milli_ms": 3_000_000},
    )
    return story
