"""The table of rights: which role each route needs, and under which name the record of changes has it.

Nothing else decides this. A route that is not in the table is refused to everybody, and a test compares the table with
the application's own routes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from evenflow.core.lifecycle.roles import Role

API: Final = "/api/v1"


@dataclass(frozen=True, slots=True)
class Right:
    """Who may use a route: `role` or one above it; None = anybody, without a token.

    `action` and `subject` name a change in the record; a subject is put together from the route's parameters. `of_kind`
    says the role by the parameter `kind`, where that decides.
    """

    role: Role | None
    action: str = ""
    subject: str = ""
    of_kind: Mapping[str, Role] = field(default_factory=dict)

    def needed(self, parameters: Mapping[str, object]) -> Role | None:
        """The role that this very request needs."""
        return self.of_kind.get(str(parameters.get("kind", "")), self.role)

    def subject_of(self, parameters: Mapping[str, object], tenant: str) -> str:
        """What a request is about."""
        found = self.subject
        for name, value in (*parameters.items(), ("tenant", tenant)):
            found = found.replace(f"{{{name}}}", str(value))
        return found


def _read(role: Role | None) -> Right:
    return Right(role)


#: Quotas are the queue admins' business, the ground under the pool the operators', what binds all the owners'.
DOCUMENTS: Final = {
    "queue": Role.QUEUE_ADMIN,
    "site": Role.OPERATOR,
    "link": Role.OPERATOR,
    "policy": Role.OWNER,
    "setting": Role.OWNER,
}

_LETTER: Final = f"{API}/dlq/{{topic}}/{{partition}}/{{offset}}"
_PLACE: Final = "{topic}/{partition}/{offset}"

RIGHTS: Final[dict[tuple[str, str], Right]] = {
    ("GET", "/health"): _read(None),
    ("GET", "/ready"): _read(None),
    ("GET", "/metrics"): _read(Role.VIEWER),
    ("GET", f"{API}/openapi.json"): _read(Role.VIEWER),
    # tasks
    ("GET", f"{API}/tasks"): _read(Role.VIEWER),
    ("GET", f"{API}/tasks/{{task}}"): _read(Role.VIEWER),
    ("GET", f"{API}/tasks/{{task}}/why"): _read(Role.VIEWER),
    ("GET", f"{API}/tasks/{{task}}/events"): _read(Role.VIEWER),
    ("GET", f"{API}/tasks/{{task}}/specification"): _read(Role.VIEWER),
    ("GET", f"{API}/tasks/{{task}}/logs"): _read(Role.VIEWER),
    ("POST", f"{API}/tasks"): Right(Role.SUBMITTER, "task.submit"),
    ("POST", f"{API}/tasks/{{task}}/cancel"): Right(Role.SUBMITTER, "task.cancel", "{tenant}/{task}"),
    ("PATCH", f"{API}/tasks/{{task}}"): Right(Role.SUBMITTER, "task.change", "{tenant}/{task}"),
    # the fleet
    ("GET", f"{API}/nodes"): _read(Role.VIEWER),
    ("GET", f"{API}/nodes/{{node}}"): _read(Role.VIEWER),
    ("POST", f"{API}/nodes/{{node}}/cordon"): Right(Role.OPERATOR, "node.cordon", "{node}"),
    ("POST", f"{API}/nodes/{{node}}/uncordon"): Right(Role.OPERATOR, "node.uncordon", "{node}"),
    ("POST", f"{API}/nodes/{{node}}/drain"): Right(Role.OPERATOR, "node.drain", "{node}"),
    ("POST", f"{API}/nodes/{{node}}/revoke"): Right(Role.OPERATOR, "node.revoke", "{node}"),
    ("POST", f"{API}/invitations"): Right(Role.OPERATOR, "node.invite"),
    ("DELETE", f"{API}/invitations/{{invitation}}"): Right(Role.OPERATOR, "node.uninvite", "{invitation}"),
    ("GET", f"{API}/sites"): _read(Role.VIEWER),
    ("GET", f"{API}/links"): _read(Role.VIEWER),
    ("GET", f"{API}/datasets"): _read(Role.VIEWER),
    ("PUT", f"{API}/datasets/{{dataset}}"): Right(Role.OPERATOR, "dataset.add", "{dataset}"),
    ("DELETE", f"{API}/datasets/{{dataset}}/copies/{{site}}"): Right(Role.OPERATOR, "dataset.drop", "{dataset}"),
    # accounts
    ("GET", f"{API}/queues"): _read(Role.VIEWER),
    ("GET", f"{API}/ledger"): _read(Role.VIEWER),
    ("GET", f"{API}/crossings"): _read(Role.VIEWER),
    ("GET", f"{API}/rounds"): _read(Role.VIEWER),
    ("GET", f"{API}/alerts"): _read(Role.VIEWER),
    ("GET", f"{API}/changes"): _read(Role.VIEWER),
    ("GET", f"{API}/events"): _read(Role.VIEWER),
    # documents
    ("GET", f"{API}/documents"): _read(Role.VIEWER),
    ("GET", f"{API}/documents/{{kind}}/{{name}}"): _read(Role.VIEWER),
    ("GET", f"{API}/documents/{{kind}}/{{name}}/history"): _read(Role.VIEWER),
    ("PUT", f"{API}/documents/{{kind}}/{{name}}"): Right(
        Role.OWNER, "document.publish", "{kind}/{name}", of_kind=DOCUMENTS
    ),
    # dead letters hold whole records of anybody
    ("GET", f"{API}/dlq"): _read(Role.OPERATOR),
    ("GET", _LETTER): _read(Role.OPERATOR),
    ("POST", f"{_LETTER}/retry"): Right(Role.OPERATOR, "dead-letter.retry", _PLACE),
    ("POST", f"{_LETTER}/drop"): Right(Role.OPERATOR, "dead-letter.drop", _PLACE),
    # access itself
    ("GET", f"{API}/tokens"): _read(Role.OWNER),
    ("POST", f"{API}/tokens"): Right(Role.OWNER, "token.issue"),
    ("DELETE", f"{API}/tokens/{{token}}"): Right(Role.OWNER, "token.revoke", "{token}"),
    ("GET", f"{API}/signers"): _read(Role.VIEWER),
    ("PUT", f"{API}/signers/{{signer}}"): Right(Role.OWNER, "signer.publish", "{signer}"),
    ("DELETE", f"{API}/signers/{{signer}}"): Right(Role.OWNER, "signer.revoke", "{signer}"),
}

_PATTERNS: Final = {
    (method, path): re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path))) for method, path in RIGHTS
}


def meant(method: str, path: str) -> tuple[Right | None, dict[str, str]]:
    """The entry that a request's own words mean, with its parameters: for the record, never to decide by."""
    for key, pattern in _PATTERNS.items():
        if key[0] == method and (found := pattern.fullmatch(path)) is not None:
            return RIGHTS[key], found.groupdict()
    return None, {}
