"""Why an attempt ended: the closed list."""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """The cause of an attempt's end."""

    USER_ERROR = "user-error"
    OUT_OF_MEMORY = "out-of-memory"
    NODE_LOST = "node-lost"
    LINK_LOST = "link-lost"
    PREEMPTED = "preempted"
    CANCELLED = "cancelled"
    START_FAILED = "start-failed"
    READY_TIMEOUT = "ready-timeout"
    DEADLINE = "deadline"
    MAINTENANCE = "maintenance"
    QUOTA_EXPIRY = "quota-expiry"
    DRAINED = "drained"
    MOVED = "moved"
    NODE_RECLAIMED = "node-reclaimed"
    DEVICE_BROKEN = "device-broken"
    PEER_LOST = "peer-lost"
    IDLE = "idle"
    LEFTOVER = "leftover"
    UNKNOWN = "unknown"
