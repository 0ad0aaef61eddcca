"""What agents sign, by kind of message: one place for the agent that signs and for whoever verifies."""

from __future__ import annotations

from evenflow.events.contract import Contract
from evenflow.platform.security.canonical import SignedFields


def stated_fields(body: Contract, *, node: str, session: str, sequence: int) -> SignedFields:
    """The fields of a statement: taken from its body, so that stamp and body can't differ."""
    return SignedFields(
        node=node,
        session=session,
        sequence=sequence,
        type=str(body.TYPE),
        tenant=getattr(body, "tenant", ""),
        task=getattr(body, "task", ""),
        attempt=getattr(body, "attempt", 0),
        member=getattr(body, "member", 0),
        epoch=getattr(body, "epoch", 0),
    )


def request_fields(*, node: str, session: str, method: str, target: str) -> SignedFields:
    """The fields of an HTTP request to the gateway: `target` is the path with its query; the value is the body."""
    return SignedFields(node=node, session=session, sequence=0, type=f"{method} {target}")
