"""The named fail points of services and agents: places between an effect and what follows from it."""

from __future__ import annotations

from typing import Final

#: Where a service can be made to end or to stand still.
SERVICE_POINTS: Final = (
    *(f"placement.after-fence-{index}" for index in range(2)),
    "placement.after-fence",
    "placement.after-restore",
    "placement.before-round-commit",
    "placement.after-round-commit",
    "placement.before-image",
    "placement.after-image",
    *(
        f"{service}.{side}-publish"
        for service in ("inventory", "link-probe", "checkpoint", "gateway", "console", "billing")
        for side in ("before", "after")
    ),
    "billing.before-commit",
    "billing.after-commit",
    "checkpoint.before-verify",
    "checkpoint.after-verify",
    "console.before-keep",
    "console.after-keep",
)

AGENT_POINTS: Final = (
    "agent.before-start",
    "agent.after-start",
    "agent.before-object",
    "agent.after-object",
    "agent.before-outbox",
    "agent.after-outbox",
    "agent.before-publish",
    "agent.after-publish",
    "agent.after-acknowledge",
)

POINTS: Final = (*SERVICE_POINTS, *AGENT_POINTS)
