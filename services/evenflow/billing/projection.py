"""The policy in force, folded from published documents."""

from __future__ import annotations

from evenflow.core.placement.policy import DEFAULT_POLICY, Policy
from evenflow.events.contracts.console import DocumentPublished
from evenflow.events.documents.policy import parse_policy, policy_hash
from evenflow.platform.broker.codec import Received


class PolicyInForce:
    """The newest readable policy document named `default`."""

    def __init__(self) -> None:
        self._policy = DEFAULT_POLICY
        self._hash = policy_hash(DEFAULT_POLICY)

    def current(self) -> tuple[Policy, str]:
        """The policy and its hash."""
        return self._policy, self._hash

    def apply(self, received: Received) -> None:
        """Take one document. Raises FieldRefused for one that can't be read, which leaves the policy in force."""
        body = received.body
        if isinstance(body, DocumentPublished) and body.kind == "policy" and body.name == "default":
            self._policy = parse_policy(body.document)
            self._hash = policy_hash(self._policy)
