"""Who may ask for what: roles of people and programs, each one including those before it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Role(StrEnum):
    """What a token allows, each role including those before it."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    QUEUE_ADMIN = "queue-admin"
    OPERATOR = "operator"
    OWNER = "owner"

    def includes(self, needed: Role) -> bool:
        """Whether this role is `needed` or one above it."""
        return RANKS[self] >= RANKS[needed]


RANKS: Final[dict[Role, int]] = {role: rank for rank, role in enumerate(Role)}

#: Roles that a tenant or a queue may bound; the ones above work on the whole pool.
BOUNDED: Final = (Role.VIEWER, Role.SUBMITTER, Role.QUEUE_ADMIN)
