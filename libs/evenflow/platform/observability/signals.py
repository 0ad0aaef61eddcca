"""Every metric of the product: its name, kind, labels and meaning. Nothing else names one.

Units stand last in names: `_ms` milliseconds, `_seconds` whole seconds, otherwise what is counted. What a label can
hold is bounded: names of topics, groups, pools, steps and outcomes, never of tasks or nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class Signal:
    """One metric. `about` is shown to whoever collects it."""

    kind: Kind
    name: str
    labels: tuple[str, ...]
    about: str


HANDLED: Final = Signal(
    "counter", "evenflow_handled_records", ("topic", "outcome"), "Records handled: applied, parked, or read again"
)
HANDLING: Final = Signal("histogram", "evenflow_handling_ms", ("topic",), "Time of one batch in its handler")
PUBLISHED: Final = Signal("counter", "evenflow_published_records", ("topic",), "Records that the log confirmed")
PUBLISHING: Final = Signal("histogram", "evenflow_publishing_ms", (), "Time until the log confirmed one batch")
UNCONFIRMED: Final = Signal("gauge", "evenflow_unconfirmed_records", (), "Records that the log did not confirm yet")
LAG: Final = Signal("gauge", "evenflow_lag_records", ("group", "topic"), "Records that a group has not handled yet")
LAG_AGE: Final = Signal(
    "gauge", "evenflow_lag_seconds", ("group", "topic"), "Age of the oldest record that a group has not handled yet"
)
FOLLOWED: Final = Signal("counter", "evenflow_followed_records", ("topic",), "Records read into tables")
STEPS: Final = Signal("counter", "evenflow_steps", ("step", "outcome"), "Periodic work: done or failed")
STEP: Final = Signal("histogram", "evenflow_step_ms", ("step",), "Time of one turn of periodic work")
ROUNDS: Final = Signal("counter", "evenflow_rounds", ("pool",), "Rounds that placement committed")
DECIDING: Final = Signal("histogram", "evenflow_round_decide_ms", ("pool",), "Time until a round was decided")
COMMITTING: Final = Signal("histogram", "evenflow_round_commit_ms", ("pool",), "Time until a round was committed")
ASSIGNED: Final = Signal("counter", "evenflow_assigned_tasks", ("pool",), "Attempts that placement began")
WAITING: Final = Signal("gauge", "evenflow_waiting_tasks", ("pool",), "Tasks that wait for a place")
WAITING_AGE: Final = Signal(
    "gauge", "evenflow_oldest_waiting_seconds", ("pool",), "For how long the task that waits longest has waited"
)
LEADING: Final = Signal("gauge", "evenflow_leading", ("pool",), "1 where this process decides, 0 where it stands by")
REQUESTS: Final = Signal(
    "counter", "evenflow_http_requests", ("door", "route", "status"), "HTTP requests answered, by route and status"
)
REQUEST: Final = Signal("histogram", "evenflow_http_request_ms", ("door", "route"), "Time of one HTTP request")
NODES: Final = Signal("gauge", "evenflow_nodes", ("reach",), "Registered nodes: heard, silent for a while, or lost")
LINKS: Final = Signal("gauge", "evenflow_links", ("state",), "Measured links: ok, degraded or unreachable")
LINK_AGE: Final = Signal(
    "gauge",
    "evenflow_oldest_link_sample_seconds",
    (),
    "Time since the last sample of the link that has waited longest",
)
CHECKPOINTS: Final = Signal(
    "counter", "evenflow_checkpoints", ("outcome",), "Checkpoints: verified, damaged, too late, or removed"
)
LEDGER_ENTRIES: Final = Signal("counter", "evenflow_ledger_entries", ("kind",), "Entries written into the ledger")
LEDGER_BROKEN: Final = Signal("gauge", "evenflow_ledger_broken_queues", (), "Queues whose chain of entries is broken")
LEDGER_VIEW: Final = Signal("gauge", "evenflow_ledger_view_entries", (), "Entries that wait for the document store")
SESSIONS: Final = Signal("counter", "evenflow_agent_sessions", (), "Sessions that agents opened")
AGENT_RECORDS: Final = Signal(
    "counter", "evenflow_agent_records", ("outcome",), "Records of agents: accepted, or the code of their refusal"
)
TASKS: Final = Signal("gauge", "evenflow_tasks", ("state",), "Tasks that the console remembers, by state")
DEAD_LETTERS: Final = Signal("gauge", "evenflow_dead_letters", ("topic",), "Dead letters that nobody answered yet")

SIGNALS: Final = tuple(value for value in dict(globals()).values() if isinstance(value, Signal))
