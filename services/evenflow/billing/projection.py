"""The policy in force, folded from published documents."""

from __future__ import annotations

from evenflow.core.errors import FieldRefused
from evenflow.core.placement.policy import DEFAULT_POLICY, Policy
from evenflow.events.contracts.console import DocumentPublished
from evenflow.events.documents.policy import parse_policy, policy_hash
from evenflow.platform.broker.codec import Received
from evenflow.platform.runtime import Runtime


class PolicyInForce:
    """The newest readable policy document named `default`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._policy = DEFAULT_POLICY
        self._hash = policy_hash(DEFAULT_POLICY)

    def current(self) -> tuple[Policy, str]:
        """The policy and its hash."""
        return self._policy, self._hash

    def apply(self, received: Received) -> None:
        """Take one document; an unreadable policy leaves the one in force."""
        body = received.body
        if isinstance(body, DocumentPublished) and body.kind == "policy" and body.name == "default":
            try:
                self._policy = parse_policy(body.document)
                self._hash = policy_hash(self._policy)
            except FieldRefused as refusal:
                self._runtime.log.warning("policy refused", problem=str(refusal))
