"""Why a task waits or was refused: the closed list, and what each instance carries."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """One blocker. Waiting tasks name every blocker that holds them."""

    QUOTA = "quota"
    QUEUE_UNKNOWN = "queue-unknown"
    ID_CONFLICT = "id-conflict"
    PINNED = "pinned"
    APART = "apart"
    WAITING_LIMIT = "waiting-limit"
    CROSSING = "crossing"
    PATH = "path"
    FAILED_HERE = "failed-here"
    DEVICE_COUNT = "device-count"
    DEVICE_SHARE = "device-share"
    DEVICE_MODEL = "device-model"
    DEVICE_MEMORY = "device-memory"
    PRECISION = "precision"
    CPU = "cpu"
    MEMORY = "memory"
    DISK = "disk"
    LABEL = "label"
    SITE = "site"
    RESIDENCY = "residency"
    PERMISSION = "permission"
    NODE_STATE = "node-state"
    NODE_SIZE = "node-size"
    WINDOW = "window"
    QUOTA_EXPIRY = "quota-expiry"
    HEADROOM = "headroom"
    ADJACENCY = "adjacency"
    DATASET = "dataset"
    ENVIRONMENT = "environment"
    BUDGET = "budget"
    DEADLINE = "deadline"
    LATENCY = "latency"
    RESERVED = "reserved"
    ORDER = "order"
    BACKING_OFF = "backing-off"
    RECLAIM_PENDING = "reclaim-pending"
    OBSERVER_BLIND = "observer-blind"
    NEVER_FITS = "never-fits"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Blocker:
    """One reason with its arithmetic.

    `dimension` names what was short (cpu, devices, … or a field's path for `invalid`), `needed` and `available` are
    texts with units, `nodes` counts the nodes that this reason rules out.
    """

    reason: Reason
    dimension: str = ""
    needed: str = ""
    available: str = ""
    nodes: int = 0
