"""The three fields of a node's state: reach × administration × health.

Reach follows silence by the receiver's clock: ok → suspect → lost, and back to ok on any accepted message. Only an
operator changes administration. Health leaves ok for a named reason. A node takes new work when it is ok, open and ok.
"""

from __future__ import annotations

from enum import StrEnum


class Reach(StrEnum):
    """Whether the node is heard."""

    OK = "ok"
    SUSPECT = "suspect"
    LOST = "lost"


class Administration(StrEnum):
    """What operators said of it."""

    OPEN = "open"
    CORDONED = "cordoned"
    DRAINING = "draining"
    MAINTENANCE = "maintenance"


class Health(StrEnum):
    """Whether it can be trusted with work."""

    OK = "ok"
    QUARANTINED = "quarantined"


class HealthReason(StrEnum):
    """Why a node is quarantined."""

    START_FAILURES = "start-failures"
    FLAPPING = "flapping"
    BASELINE = "baseline"
    DEVICE = "device"
    DRIFT = "drift"
    IDENTITY = "identity"
    INSPECTION = "inspection"


class DeviceState(StrEnum):
    """One accelerator: usable, kept back by a leftover process, or broken."""

    OK = "ok"
    HELD = "held"
    BROKEN = "broken"


def takes_work(reach: Reach, administration: Administration, health: Health) -> bool:
    """Whether new work may be placed there."""
    return reach is Reach.OK and administration is Administration.OPEN and health is Health.OK
