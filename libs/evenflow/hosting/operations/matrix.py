"""What every service must tell of itself: its spans and its figures, for a task that goes from submission to its bill.

The table stands in docs/observability.md, and a test drives such a task and looks at every cell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from evenflow.platform.observability import signals
from evenflow.platform.observability.signals import Signal

_PUBLISHING: Final = (signals.PUBLISHED, signals.PUBLISHING, signals.UNCONFIRMED)
_HANDLING: Final = (signals.HANDLED, signals.HANDLING)
_STEPPING: Final = (signals.STEPS, signals.STEP)
_DOOR: Final = (signals.REQUESTS, signals.REQUEST)


@dataclass(frozen=True, slots=True)
class Told:
    """Spans by name and figures of one service. `course`: its spans stand in the task's own trace."""

    spans: tuple[str, ...]
    signals: tuple[Signal, ...]
    course: bool


EXPECTED: Final[Mapping[str, Told]] = {
    "inventory": Told(
        ("publish node.registered",),
        (*_HANDLING, *_PUBLISHING, signals.FOLLOWED, *_STEPPING, signals.NODES),
        course=False,
    ),
    "link-probe": Told(
        ("handle evenflow.probes.v1", "publish link.estimated"),
        (*_HANDLING, *_PUBLISHING, signals.FOLLOWED, *_STEPPING, signals.LINKS, signals.LINK_AGE),
        course=False,
    ),
    "placement": Told(
        ("round", "publish task.assigned", "publish attempt.desired", "publish task.ended"),
        (
            signals.FOLLOWED,
            signals.ROUNDS,
            signals.DECIDING,
            signals.COMMITTING,
            signals.ASSIGNED,
            signals.WAITING,
            signals.WAITING_AGE,
            signals.LEADING,
        ),
        course=True,
    ),
    "billing": Told(
        ("handle evenflow.runs.v1", "publish usage.measured", "ledger batch", "publish charge.recorded"),
        (*_HANDLING, *_PUBLISHING, signals.FOLLOWED, *_STEPPING, signals.LEDGER_ENTRIES, signals.LEDGER_VIEW),
        course=True,
    ),
    "checkpoint": Told(
        ("handle evenflow.runs.v1", "objects get", "publish checkpoint.verified"),
        (*_HANDLING, *_PUBLISHING, signals.FOLLOWED, *_STEPPING, signals.CHECKPOINTS),
        course=True,
    ),
    "gateway": Told(
        ("POST /v1/nodes/{node}/records", "publish attempt.started", "publish attempt.succeeded"),
        (*_PUBLISHING, signals.FOLLOWED, *_DOOR, signals.SESSIONS, signals.AGENT_RECORDS),
        course=True,
    ),
    "console": Told(
        ("POST /api/v1/tasks", "publish task.submitted"),
        (
            *_PUBLISHING,
            signals.FOLLOWED,
            *_STEPPING,
            *_DOOR,
            signals.TASKS,
            signals.LEDGER_BROKEN,
            signals.DEAD_LETTERS,
        ),
        course=True,
    ),
}


def missing(service: str, spans: Collection[str], figures: Collection[str]) -> Iterator[str]:
    """What a service should have told and did not."""
    told = EXPECTED[service]
    yield from (f"{service} tells no span {name!r}" for name in told.spans if name not in spans)
    yield from (f"{service} tells no figure {one.name}" for one in told.signals if one.name not in figures)


def table() -> str:
    """The matrix for people, as Markdown."""
    lines = ["| service | in the task's trace | spans | figures |", "|---|---|---|---|"]
    for service, told in EXPECTED.items():
        spans = ", ".join(f"`{name}`" for name in told.spans)
        figures = ", ".join(f"`{one.name}`" for one in told.signals)
        lines.append(f"| {service} | {'yes' if told.course else 'no'} | {spans} | {figures} |")
    return "\n".join(lines)
