"""Whoever asks: the name that is recorded, the role, the bounds, and from where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from evenflow.console.problems import Problem, printable
from evenflow.core.lifecycle.roles import Role

#: Where the caller of a request stands in its scope.
SCOPE: Final = "evenflow.caller"
LOCAL: Final = "local"
OWNER: Final = "owner"
UNKNOWN: Final = "unknown"


@dataclass(slots=True)
class Caller:
    """One request's caller. Empty `tenant` and `queue` = any; `role` None = nobody knows who it is.

    `lets_in` says whether what was shown still holds: an answer may go on for hours, and its caller's right may not.
    `reason` is what the request's header gives. `recorded` counts the lines of the record that the request left, and
    `refusal` is why it was refused, so that one that left none can be recorded once.
    """

    name: str
    role: Role | None
    tenant: str = ""
    queue: str = ""
    address: str = ""
    reason: str = ""
    recorded: int = 0
    refusal: Problem | None = None
    lets_in: Callable[[], bool] = lambda: True

    def need(self, role: Role, what: str) -> None:
        """Raises Problem, which names the role that is needed, when this one is not enough."""
        if self.role is None or not self.role.includes(role):
            raise Problem(
                403,
                "role-needed",
                f"{what} needs the role {role}; {self.name} is {self.role}",
                way_out=f"Ask an owner for a token: evenflow tokens issue --name NAME --role {role}.",
            )

    def keep_to(self, *, tenant: str | None = None, queue: str | None = None) -> None:
        """Raises Problem when the token is bounded to another tenant or queue than a request is about."""
        for path, bound, asked in (("tenant", self.tenant, tenant), ("queue", self.queue, queue)):
            if bound and asked is not None and asked != bound:
                raise Problem(
                    403,
                    "out-of-bounds",
                    f"the token of {self.name} is bounded to the {path} {bound}, not {printable(asked)}",
                    path=path,
                    way_out=f"Name the {path} {bound}, or ask an owner for another token.",
                )
