"""What operators ask for (`evenflow.requests.v1`), versioned documents (`evenflow.policies.v1`), the audit."""

from __future__ import annotations

from typing import ClassVar, Literal

from evenflow.core.lifecycle.event_types import EventType
from evenflow.events.contract import Contract, Count, Document, Id, Text


class NodeCordonRequested(Contract):
    """No new work there; what runs goes on."""

    TYPE: ClassVar = EventType.NODE_CORDON_REQUESTED
    node: Id
    reason: Text = ""


class NodeUncordonRequested(Contract):
    """Open the node again (after a cordon or a drain)."""

    TYPE: ClassVar = EventType.NODE_UNCORDON_REQUESTED
    node: Id
    reason: Text = ""


class NodeDrainRequested(Contract):
    """No new work, and what runs moves elsewhere within the deadline."""

    TYPE: ClassVar = EventType.NODE_DRAIN_REQUESTED
    node: Id
    deadline_ms: Count = 600_000
    reason: Text = ""


class NodeRevokeRequested(Contract):
    """Take the node out for good: its identity is refused from now on."""

    TYPE: ClassVar = EventType.NODE_REVOKE_REQUESTED
    node: Id
    reason: Text = ""


class LinkRehearseRequested(Contract):
    """Send an expected load over a path and name the bottleneck."""

    TYPE: ClassVar = EventType.LINK_REHEARSE_REQUESTED
    from_site: Id
    to_site: Id
    bytes: Count


class DatasetAddRequested(Contract):
    """Register a dataset, or a copy of it. `document` is a dataset document, checked by inventory."""

    TYPE: ClassVar = EventType.DATASET_ADD_REQUESTED
    dataset: Id
    document: Document


class DatasetDropRequested(Contract):
    """A copy at a site is gone or to be dropped."""

    TYPE: ClassVar = EventType.DATASET_DROP_REQUESTED
    dataset: Id
    site: Id


class ChargeCorrectRequested(Contract):
    """Correct a ledger entry by a new one; nothing is edited."""

    TYPE: ClassVar = EventType.CHARGE_CORRECT_REQUESTED
    entry: Text
    amount_micro: int
    reason: Text


DocumentKind = Literal["policy", "queue", "site", "link", "template", "rate-card", "setting"]


class DocumentPublished(Contract):
    """A new version of a document; the key is `kind/name`. `document` is exactly as its strict door accepted it."""

    TYPE: ClassVar = EventType.DOCUMENT_PUBLISHED
    kind: DocumentKind
    name: Text
    version: Count
    document: Document
    who: Text = ""
    reason: Text = ""


class ChangeRecorded(Contract):
    """Who changed what, or tried to, with parameters and reason.

    `role` is what let the actor do it and `address` where the request came from; both empty in older records.
    `outcome` is requested, refused with its code, or nothing to do.
    """

    TYPE: ClassVar = EventType.CHANGE_RECORDED
    actor: Text
    action: Text
    subject: Text
    parameters: Document
    reason: Text = ""
    outcome: Text = ""
    role: Text = ""
    address: Text = ""
