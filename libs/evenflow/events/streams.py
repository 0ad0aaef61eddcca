"""The registry of streams: key, partitions, retention, archive, writers, readers. Nothing else names a topic.

Keys and partition counts never change; a change is a new major topic. Every stream `x` has its dead letters in `x.dlq`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

DAY_MS: Final = 86_400_000
PARTITIONS: Final = 16
MESSAGE_BYTES_MAX: Final = 1_048_576
#: A host whose clock is fast must still be heard: by default the log refuses what is stamped an hour ahead.
ANY_MS: Final = (1 << 63) - 1
#: A dead letter is its record with the origin, the reason and the original headers in hexadecimal beside it.
LETTER_BYTES_MAX: Final = MESSAGE_BYTES_MAX + 131_072


@dataclass(frozen=True, slots=True)
class Stream:
    """One topic. `key` says what a record's key is made of; `archive` copies records before they expire.

    `traced` records carry a trace context; life signs and state rows are no part of anybody's course. `stamped` ones
    carry a node's stamp, or nobody applies them.
    """

    name: str
    key: str
    writers: tuple[str, ...]
    readers: tuple[str, ...]
    carries: tuple[str, ...]
    partitions: int = PARTITIONS
    retention_ms: int = 7 * DAY_MS
    compacted: bool = False
    archive: bool = False
    dead_letters: bool = True
    traced: bool = True
    stamped: bool = False
    message_bytes_max: int = MESSAGE_BYTES_MAX

    @property
    def configs(self) -> Mapping[str, str]:
        """Topic settings by Kafka's own names."""
        settings = {"max.message.bytes": str(self.message_bytes_max), "message.timestamp.after.max.ms": str(ANY_MS)}
        if self.compacted:
            settings |= {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1", "segment.ms": "3600000"}
        else:
            settings |= {"cleanup.policy": "delete", "retention.ms": str(self.retention_ms)}
        return settings


TASKS = Stream(
    "evenflow.tasks.v1", "tenant/task", ("producers", "console"), ("placement", "console"),
    ("task.submitted", "task.cancel-requested", "task.change-requested"),
)  # fmt: skip
REQUESTS = Stream(
    "evenflow.requests.v1", "subject", ("console",), ("inventory",),
    ("node.cordon-requested", "node.uncordon-requested", "node.drain-requested", "node.revoke-requested",
     "window.set-requested", "window.remove-requested", "quota.renew-requested", "link.rehearse-requested",
     "dataset.add-requested", "dataset.drop-requested", "charge.correct-requested"),
)  # fmt: skip
ASSIGNMENTS = Stream(
    "evenflow.assignments.v1", "tenant/task", ("placement",), ("billing", "checkpoint", "console", "subscribers"),
    ("task.queued", "task.assigned", "task.preempted", "task.requeued", "task.rejected", "task.ended", "task.changed",
     "task.change-refused", "submission.refused"), retention_ms=30 * DAY_MS, archive=True,
)  # fmt: skip
DISPATCH = Stream(
    "evenflow.dispatch.v1", "node/tenant/task/attempt/member", ("placement",), ("gateway", "console"),
    ("attempt.desired",), compacted=True,
)  # fmt: skip
NODE_REQUESTS = Stream(
    "evenflow.node-requests.v1", "node", ("link-probe",), ("gateway",),
    ("node.probe-requested", "dataset.prefetch-requested", "node.inspect-requested", "task.checkpoint-requested"),
    retention_ms=DAY_MS,
)  # fmt: skip
RUNS = Stream(
    "evenflow.runs.v1", "tenant/task", ("agents",), ("placement", "checkpoint", "billing", "console"),
    ("attempt.accepted", "attempt.refused", "attempt.staged", "attempt.started", "attempt.progressed",
     "attempt.checkpointed", "attempt.succeeded", "attempt.failed", "attempt.stopped", "attempt.reclaimed"),
    stamped=True,
)  # fmt: skip
TELEMETRY = Stream(
    "evenflow.telemetry.v1", "node", ("agents", "inventory"), ("inventory",),
    ("node.announced", "node.heartbeat", "observer.beacon"), retention_ms=DAY_MS, traced=False,
)  # fmt: skip
PROBES = Stream(
    "evenflow.probes.v1", "node", ("agents",), ("link-probe",), ("link.sampled",), retention_ms=DAY_MS,
    stamped=True,
)  # fmt: skip
NODES = Stream(
    "evenflow.nodes.v1", "node", ("inventory",), ("inventory", "placement", "gateway", "link-probe", "console"),
    ("node.registered", "node.changed", "node.refused"), compacted=True, archive=True,
)  # fmt: skip
LINKS = Stream(
    "evenflow.links.v1", "from/to", ("link-probe",), ("link-probe", "placement", "console"),
    ("link.estimated", "link.degraded", "link.recovered"), compacted=True,
)  # fmt: skip
DATASETS = Stream(
    "evenflow.datasets.v1", "dataset", ("inventory",), ("inventory", "placement", "console"), ("dataset.changed",),
    compacted=True,
)  # fmt: skip
TRANSFERS = Stream(
    "evenflow.transfers.v1", "transfer", ("agents",), ("inventory", "billing", "console"),
    ("transfer.planned", "transfer.progressed", "transfer.finished", "transfer.failed"), stamped=True,
)  # fmt: skip
CHECKPOINTS = Stream(
    "evenflow.checkpoints.v1", "tenant/task", ("checkpoint",), ("checkpoint", "placement", "console"),
    ("checkpoint.verified", "checkpoint.replicated", "checkpoint.damaged", "checkpoint.pruned"),
)  # fmt: skip
USAGE = Stream(
    "evenflow.usage.v1", "queue", ("billing",), ("billing",), ("usage.measured",),
)  # fmt: skip
BILLING = Stream(
    "evenflow.billing.v1", "queue", ("billing",), ("billing", "console", "dashboards"),
    ("charge.recorded", "charge.corrected", "crossing.settled", "budget.changed", "quota.reported"),
    retention_ms=90 * DAY_MS, archive=True,
)  # fmt: skip
POLICIES = Stream(
    "evenflow.policies.v1", "kind/name", ("console",), ("placement", "billing", "link-probe", "inventory", "console"),
    ("document.published",), compacted=True, archive=True,
)  # fmt: skip
ROUNDS = Stream(
    "evenflow.rounds.v1", "pool", ("placement",), ("console",), ("round.completed",), archive=True,
)  # fmt: skip
ALERTS = Stream(
    "evenflow.alerts.v1", "name/subject", ("inventory", "placement", "link-probe", "checkpoint", "gateway"),
    ("inventory", "console"),
    ("alert.raised", "alert.cleared", "alert.acknowledged"), retention_ms=30 * DAY_MS,
)  # fmt: skip
AUDIT = Stream(
    "evenflow.audit.v1", "actor", ("console",), ("console",), ("change.recorded",),
    retention_ms=90 * DAY_MS, archive=True,
)  # fmt: skip
PLACEMENT_STATE = Stream(
    "evenflow.placement-state.v1", "task/… node/… pool/…", ("placement",), ("placement",), ("state.recorded",),
    partitions=1, compacted=True, dead_letters=False, traced=False,
)  # fmt: skip
BILLING_STATE = Stream(
    "evenflow.billing-state.v1", "queue/… entry/… pool/…", ("billing",), ("billing",), ("state.recorded",),
    compacted=True, dead_letters=False, traced=False,
)  # fmt: skip
PLACEMENT_LEADER = Stream(
    "evenflow.placement-leader.v1", "", ("placement",), ("placement", "inventory", "link-probe"), (),
    partitions=1, dead_letters=False,
)  # fmt: skip

STREAMS: Final[tuple[Stream, ...]] = (
    TASKS, REQUESTS, ASSIGNMENTS, DISPATCH, NODE_REQUESTS, RUNS, TELEMETRY, PROBES, NODES, LINKS, DATASETS, TRANSFERS,
    CHECKPOINTS, USAGE, BILLING, POLICIES, ROUNDS, ALERTS, AUDIT, PLACEMENT_STATE, BILLING_STATE, PLACEMENT_LEADER,
)  # fmt: skip

BY_NAME: Final[dict[str, Stream]] = {stream.name: stream for stream in STREAMS}


def dead_letters_of(topic: str) -> str:
    """The topic where records of `topic` are parked."""
    return f"{topic}.dlq"


def topics() -> list[Stream]:
    """Every topic to create, dead letters included, in a fixed order."""
    parked = [
        Stream(
            dead_letters_of(stream.name), stream.key, ("platform",), ("console",), ("record.parked",),
            partitions=1, retention_ms=30 * DAY_MS, dead_letters=False, message_bytes_max=LETTER_BYTES_MAX,
        )
        for stream in STREAMS if stream.dead_letters
    ]  # fmt: skip
    return [*STREAMS, *parked]
