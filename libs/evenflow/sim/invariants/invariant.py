"""The shape of a standing invariant: looked at after every record, and once more at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen


class Invariant(Protocol):
    """One standing invariant. It keeps what it must remember between records."""

    name: str

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """What is broken now that this record is in."""

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """What is broken at the end; `settled` says that faults had ended and everything had time to finish."""


def attempt_of(model: Observation, record: Seen) -> tuple[Any, Any] | None:
    """The task and attempt that a decision names, if both are known."""
    body = record.body
    task = model.tasks.get((str(body.get("tenant", "default")), str(body.get("task", ""))))
    attempt = None if task is None else task.attempts.get(body.get("attempt", -1))
    return None if task is None or attempt is None else (task, attempt)
