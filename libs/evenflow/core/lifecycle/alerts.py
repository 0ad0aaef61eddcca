"""Names of alerts: the closed list. Each is raised once and cleared once, by the service that owns its subject."""

from __future__ import annotations

from enum import StrEnum


class Alert(StrEnum):
    """An alert's name."""

    NODE_SUSPECT = "node.suspect"
    NODE_LOST = "node.lost"
    NODE_QUARANTINED = "node.quarantined"
    NODE_BASELINE = "node.baseline"
    NODE_LEFTOVER = "node.leftover"
    NODE_IDENTITY = "node.identity"
    NODE_DRIFT = "node.drift"
    NODE_SKEW = "node.skew"
    SITE_OCCUPANCY = "site.occupancy"
    DATASET_MISSING = "dataset.missing"
    STORE_UNAVAILABLE = "store.unavailable"
    ARCHIVE_BEHIND = "archive.behind"
    TASK_IDLE = "task.idle"
    LINK_DEGRADED = "link.degraded"
    LINK_BASELINE = "link.baseline"
    TASK_STUCK = "task.stuck"
    TASK_UNSATISFIABLE = "task.unsatisfiable"
    CHECKPOINT_DAMAGED = "checkpoint.damaged"
    CHECKPOINT_UNPROTECTED = "checkpoint.unprotected"
    QUEUE_LIMIT = "queue.limit"
    QUEUE_EXPIRY = "queue.expiry"
    BUDGET_LIMIT = "budget.limit"
    WINDOW_UPCOMING = "window.upcoming"
    LOG_LAG = "log.lag"
    LOG_DEAD_LETTERS = "log.dead-letters"
    OBSERVER_BLIND = "observer.blind"
    LEDGER_BROKEN = "ledger.broken"
